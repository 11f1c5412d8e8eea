"""An alert on its way to one channel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tailbudget.schemas.alert import Alert


@dataclass(frozen=True, slots=True)
class Notice:
    """One change for one channel.

    Attributes:
        alert: the change.
        payload: as it was on the topic; channels that take JSON receive it.
        done: called once, when the channel has taken it or never will.
    """

    alert: Alert
    payload: Mapping[str, Any]
    done: Callable[[], None]

"""The one place that tries a ClickHouse request again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from tailbudget.schemas.errors import ClickHouseError

T = TypeVar("T")

BACKOFF_S: Final = (0.1, 0.3, 1.0, 3.0)
"""Pauses before the second try and those after; about what a merge of parts needs."""


def retrying(
    call: Callable[[], T],
    *,
    sleep: Callable[[float], None],
    pauses_s: Sequence[float] = BACKOFF_S,
    tell: Callable[[ClickHouseError, float], None] | None = None,
) -> T:
    """Return what `call` returns, calling it again after a `ClickHouseError`.

    `call` must be idempotent: an answer that was lost is a write that happened.

    Args:
        call: the request.
        sleep: waits for that many seconds; may raise to give up early.
        pauses_s: pauses between tries; one more try than pauses is made.
        tell: told of each failure and the pause that follows.

    Raises:
        ClickHouseError: the last try failed too.
    """
    for pause_s in pauses_s:
        try:
            return call()
        except ClickHouseError as error:
            if tell is not None:
                tell(error, pause_s)
            sleep(pause_s)
    return call()

"""What OpenSLO v1 has no field for, carried in annotations of ours."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "tailbudget.io/"
SERVICE: Final = f"{PREFIX}service"
"""On a Service: its name in the records, where that is no DNS label."""
SHORT_WINDOW: Final = f"{PREFIX}short-window-s"
"""On an AlertCondition: seconds of the short window; by default a twelfth of lookbackWindow."""
MIN_BAD: Final = f"{PREFIX}min-bad"
PENDING: Final = f"{PREFIX}pending-s"
KEEP_FIRING: Final = f"{PREFIX}keep-firing-s"
NO_DATA: Final = f"{PREFIX}no-data-s"
"""On an SLO: the fields of `AlertTiming`."""

KNOWN: Final = frozenset({SERVICE, SHORT_WINDOW, MIN_BAD, PENDING, KEEP_FIRING, NO_DATA})
SOURCE: Final = "tailbudget"
"""Type of the only data source that tailbudget measures: itself."""

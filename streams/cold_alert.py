"""The alert of a cold start: told in place of a percentile that is missed after a deploy.

New replicas are slow until they are warm, at every deploy. A target that is first missed as such a
window begins, and was kept before it, is a ticket, "cold start: steady state is within SLO". One
that is missed when the window is over, or was kept while the window had begun, is a breach like any
other; error budgets are judged meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Final

from tailbudget.schemas.alert import COLD_START, Alert
from tailbudget.schemas.alerts import AlertStatus, Condition, Reading
from tailbudget.schemas.objectives import Severity
from tailbudget.schemas.sections import ColdWindow
from tailbudget.schemas.verdicts import Percentile
from tailbudget.streams.alert_book import AlertBook, Explain

FIRST_STEP: Final = (
    "plan capacity for it: warm replicas up before they take traffic, or start fewer at once"
)
OPENING_NS: Final = 30 * 10**9
"""Half of the minute that percentiles are judged over. Cold replicas are slow from their first
request on: what was kept until then is missed because of something else."""
_WARM: Final = Reading(Condition.GOOD, detail="no target is missed in a cold window")


def window_at(windows: Iterable[ColdWindow], now_ns: int) -> ColdWindow | None:
    """Return the newest cold window that a moment lies in; None where it lies in none."""
    inside = (one for one in windows if one.start_ns <= now_ns < one.end_ns)
    return max(inside, key=lambda one: one.start_ns, default=None)


class ColdAlert:
    """Holds percentiles back while replicas are cold, and says so.

    Args:
        book: states of the service's alerts.
    """

    def __init__(self, book: AlertBook) -> None:
        self._book = book
        self._missed: list[str] = []
        self._kept_ns = 0

    def kept(self, now_ns: int) -> None:
        """Take note that no target is missed now."""
        self._kept_ns = now_ns

    def held_back(self, row: Percentile, read: Reading, window: ColdWindow | None) -> Reading:
        """Return what a percentile is to read: nothing where cold replicas explain that it is bad.

        They are slow and do not fail: a percentile that is a failure has no milliseconds.

        Args:
            row: the percentile.
            read: what it reads.
            window: the cold window of now; None outside of one.
        """
        slow = read.condition is Condition.BAD and row.measured_ms is not None
        if window is None or not slow or self._book.state(row.percentile).fires:
            return read
        if self._kept_ns >= window.start_ns + OPENING_NS:
            return read
        self._missed.append(read.detail)
        return replace(read, condition=Condition.HOLD)

    def tell(self, window: ColdWindow | None, now_ns: int, explain: Explain) -> list[Alert]:
        """Return the message when a cold start begins or is over.

        Args:
            window: the cold window of now; None outside of one.
            now_ns: event time.
            explain: what to say beside the figures.
        """
        missed, self._missed = self._missed, []
        if not missed and self._book.state(COLD_START).shown is AlertStatus.RESOLVED:
            return []
        read = _read(missed, window)
        alert = self._book.step(COLD_START, read, now_ns)
        if alert is None:
            return []
        told = replace(alert, **asdict(explain()))
        if alert.state != "resolved" and window is not None:
            note = f"steady state is within SLO, cold since the {window.kind.replace('_', ' ')}"
            note += f" of {window.version}" if window.version else ""
            told = replace(told, note=note, deploy=window.version, first_step=FIRST_STEP)
        return [told]


def _read(missed: Sequence[str], window: ColdWindow | None) -> Reading:
    if missed and window is not None:
        return Reading(Condition.BAD, Severity.TICKET, "; ".join(missed))
    return _WARM

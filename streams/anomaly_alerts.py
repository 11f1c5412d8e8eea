"""An anomaly as an alert: it goes through the same states as all others."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tailbudget.models.figures import figure
from tailbudget.schemas.alert import ANOMALY, Alert
from tailbudget.schemas.alerts import Condition, Reading
from tailbudget.schemas.anomaly_rows import AnomalyRow
from tailbudget.schemas.objectives import Severity
from tailbudget.schemas.sections import ColdWindow
from tailbudget.streams.alert_book import AlertBook

_TEST: Final = {
    "mean": "all requests are slower",
    "tail": "more requests are slow",
    "share": "more requests are in a slow mode, as after cache misses",
    "slope": "large inputs are slower than small ones",
}
_MOST_COHORTS: Final = 5


def alert_name(stage: str) -> str:
    """Return the name of the alert about a stage."""
    return f"{ANOMALY}{stage}"


def anomaly_alert(
    book: AlertBook,
    row: AnomalyRow,
    deploy: ColdWindow | None,
    *,
    signals: tuple[str, ...] = (),
    link: str = "",
) -> Alert | None:
    """Take a change of an anomaly; return the message when the alert moves.

    It is a ticket: what users were promised is judged by percentiles and budgets, which page.

    Args:
        book: the service's alerts.
        row: the change.
        deploy: nearest before the onset.
        signals: what changed with the onset, in sentences.
        link: where a person sees more.
    """
    begins = row.phase in ("started", "spread")
    read = Reading(
        Condition.BAD if begins else Condition.GOOD,
        Severity.TICKET if begins else None,
        same_shapes(row),
    )
    alert = book.step(alert_name(row.stage), read, row.at_ns)
    if alert is None:
        return None
    return replace(
        alert,
        tail_driver=row.stage,
        effect_pct=row.effect_pct,
        effect_low_pct=row.low_pct,
        effect_high_pct=row.high_pct,
        effect_ms=row.effect_ms,
        onset_ns=row.onset_ns,
        deploy=row.deploy,
        cause=row.cause.replace("_", " "),
        evidence=(*evidence(row, deploy), *signals),
        n=row.n,
        link=link,
    )


def same_shapes(row: AnomalyRow) -> str:
    """Say what the stage takes, and what it took for the same shapes."""
    over = {"ended": "is itself again", "accepted": "stays slower, and that is normal from now on"}
    if row.effect_pct is None or row.expected_ms is None or row.measured_ms is None:
        return f"{row.stage} {over.get(row.phase, _TEST[row.test])}"
    said = over.get(row.phase, _TEST[row.test])
    return (
        f"{row.stage} {said}: {figure(row.measured_ms)} ms where the same shapes took"
        f" {figure(row.expected_ms)} ms, {row.effect_pct:+.0f} %"
        f" ({row.low_pct:+.0f} to {row.high_pct:+.0f} %, n={row.n:,})"
    )


def evidence(row: AnomalyRow, deploy: ColdWindow | None) -> tuple[str, ...]:
    """Return what else speaks about it: where, and after which deploy."""
    shown = ", ".join(row.cohorts[:_MOST_COHORTS])
    more = len(row.cohorts) - _MOST_COHORTS
    found = [f"in {shown or 'all requests'}{f' and {more} more cohorts' if more > 0 else ''}"]
    if deploy is not None:
        minutes = (row.onset_ns - deploy.start_ns) / 60e9
        found.append(f"began {minutes:,.0f} min after the {deploy.kind} of {deploy.version}")
    return tuple(found)

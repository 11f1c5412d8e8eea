"""What the rows of an answer look like in a table: words, figures and colours."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from rich.text import Text

from tailbudget.models.ranks import requests_needed
from tailbudget.schemas.slo import QUANTILES
from tailbudget.schemas.verdicts import Verdict
from tailbudget.sinks.report.clean import clean, clean_name
from tailbudget.sinks.report.figures import count, number

STALE_S: Final = 60
"""An audit that ended longer ago is no longer about now: they come once a pane, 10 s by default."""

NOT_MEASURED: Final = "unknown"
NONE: Final = "none"
TOO_FEW: Final = "too few"
"""A percentile of fewer requests than it takes."""

OVER: Final = "over"
"""Too few to say how slow, but so many are beyond the promise that it is broken."""

FAILED: Final = "failed"
"""A percentile that is a failed request."""

WIDEST: Final = 22
"""Characters of a name in a table; the screen of a service has it whole."""

SAID: Final = {
    Verdict.OK: ("ok", "green"),
    Verdict.AT_RISK: ("at risk", "yellow"),
    Verdict.BREACH: ("breach", "bold red"),
    Verdict.INSUFFICIENT: ("too few requests", "dim"),
    Verdict.NO_DATA: ("no requests", "dim"),
}
"""Words and style of each verdict."""

_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))

Audit = Mapping[str, Any]
"""A row of `questions.services`."""


def name(text: str, most: int = WIDEST) -> Text:
    """Return a name as it is, but for signs that cannot be seen."""
    return Text(clean(clean_name(text), most), no_wrap=True)


def status(row: Audit, now_s: float) -> Text:
    """Return in words how a service is; what is old says how old."""
    age_s = now_s - row["end_ms"] / 1e3
    word, style = SAID[Verdict(row["verdict"])]
    if all(row[f"slo_{percentile}_ms"] is None for percentile in QUANTILES):
        word, style = "no SLO set", "dim"
    if age_s > STALE_S:
        return Text(f"{word}, {age(age_s)} old", "dim")
    return Text(word, style)


def percentile(row: Audit, percentile: str) -> Text:
    """Return a percentile in milliseconds, or in words why there is none."""
    measured_ms, slo_ms = row[f"{percentile}_ms"], row[f"slo_{percentile}_ms"]
    over = slo_ms is not None and (measured_ms is None or measured_ms > slo_ms)
    if row["requests"] < requests_needed(QUANTILES[percentile]):
        if over and row["verdict"] == Verdict.BREACH:
            return Text(OVER, "red", justify="right")
        return Text(TOO_FEW if row["requests"] else NONE, "dim", justify="right")
    if measured_ms is None:
        return Text(FAILED, "bold red", justify="right")
    return Text(number(measured_ms), "red" if over else "", justify="right")


def promise(row: Audit) -> Text:
    """Return the strictest promise: that of the highest percentile."""
    for percentile in reversed(QUANTILES):
        if (slo_ms := row[f"slo_{percentile}_ms"]) is not None:
            return Text(f"{percentile} {number(slo_ms)}", justify="right")
    return Text(NONE, "dim", justify="right")


def figure(value: float | None, style: str = "") -> Text:
    """Return a number to a few digits; or that it is not known."""
    text = NOT_MEASURED if value is None else number(value)
    return Text(text, style if value is not None else "dim", justify="right")


def counted(value: int) -> Text:
    """Return a count."""
    return Text(count(value), justify="right")


def state(text: str) -> Text:
    """Return the state of an alert."""
    styles = {"firing": "bold red", "resolved": "green"}
    return Text(clean(text, WIDEST), styles.get(text, ""))


def moment(at_ms: int) -> Text:
    """Return a time in UTC, to the second."""
    return Text(datetime.fromtimestamp(at_ms / 1e3, UTC).strftime("%m-%d %H:%M:%S"))


def age(seconds: float) -> str:
    """Return a span of time in its largest unit."""
    size, unit = next(((s, u) for s, u in _UNITS if seconds >= s), _UNITS[-1])
    return f"{seconds / size:.0f} {unit}"


def promises(row: Audit) -> Text:
    """Return each percentile beside its promise, in one line."""
    line = Text()
    for each in QUANTILES:
        slo_ms = row[f"slo_{each}_ms"]
        line.append(f"{each} ").append_text(percentile(row, each))
        if slo_ms is not None:
            line.append(f" of {number(slo_ms)}", "dim")
        line.append("   ")
    return line

"""What is said about one alert: what breaks, since when, why, what to do, and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from tailbudget.schemas.alert import ANOMALY, Alert
from tailbudget.schemas.messages import Draft
from tailbudget.sinks.chat_text import clock_text, code_text, ms_text, query_text, time_text
from tailbudget.sinks.report.clean import SENTENCE_LENGTH, bare, clean

HEADINGS: Final = {
    ("percentile", "firing"): "breaches its SLO",
    ("percentile", "resolved"): "is within its SLO again",
    ("burn", "firing"): "burns its error budget",
    ("burn", "resolved"): "no longer burns its error budget",
}
_OTHER: Final = {"no_data": "cannot be judged", "muted": "is muted"}
_UNKNOWN_CAUSE: Final = "Probable cause: none has evidence yet"


def words(alert: Alert) -> Draft:
    """Return what is said about one alert."""
    return Draft(
        title=title(alert),
        head=tuple(_head(alert)),
        tail=tuple(_tail(alert)),
        query=alert.sql or query_text(alert.service, alert.since_ns),
    )


def title(alert: Alert) -> str:
    """Return the one line that everybody reads."""
    found = _FOUND.get(alert.kind)
    if found and alert.state in ("firing", "resolved"):
        return f"[{_tag(alert)}] {prose(alert.service)}: {prose(found(alert))}"
    return f"[{_tag(alert)}] {prose(alert.service)} {prose(alert.alert)} {heading(alert)}"


def prose(text: str) -> str:
    """Return words from outside on one line, that set no code and call nobody (``@everyone``)."""
    line = clean(text, SENTENCE_LENGTH).replace("`", "'")
    return line.replace("@", "@\N{ZERO WIDTH NON-JOINER}")


def heading(alert: Alert) -> str:
    """Return what an alert does now."""
    if alert.change_reason == "severity_rose":
        return "burns its error budget faster"
    known = HEADINGS.get((alert.kind, alert.state))
    return known or _OTHER.get(alert.state, alert.state)


def item(alert: Alert) -> str:
    """Return the line of an alert among several."""
    what = f"{code_text(alert.alert)}"
    if alert.cohort and alert.cohort not in alert.alert:
        what += f" {code_text(alert.cohort)}"
    said = [_measured(alert), _left(alert)]
    return f"• {what}: {'; '.join(filter(None, said)) or prose(alert.reason)}"


def guidance(alert: Alert) -> Iterator[str]:
    """Yield where to look and what to do."""
    if alert.tail_driver:
        yield f"Tail driver: {_driver(alert)}"
    yield from _split(alert)
    if alert.worst_cohort:
        yield f"Worst cohort: {_worst(alert)}"
    if alert.cause:
        said = (prose(bare(one)) for one in (alert.cause, *alert.evidence))
        yield f"Probable cause: {'; '.join(said)}"
    elif alert.state == "firing":
        yield _UNKNOWN_CAUSE
    if alert.first_step:
        yield f"First: {prose(bare(alert.first_step))}"
    if alert.request_id:
        yield f"Look at request {code_text(alert.request_id)}"
    if alert.link:
        yield f"Details: {alert.link}"


def lasted(seconds: float) -> str:
    """Return a length of time for a person."""
    for size, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {name}"
    return f"{seconds:.0f} s"


def _tag(alert: Alert) -> str:
    state = alert.state.replace("_", " ").upper()
    urgent = alert.state == "firing" and alert.severity
    return f"{state} {alert.severity}" if urgent else state


def _head(alert: Alert) -> Iterator[str]:
    measured = _measured(alert)
    where = f" {code_text(alert.cohort)}" if alert.cohort else ""
    promise = f": {measured}" if measured else ""
    yield f"{code_text(alert.service)} **{prose(alert.alert)}**{where}{promise}"
    if alert.reason:
        yield f"Why: {prose(alert.reason)}"
    if left := _left(alert):
        yield left[0].upper() + left[1:]
    yield from _when(alert)


def _tail(alert: Alert) -> Iterator[str]:
    if alert.state != "resolved":
        yield from guidance(alert)
        return
    if alert.tail_driver:
        yield f"Tail driver: {_driver(alert)}"
    yield from _split(alert)
    if alert.link:
        yield f"Details: {alert.link}"


def _split(alert: Alert) -> Iterator[str]:
    """Yield what made the p99 of the incident another than before, the most first."""
    if alert.p99_change_ms is None:
        return
    parts = {
        "regression": alert.change_regression_ms,
        "workload mix": alert.change_workload_ms,
        "failures": alert.change_failures_ms,
        "cold start": alert.change_cold_start_ms,
    }
    known = [(name, ms) for name, ms in parts.items() if ms is not None]
    known.sort(key=lambda part: -abs(part[1]))
    said = ", ".join(f"{name} {_signed(ms)}" for name, ms in known)
    yield f"p99 {_signed(alert.p99_change_ms)} against the time before: {said}"


def _signed(value_ms: float) -> str:
    return f"{'+' if value_ms > 0 else ''}{ms_text(value_ms)}"


def _when(alert: Alert) -> Iterator[str]:
    since_ns = alert.since_ns if alert.onset_ns is None else alert.onset_ns
    if since_ns is None:
        return
    if alert.state != "resolved":
        yield f"Since {time_text(since_ns)}"
        return
    until_ns = alert.cleared_ns or alert.at_ns
    seconds = (until_ns - since_ns) / 1e9
    said = f"It lasted {lasted(seconds)}, from {time_text(since_ns)}"
    if alert.budget_cost_pct is not None:
        said += f", and cost {_percent(alert.budget_cost_pct)} of the error budget"
    yield said


def _regression(alert: Alert) -> str:
    """Say which stage has become slower, by how much for the same work, since when, after what."""
    over = "no longer " if alert.state == "resolved" else ""
    said = f"{over}latency regression in {alert.alert.removeprefix(ANOMALY)}"
    if alert.effect_pct is not None:
        said += f", {alert.effect_pct:+.0f} % for the same input shapes"
    if alert.onset_ns is not None:
        said += f", since {clock_text(alert.onset_ns)}"
    return f"{said}, after deploy {alert.deploy}" if alert.deploy else said


def _effect(alert: Alert) -> str:
    """Say by how much a stage has become slower for the same work, with the interval."""
    if alert.effect_pct is None:
        return alert.note
    said = f"{alert.effect_pct:+.0f} % for the same input shapes"
    if alert.effect_low_pct is not None and alert.effect_high_pct is not None:
        said += f" ({alert.effect_low_pct:+.0f} to {alert.effect_high_pct:+.0f} %)"
    if alert.effect_ms is not None:
        said += f", {ms_text(alert.effect_ms)} a request"
    if alert.deploy:
        said += f", after deploy {code_text(alert.deploy)}"
    return said + _note(alert)


def _cold_start(alert: Alert) -> str:
    """Say that it is a cold start, and what is known of the time after it."""
    if alert.state == "resolved":
        return "cold start is over"
    return f"cold start: {alert.note}" if alert.note else "cold start"


_FOUND: Final[Mapping[str, Callable[[Alert], str]]] = MappingProxyType(
    {"anomaly": _regression, "cold_start": _cold_start}
)
"""What is found in place of a promise that breaks, by the kind of the alert."""


def _measured(alert: Alert) -> str:
    if alert.kind == "anomaly":
        return _effect(alert)
    if alert.kind == "burn":
        promised = "" if alert.target_pct is None else f"{alert.target_pct:.10g} % of requests"
        within = f" within {ms_text(alert.slo_ms)}" if alert.slo_ms is not None else " succeed"
        return promised + within if promised else ""
    if alert.measured_ms is None:
        said = alert.note or ("" if alert.slo_ms is None else "not measured")
    else:
        said = ms_text(alert.measured_ms)
        if alert.slo_ms is not None:
            beyond = (alert.measured_ms - alert.slo_ms) / alert.slo_ms
            return f"{said}, SLO {ms_text(alert.slo_ms)} ({beyond:+.1%})" + _note(alert)
    if alert.slo_ms is not None and said:
        said += f", SLO {ms_text(alert.slo_ms)}"
    return said


def _note(alert: Alert) -> str:
    return f"; {alert.note}" if alert.note else ""


def _left(alert: Alert) -> str:
    """Say what is left of the error budget, and until when."""
    if alert.budget_left_pct is None:
        return ""
    said = f"{_percent(alert.budget_left_pct)} of the error budget left"
    if alert.budget_left_pct <= 0:
        said = f"error budget spent {1 - alert.budget_left_pct / 100:.3g} times"
    elif alert.budget_exhausted_ns is not None:
        said += f", spent at {time_text(alert.budget_exhausted_ns)} at this rate"
    elif alert.state == "firing":
        said += ", which lasts at this rate"
    if alert.budget_corrected_pct is not None:
        said += f" (without maintenance {_percent(alert.budget_corrected_pct)} left)"
    return said


def _driver(alert: Alert) -> str:
    text = code_text(alert.tail_driver or "")
    if alert.tail_delta_ms is not None:
        text += f", {ms_text(alert.tail_delta_ms)} more in slow requests than in fast ones"
    if alert.tail_share_pct is not None:
        text += f" ({alert.tail_share_pct:.0f} % of the difference)"
    return text


def _worst(alert: Alert) -> str:
    text = code_text(alert.worst_cohort)
    if alert.worst_share_pct is not None:
        text += f", {alert.worst_share_pct:.0f} % of slow requests"
    if alert.worst_traffic_pct is not None:
        text += f" and {alert.worst_traffic_pct:.0f} % of all"
    return text


def _percent(value: float) -> str:
    return f"{value:,.1f} %" if abs(value) < 100 else f"{value:,.0f} %"

"""The words of an alert."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from tailbudget.schemas.messages import ChatMessage

_HEADINGS: Final = {
    "firing": "breaches its SLO",
    "resolved": "is within its SLO again",
    "no_data": "sends no data",
}

_COLUMNS: Final = "start, requests, failed, p50_ms, p95_ms, p99_ms"
_BEFORE_NS: Final = 600 * 10**9


def render(payload: Mapping[str, Any]) -> ChatMessage:
    """Return the message that tells an alert.

    Args:
        payload: the alert as it is on the alerts topic. `service`, `alert` (such as "p99"),
            `state` and `alert_id` are needed; `measured_ms`, `slo_ms`, `note` (said in the place
            of a figure that cannot be measured, and beside one that can), `tail_driver`,
            `tail_delta_ms`, `tail_share_pct`, `since_ns`, `at_ns`, `reason` and `link` are told
            when they are there.

    Raises:
        KeyError: a needed key is missing.
    """
    service, alert, state = payload["service"], payload["alert"], payload["state"]
    heading = _HEADINGS.get(state, state)
    return ChatMessage(
        title=f"[{state.replace('_', ' ').upper()}] {service} {alert} {heading}",
        body="\n".join(_lines(payload)),
        service=service,
        alert=alert,
        state=state,
        alert_id=payload["alert_id"],
        payload=payload,
    )


def query_text(service: str, since_ns: int | None) -> str:
    """Return the SQL that shows a breach: percentiles a minute, from a little before it."""
    name = service.replace("\\", "\\\\").replace("'", "\\'")
    where = f"service = '{name}' AND stage = 'total'"
    if since_ns is not None:
        where += f" AND start >= '{_clock(since_ns - _BEFORE_NS)}'"
    return f"SELECT {_COLUMNS} FROM latency(window = 60) WHERE {where} ORDER BY start"


def _lines(payload: Mapping[str, Any]) -> list[str]:
    since_ns = payload.get("since_ns")
    lines = [f"{code_text(payload['service'])} **{payload['alert']}**: {_figures(payload)}"]
    if payload.get("tail_driver"):
        lines.append(f"Tail driver: {_driver(payload)}")
    if since_ns is not None:
        lines.append(f"Since {time_text(since_ns)}{_lasted(payload)}")
    if payload.get("reason"):
        lines.append(f"Why: {payload['reason']}")
    if payload.get("link"):
        lines.append(f"Details: {payload['link']}")
    return [*lines, "", "```", query_text(payload["service"], since_ns), "```"]


def _figures(payload: Mapping[str, Any]) -> str:
    measured_ms, slo_ms = payload.get("measured_ms"), payload.get("slo_ms")
    note = payload.get("note")
    if measured_ms is None:
        said = note or "not measured"
        return said if slo_ms is None else f"{said}, SLO {ms_text(slo_ms)}"
    said = ms_text(measured_ms)
    if slo_ms is not None:
        said += f", SLO {ms_text(slo_ms)} ({(measured_ms - slo_ms) / slo_ms:+.1%})"
    return f"{said}; {note}" if note else said


def _driver(payload: Mapping[str, Any]) -> str:
    text = code_text(payload["tail_driver"])
    if payload.get("tail_delta_ms") is not None:
        text += f", {ms_text(payload['tail_delta_ms'])} more in slow requests than in fast ones"
    if payload.get("tail_share_pct") is not None:
        text += f" ({payload['tail_share_pct']:.0f} % of the difference)"
    return text


def _lasted(payload: Mapping[str, Any]) -> str:
    if payload["state"] != "resolved" or payload.get("at_ns") is None:
        return ""
    return f", for {(payload['at_ns'] - payload['since_ns']) / 1e9:,.0f} s"


def ms_text(value_ms: float) -> str:
    """Return milliseconds for a person: three digits or so, thousands apart."""
    return f"{value_ms:,.0f} ms" if abs(value_ms) >= 100 else f"{value_ms:.3g} ms"


def time_text(time_ns: int) -> str:
    """Return a time of day in UTC, to the second."""
    return f"{_clock(time_ns)} UTC"


def _clock(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")


def code_text(text: str) -> str:
    """Return text set as code, so that no sign in a name is read as Markdown."""
    return f"`{text.replace('`', chr(39))}`"

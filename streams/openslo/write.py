"""OpenSLO documents from objectives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import yaml

from tailbudget.models.burn import SHORT_SHARE, rules_of
from tailbudget.schemas.durations import UNIT_S
from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.objectives import AlertTiming, BurnRule, Objective, Period, Telling
from tailbudget.schemas.openslo.common import API_VERSION
from tailbudget.streams.openslo import marks
from tailbudget.streams.openslo.documents import KINDS

_LABEL: Final = re.compile(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")


def write(objectives: Sequence[Objective]) -> str:
    """Return documents that say what the objectives are, and read back the same.

    Raises:
        ConfigError: something has no place in OpenSLO v1, such as a window of 70 s.
    """
    documents = [_document("DataSource", marks.SOURCE, _source_spec())]
    services = sorted({one.service for one in objectives})
    names = {service: _label(service) for service in services}
    for service, label in names.items():
        noted = {} if label == service else {marks.SERVICE: service}
        documents.append(_document("Service", label, {}, noted))
    channels = sorted({c for one in objectives for c in one.telling.channels})
    for channel in channels:
        spec = {"target": "tailbudget"}
        documents.append(_document("AlertNotificationTarget", _channel(channel), spec))
    for one in objectives:
        documents += _slo(one, names[one.service])
    _check(documents)
    # Escaped: unescaped, the emitter folds U+0085 to a space.
    return yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=False)


def _slo(one: Objective, service: str) -> Iterable[dict[str, Any]]:
    if _LABEL.match(one.name) is None:
        raise ConfigError(
            f"objective {one.name!r} is no DNS label", remedy="use a-z, 0-9 and hyphens"
        )
    yield _document("SLI", one.name, _sli(one))
    noted = _timing(one)
    policies = []
    if one.rules or one.telling != Telling():
        for place, rule in enumerate(rules_of(one), 1):
            name = f"{one.name}-burn-{place}"
            yield _condition(name, rule, one.timing)
            yield _document("AlertPolicy", name, _policy(name, one.telling))
            policies.append({"alertPolicyRef": name})
        noted.pop(marks.PENDING, None)
    spec: dict[str, Any] = {
        "service": service,
        "indicatorRef": one.name,
        "budgetingMethod": "Timeslices" if one.slice_s else "Occurrences",
        "timeWindow": [_window(one.period)],
        "objectives": [_objective(one)],
    }
    if policies:
        spec["alertPolicies"] = policies
    yield _document("SLO", one.name, spec, noted)


def _sli(one: Objective) -> dict[str, Any]:
    where = {"where": dict(one.cohort)} if one.cohort else {}
    if one.threshold_ms is not None:
        return {"thresholdMetric": _metric({"metric": "total_ms", **where})}
    good = _metric({"metric": "requests", "status": "ok", **where})
    total = _metric({"metric": "requests", **where})
    return {"ratioMetric": {"counter": True, "good": good, "total": total}}


def _metric(spec: dict[str, Any]) -> dict[str, Any]:
    return {"metricSource": {"metricSourceRef": marks.SOURCE, "spec": spec}}


def _objective(one: Objective) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if one.threshold_ms is not None:
        values |= {"op": "lte", "value": one.threshold_ms}
    values["target"] = float(one.target)
    if one.slice_s is not None:
        values["timeSliceTarget"] = float(one.slice_target)
        values["timeSliceWindow"] = _duration(one.slice_s, f"slice_s of {one.name}")
    return values


def _window(period: Period) -> dict[str, Any]:
    if not period.start:
        return {"duration": period.text(), "isRolling": True}
    start = datetime.fromisoformat(period.start).strftime("%Y-%m-%d %H:%M:%S")
    calendar = {"startTime": start, "timeZone": period.zone}
    return {"duration": period.text(), "isRolling": False, "calendar": calendar}


def _condition(name: str, rule: BurnRule, timing: AlertTiming) -> dict[str, Any]:
    condition: dict[str, Any] = {
        "kind": "burnrate",
        "op": "gte" if rule.inclusive else "gt",
        "threshold": rule.factor,
        "lookbackWindow": _duration(rule.long_s, f"long window of {name}"),
    }
    if timing.pending_s:
        condition["alertAfter"] = _duration(timing.pending_s, f"pending_s of {name}")
    usual = rule.short_s == max(rule.long_s // SHORT_SHARE, 1)
    noted = {} if usual else {marks.SHORT_WINDOW: str(rule.short_s)}
    spec = {"severity": rule.severity.value, "condition": condition}
    return _document("AlertCondition", name, spec, noted)


def _policy(name: str, telling: Telling) -> dict[str, Any]:
    if not telling.channels:
        raise ConfigError(
            f"{name} has rules and names no channel, which OpenSLO v1 requires",
            remedy="name the channels that hear of it, or leave the rules to the period",
        )
    return {
        "alertWhenNoData": telling.no_data,
        "alertWhenBreaching": telling.breaching,
        "alertWhenResolved": telling.resolved,
        "conditions": [{"conditionRef": name}],
        "notificationTargets": [{"targetRef": channel} for channel in telling.channels],
    }


def _timing(one: Objective) -> dict[str, str]:
    usual, timing = AlertTiming(), one.timing
    values = (
        (marks.MIN_BAD, timing.min_bad, usual.min_bad),
        (marks.PENDING, timing.pending_s, usual.pending_s),
        (marks.KEEP_FIRING, timing.keep_firing_s, usual.keep_firing_s),
        (marks.NO_DATA, timing.no_data_s, usual.no_data_s),
    )
    return {key: str(value) for key, value, default in values if value != default}


def _duration(seconds: float, what: str) -> str:
    units = [unit for unit in ("w", "d", "h", "m") if seconds % UNIT_S[unit] == 0]
    if not units:
        raise ConfigError(
            f"{what} is {seconds:g} s, and OpenSLO v1 has whole minutes",
            remedy="choose whole minutes",
        )
    return f"{int(seconds // UNIT_S[units[0]])}{units[0]}"


def _document(
    kind: str, name: str, spec: dict[str, Any], noted: dict[str, str] | None = None
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if noted:
        metadata["annotations"] = noted
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def _source_spec() -> dict[str, Any]:
    return {"type": marks.SOURCE, "connectionDetails": {}}


def _channel(name: str) -> str:
    if _LABEL.match(name) is None:
        raise ConfigError(f"channel {name!r} is no DNS label", remedy="use a-z, 0-9 and hyphens")
    return name


def _label(name: str) -> str:
    """Return a DNS label for any name; the name itself where it is one."""
    if _LABEL.match(name):
        return name
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:63].strip("-") or "service"


def _check(documents: Sequence[dict[str, Any]]) -> None:
    """Hold what was written to the specification, and names to be unique."""
    seen: set[tuple[str, str]] = set()
    for document in documents:
        KINDS[document["kind"]].model_validate(document)
        key = (document["kind"], document["metadata"]["name"])
        if key in seen:
            raise ConfigError(f"{key[0]} {key[1]!r} would be there twice", remedy="rename one")
        seen.add(key)

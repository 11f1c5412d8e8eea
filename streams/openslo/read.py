"""Objectives from OpenSLO documents."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction

from tailbudget.schemas.durations import duration_s, parse_duration
from tailbudget.schemas.objectives import AlertTiming, Objective, Period, Telling, share
from tailbudget.schemas.openslo.common import Metadata
from tailbudget.schemas.openslo.slo import Slo, SloObjective, TimeWindow
from tailbudget.schemas.openslo.sources import DataSource, Service, Sli, SliSpec
from tailbudget.streams.openslo import marks
from tailbudget.streams.openslo.documents import Documents, UnsupportedError, parse
from tailbudget.streams.openslo.indicators import measured
from tailbudget.streams.openslo.policies import alerting

_TIMING: Mapping[str, str] = {
    marks.MIN_BAD: "min_bad",
    marks.PENDING: "pending_s",
    marks.KEEP_FIRING: "keep_firing_s",
    marks.NO_DATA: "no_data_s",
}


def read(text: str, source: str = "the document") -> tuple[Objective, ...]:
    """Return the objectives of all SLOs in a text, in order.

    Args:
        text: one or many OpenSLO v1 documents, as YAML or JSON.
        source: where the text is from, for messages.

    Raises:
        ConfigError: the text is no YAML, a document is not as the specification says, or a field
            asks for what cannot be honoured; all problems are in the one message, with paths.
    """
    documents = parse(text, source)
    found: list[Objective] = []
    for origin in documents.of(DataSource):
        _check_source(documents, origin)
    for slo in documents.of(Slo):
        try:
            found += _objectives(documents, slo)
        except UnsupportedError as error:
            documents.refuse(slo, error)
    documents.require_none_wrong()
    return tuple(found)


def _check_source(documents: Documents, origin: DataSource) -> None:
    if origin.spec.type != marks.SOURCE:
        what = f"{origin.spec.type!r} is measured elsewhere"
        remedy = f"write type: {marks.SOURCE}"
        documents.refuse(origin, UnsupportedError("spec.type", what, remedy))
    elif origin.spec.connection_details:
        key = next(iter(origin.spec.connection_details))
        error = UnsupportedError(
            f"spec.connectionDetails.{key}",
            "is set in our own settings (kafka, clickhouse)",
            "leave connectionDetails empty: {}",
        )
        documents.refuse(origin, error)


def _objectives(documents: Documents, slo: Slo) -> list[Objective]:
    spec = slo.spec
    if spec.budgeting_method == "RatioTimeslices":
        what = "averages ratios of slices: a quiet minute would weigh as much as a busy one"
        remedy = "write Occurrences or Timeslices"
        raise UnsupportedError("spec.budgetingMethod", what, remedy)
    if not spec.time_window:
        what = "is missing: an error budget is for some time"
        raise UnsupportedError("spec.timeWindow", what, "add duration: 30d, isRolling: true")
    sli, path = _indicator(documents, slo)
    many = len(spec.objectives) > 1
    found = []
    for place, objective in enumerate(spec.objectives):
        name = f"{slo.metadata.name}-{place + 1}" if many else slo.metadata.name
        at = f"spec.objectives[{place}]"
        found.append(_objective(documents, slo, (sli, path), (objective, at), name))
    return found


def _objective(
    documents: Documents,
    slo: Slo,
    indicator: tuple[SliSpec, str],
    objective: tuple[SloObjective, str],
    name: str,
) -> Objective:
    sli, path = indicator
    one, at = objective
    if one.indicator or one.indicator_ref or one.composite_weight is not None:
        what = "makes a composite SLO"
        raise UnsupportedError(f"{at}.indicator", what, "write one SLO for each indicator")
    target = _target(one, at)
    what_counts = measured(documents, sli, one, path=path, at=at)
    slice_s, slice_target = _slices(slo, one, at)
    alerts = alerting(documents, slo.spec.alert_policies, 1 - target)
    timing = _timing(slo.metadata)
    if alerts is not None and alerts.pending_s is not None:
        timing["pending_s"] = alerts.pending_s
    return Objective(
        service=_service(documents, slo.spec.service),
        name=name,
        target=target,
        threshold_ms=what_counts.threshold_ms,
        cohort=what_counts.cohort,
        period=_period(slo.spec.time_window[0]),
        slice_s=slice_s,
        slice_target=slice_target,
        rules=alerts.rules if alerts else (),
        timing=AlertTiming(**timing),  # type: ignore[arg-type]
        telling=alerts.telling if alerts else Telling(),
    )


def _indicator(documents: Documents, slo: Slo) -> tuple[SliSpec, str]:
    spec = slo.spec
    if spec.indicator is not None and spec.indicator_ref is not None:
        raise UnsupportedError("spec.indicator", "stands beside indicatorRef", "give one of them")
    if spec.indicator is not None:
        return spec.indicator.spec, "spec.indicator.spec"
    if spec.indicator_ref is not None:
        named = documents.named(Sli, spec.indicator_ref, "spec.indicatorRef")
        return named.spec, f"spec.indicatorRef, SLI/{spec.indicator_ref}: spec"
    what = "is missing: nothing says what to measure"
    raise UnsupportedError("spec.indicator", what, "add indicator or indicatorRef")


def _target(one: SloObjective, at: str) -> Fraction:
    if one.target is not None:
        target, name = Fraction(str(one.target)), "target"
    else:
        target, name = share(one.target_percent or 0), "targetPercent"
    if not 0 < target < 1:
        raise UnsupportedError(f"{at}.{name}", "promises nothing", "give more than 0")
    return target


def _slices(slo: Slo, one: SloObjective, at: str) -> tuple[int | None, Fraction]:
    sliced = slo.spec.budgeting_method == "Timeslices"
    if not sliced:
        for name, value in (("Target", one.time_slice_target), ("Window", one.time_slice_window)):
            if value is not None:
                what = "belongs to budgetingMethod: Timeslices"
                raise UnsupportedError(f"{at}.timeSlice{name}", what, "leave it out")
        return None, Fraction(1)
    if one.time_slice_window is None or one.time_slice_target is None:
        name = "Window" if one.time_slice_window is None else "Target"
        raise UnsupportedError(f"{at}.timeSlice{name}", "is missing", "add it")
    slice_s = duration_s(one.time_slice_window)
    if slice_s > 3600 or 3600 % slice_s:
        what = f"{one.time_slice_window} does not divide an hour"
        raise UnsupportedError(f"{at}.timeSliceWindow", what, "such as 1m or 5m")
    return slice_s, Fraction(str(one.time_slice_target))


def _period(window: TimeWindow) -> Period:
    count, unit = parse_duration(window.duration)
    if window.calendar is None:
        return Period(count, unit)
    start = datetime.fromisoformat(window.calendar.start_time).isoformat()
    return Period(count, unit, start, window.calendar.time_zone)


def _service(documents: Documents, name: str) -> str:
    """Return the service's name in the records."""
    found = next((one for one in documents.of(Service) if one.metadata.name == name), None)
    return found.metadata.annotations.get(marks.SERVICE, name) if found else name


def _timing(metadata: Metadata) -> dict[str, float]:
    timing: dict[str, float] = {}
    for key, field in _TIMING.items():
        if (text := metadata.annotations.get(key)) is None:
            continue
        try:
            timing[field] = int(text) if field == "min_bad" else float(text)
        except ValueError as error:
            path = f"metadata.annotations.{key}"
            raise UnsupportedError(path, f"{text!r} is no number", "give a number") from error
    return timing

"""What an indicator measures, in our terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tailbudget.schemas.cohorts import Cohort
from tailbudget.schemas.openslo.slo import SloObjective
from tailbudget.schemas.openslo.sources import DataSource, Metric, RatioMetric, SliSpec
from tailbudget.streams.openslo.documents import Documents, UnsupportedError
from tailbudget.streams.openslo.marks import SOURCE

_WHERE_REMEDY = "write where: {route: search}"


@dataclass(frozen=True, slots=True)
class Measured:
    """What a good request is, and which requests count.

    Attributes:
        threshold_ms: a good one is no slower; None: it did not fail.
        cohort: what requests must have to count.
    """

    threshold_ms: float | None
    cohort: Cohort


def measured(
    documents: Documents, sli: SliSpec, objective: SloObjective, *, path: str, at: str
) -> Measured:
    """Return what an indicator measures for one objective.

    Args:
        documents: for references.
        sli: the indicator.
        objective: with its threshold, where the indicator has none.
        path: of the indicator's spec within the SLO.
        at: path of the objective.

    Raises:
        UnsupportedError: it asks for what cannot be honoured.
    """
    if sli.ratio_metric is not None:
        if objective.op is not None or objective.value is not None:
            what = "op and value belong to a thresholdMetric"
            raise UnsupportedError(f"{at}.op", what, "leave them out, or use max_ms")
        return _ratio(documents, sli.ratio_metric, f"{path}.ratioMetric")
    if sli.threshold_metric is None:
        raise UnsupportedError(path, "has no metric", "add thresholdMetric")
    if objective.op != "lte":
        what = f"{objective.op or 'nothing'} is not how latency is judged: at the value is good"
        raise UnsupportedError(f"{at}.op", what, "write op: lte")
    if objective.value is None or objective.value <= 0:
        raise UnsupportedError(f"{at}.value", "is no latency", "give milliseconds above 0")
    where = f"{path}.thresholdMetric.metricSource"
    spec = _spec(documents, sli.threshold_metric, where, {"metric", "where"})
    _is(spec, "metric", "total_ms", f"{where}.spec")
    return Measured(float(objective.value), _cohort(spec, f"{where}.spec"))


def _ratio(documents: Documents, ratio: RatioMetric, path: str) -> Measured:
    if ratio.total is None:
        raise UnsupportedError(f"{path}.raw", "cannot be honoured", "give good and total")
    if not ratio.counter:
        what = "must be true: requests are counted one by one"
        raise UnsupportedError(f"{path}.counter", what, "write counter: true")
    name, status, key = ("good", "ok", "max_ms") if ratio.good else ("bad", "failed", "over_ms")
    part = ratio.good or ratio.bad
    if part is None:
        raise UnsupportedError(path, "has neither good nor bad", "add good")
    where, total_at = f"{path}.{name}.metricSource", f"{path}.total.metricSource"
    spec = _spec(documents, part, where, {"metric", "status", key, "where"})
    total = _spec(documents, ratio.total, total_at, {"metric", "where"})
    _is(spec, "metric", "requests", f"{where}.spec")
    _is(spec, "status", status, f"{where}.spec")
    _is(total, "metric", "requests", f"{total_at}.spec")
    cohort = _cohort(spec, f"{where}.spec")
    if cohort != _cohort(total, f"{total_at}.spec"):
        what = f"counts other requests than {name}"
        raise UnsupportedError(f"{total_at}.spec.where", what, "make them the same")
    return Measured(_limit(spec, key, f"{where}.spec"), cohort)


def _limit(spec: Mapping[str, Any], key: str, path: str) -> float | None:
    value = spec.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise UnsupportedError(f"{path}.{key}", "is no latency", "give milliseconds above 0")
    return float(value)


def _spec(documents: Documents, metric: Metric, path: str, keys: set[str]) -> Mapping[str, Any]:
    source = metric.metric_source
    kind = source.type
    if source.metric_source_ref is not None:
        at = f"{path}.metricSourceRef"
        named = documents.named(DataSource, source.metric_source_ref, at)
        kind = kind or named.spec.type
    if kind != SOURCE:
        what = f"{kind or 'nothing'} is measured elsewhere"
        raise UnsupportedError(f"{path}.type", what, f"write type: {SOURCE}")
    if other := sorted(set(source.spec) - keys):
        what, remedy = "no such key", f"keys here: {', '.join(sorted(keys))}"
        raise UnsupportedError(f"{path}.spec.{other[0]}", what, remedy)
    return source.spec


def _is(spec: Mapping[str, Any], key: str, wanted: str, path: str) -> None:
    if spec.get(key) != wanted:
        what = f"{spec.get(key)!r} cannot be measured here"
        raise UnsupportedError(f"{path}.{key}", what, f"write {key}: {wanted}")


def _cohort(spec: Mapping[str, Any], path: str) -> Cohort:
    where = spec.get("where", {})
    if not isinstance(where, Mapping) or not all(isinstance(v, str) for v in where.values()):
        raise UnsupportedError(f"{path}.where", "is no mapping of texts", _WHERE_REMEDY)
    return tuple(sorted((str(key), str(value)) for key, value in where.items()))

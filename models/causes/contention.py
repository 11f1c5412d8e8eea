"""Contention: requests wait for each other, or for what else runs on the same machine.

Three kinds of evidence; the strongest gives the weight:
- waiting stages: their share of the gap. Established 0.9: waiting is measured, what holds the
  resource is not.
- a noisy neighbour: how much more often slow requests than fast ones are of one replica, so far
  as it stays slower at equal shape. Established 0.9: replicas are alike but for where they run.
- load: the share of the gap that lies in spans of time whose level rises with the rate of
  arrivals, established 0.9 times r² of that rise; or what covariates of load (such as in_flight)
  explain, established 0.9.
Cold windows are taken off all three.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tailbudget.models.causes.cold import cold_share
from tailbudget.models.causes.gap import Part
from tailbudget.models.causes.load import Load, load_of, rises_with
from tailbudget.models.causes.names import Role, is_external, is_waiting
from tailbudget.models.causes.picture import Picture
from tailbudget.models.causes.weighed import Weighed
from tailbudget.models.causes.words import in_ms, num
from tailbudget.schemas.proposals import CauseName

_MEASURED: Final = 0.9


def weigh(picture: Picture) -> Weighed | None:
    """Return the cause; None when nothing waits, no replica differs and load changes nothing."""
    load = load_of(picture.evidence)
    kinds = (_waiting(picture, load), _neighbour(picture), _loaded(picture, load))
    return max(filter(None, kinds), key=lambda kind: kind.score, default=None)


def neighbour(picture: Picture) -> tuple[float, int]:
    """Return the share of the gap tied to the slowest replica, and which one that is."""
    replicas = picture.instances
    best = (0.0, 0)
    for at in range(len(replicas.names) if replicas else 0):
        raw, level = replicas.excess(at) if replicas else (0.0, 0.0)
        if raw > 0 and replicas:
            best = max(best, (replicas.concentration(at) * min(level / raw, 1.0), at))
    return best


def _waiting(picture: Picture, load: Load) -> Weighed | None:
    parts = [p for p in picture.stages if is_waiting(p.stage) and p.delta_ms > 0]
    if not parts:
        return None
    most = max(parts, key=lambda part: part.delta_ms)
    ms = sum(part.delta_ms for part in parts)
    row = next(row for row in picture.table.rows if row.stage == most.stage)
    evidence = [
        (
            f"{most.stage} is waiting: {in_ms(row.mean_slow_ms)} in slow requests, "
            f"{in_ms(row.mean_fast_ms)} in fast ones"
        ),
    ]
    against = []
    waits = load.stage_ms[:, load.stages.index(most.stage)]
    rise, in_flight = rises_with(load.rate, waits), rises_with(load.in_flight, waits)
    if rise:
        evidence.append(
            f"{most.stage} rises with the rate of arrivals (r² = {rise:.2f} over slots)"
        )
    elif len(load.rate):
        against.append(f"{most.stage} does not rise with the rate of arrivals over slots")
    if in_flight:
        evidence.append(
            f"{most.stage} rises with the requests in flight (r² = {in_flight:.2f}): "
            f"{_busy(load, waits)}"
        )
    return Weighed(
        cause=CauseName.CONTENTION,
        stage=most.stage,
        share=picture.share(ms) * (1 - cold_share(picture)),
        established=_MEASURED * picture.confidence,
        evidence=tuple(evidence),
        against=tuple(against),
        missing=() if rise else ("measure queue length and utilisation of what is waited for",),
    )


def _busy(load: Load, waits: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    order = np.argsort(waits)
    tenth = max(len(order) // 10, 1)
    calm, busy = load.in_flight[order[:tenth]].mean(), load.in_flight[order[-tenth:]].mean()
    return f"{num(busy)} in the tenth of the slots that wait most, {num(calm)} in the calmest"


def _neighbour(picture: Picture) -> Weighed | None:
    share, at = neighbour(picture)
    replicas = picture.instances
    if not share or replicas is None:
        return None
    name, dimension = replicas.names[at], replicas.dimension
    names = [part.stage for part in picture.stages]
    stage = max(names, key=lambda stage: replicas.excess(at, stage)[1])
    raw, level = replicas.excess(at)
    against = (
        f"{in_ms(raw - level)} of the {in_ms(raw)} are explained by its inputs",
    ) if level < raw / 2 else ()  # fmt: skip
    return Weighed(
        cause=CauseName.CONTENTION,
        stage=stage,
        share=share * (1 - cold_share(picture)),
        established=_MEASURED * picture.confidence,
        evidence=(
            (
                f"{dimension}={name} serves {100 * replicas.traffic[at]:.3g} % of the requests and "
                f"{100 * replicas.slow[at]:.3g} % of the slow ones: a noisy neighbour"
            ),
            (
                f"at equal shape its mean is {in_ms(level)} above that of the other "
                f"{len(replicas.names) - 1}, most of it in {stage}"
            ),
        ),
        against=against,
        missing=(f"measure utilisation, clock and temperature of {dimension}={name}",),
        cohort=f"{dimension}={name}",
    )


def _loaded(picture: Picture, load: Load) -> Weighed | None:
    spans = picture.split.spans
    warm = ~spans.cold
    rate = load.rate_of(spans)[warm]
    found: list[tuple[float, float, Part, float]] = []
    for part in picture.stages:
        if is_waiting(part.stage) or is_external(part.stage, picture.external):
            continue
        rise = rises_with(rate, part.levels_ms[warm])
        found.append((picture.share(part.level_ms), rise, part, rise))
        found.append((picture.share(picture.explained_ms(part, Role.LOAD)), 1.0, part, rise))
    if not found:
        return None
    share, weight, part, rise = max(found, key=lambda row: row[0] * row[1])
    if share * weight <= 0:
        return None
    return Weighed(
        cause=CauseName.CONTENTION,
        stage=part.stage,
        share=share * (1 - cold_share(picture)),
        established=_MEASURED * weight * picture.confidence,
        evidence=_loaded_evidence(picture, part.stage, rise),
        against=("no stage measures waiting",),
        missing=("time the wait before work begins as a stage of its own, such as queue_ms",),
    )


def _loaded_evidence(picture: Picture, stage: str, rise: float) -> tuple[str, ...]:
    part = picture.part(stage)
    texts = []
    if rise:
        texts.append(
            f"at equal inputs {stage} rises with the rate of arrivals (r² = {rise:.2f} over "
            f"{len(picture.split.spans)} spans of time)"
        )
    ms = picture.explained_ms(part, Role.LOAD)
    if ms > 0:
        texts.append(f"what ran at the same time explains {in_ms(ms)} of {stage}")
    return tuple(texts)

"""What all causes are weighed by, measured once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from tailbudget.models.causes.features import features_of
from tailbudget.models.causes.gap import Part, Requests, Split, parts, split
from tailbudget.models.causes.names import NO_COMPONENT, Role, is_flag, role
from tailbudget.models.causes.values import Values, values_of
from tailbudget.models.evidence import Evidence, touched
from tailbudget.models.ranks import EVIDENCE
from tailbudget.models.sampled import Sampled, in_band, sampled
from tailbudget.models.tail import FAST, Band, band_limits_ms, slow_band, slow_fast
from tailbudget.schemas.cohorts import is_instance
from tailbudget.schemas.findings import Findings
from tailbudget.schemas.sections import StageRole
from tailbudget.schemas.summary import TOTAL
from tailbudget.schemas.verdicts import TailTable

_CAP: Final = 4.0
"""Times the end of the slow band (the p99 if it has none) at which a latency is cut off: a request
further out is in neither band, and would bend every fit."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The gap between slow and fast requests, with its parts.

    Attributes:
        evidence: what it was measured on.
        found: the sections that were measured.
        external: stages declared to be calls to other processes.
        band: the slow band.
        table: the exact slow-minus-fast table.
        rows: the sampled requests.
        requests: the same, ready to be taken apart.
        split: the requests taken apart.
        whole: the gap of the total, on the sample.
        stages: its parts by stage; containers and what is no component are not among them.
        instances: replicas, when they are named.
        flags: cohort dimensions that say whether a cache had the answer.
        others: the remaining cohort dimensions.
    """

    evidence: Evidence
    found: Findings
    external: frozenset[str]
    band: Band
    table: TailTable
    rows: Sampled
    requests: Requests
    split: Split
    whole: Part
    stages: tuple[Part, ...]
    instances: Values | None
    flags: tuple[Values, ...]
    others: tuple[Values, ...]

    @property
    def gap_ms(self) -> float:
        """The gap of the total on the sample, above 0."""
        return self.whole.delta_ms

    @property
    def confidence(self) -> float:
        """How far the sampled slow requests can be relied on: with as many as `EVIDENCE`, half.

        Means of n requests are known to 1/sqrt(n) of their spread; n / (n + 10) is 0.5 at ten and
        0.9 at ninety.
        """
        n = int(self.requests.slow.sum())
        return n / (n + EVIDENCE)

    def explained_ms(self, part: Part, *roles: Role) -> float:
        """Return what the covariates of these roles explain of a stage's difference."""
        return sum(ms for name, ms in part.by_covariate.items() if role(name) in roles)

    def share(self, ms: float) -> float:
        """Return milliseconds as a share of the gap, 0 to 1."""
        return min(max(ms / self.gap_ms, 0.0), 1.0)

    def part(self, stage: str) -> Part:
        """Return the part of a stage."""
        return next(part for part in self.stages if part.stage == stage)


def picture_of(
    evidence: Evidence, found: Findings, external: Collection[str] = ()
) -> Picture | str:
    """Return the picture, or in a sentence what is missing for one."""
    band = slow_band(found.slow_request_threshold)
    names = _components(found)
    if not names:
        return "time the parts of a request: without stages no time can be attributed"
    table = slow_fast(evidence.total, band) if len(evidence.total.pane_ns) else None
    if table is None or table.slow_n < EVIDENCE:
        n = table.slow_n if table else 0
        return f"more requests: the slow band has {n:,}, and {EVIDENCE} are needed"
    rows = sampled(evidence.total)
    requests = _requests(evidence, rows, names, band)
    if min(requests.slow.sum(), requests.fast.sum()) < EVIDENCE / 2:
        return "a larger sample: too few of the sampled requests lie in the two bands"
    found_split = split(requests)
    measured = parts(requests, found_split)
    whole = measured[0]
    if whole.delta_ms <= 0 or table.total.delta_ms <= 0:
        return "nothing: slow requests take no longer than fast ones"
    dimensions = _dimensions(evidence)
    return Picture(
        evidence=evidence,
        found=found,
        external=frozenset(external),
        band=band,
        table=table,
        rows=rows,
        requests=requests,
        split=found_split,
        whole=whole,
        stages=measured[1:],
        instances=next(_values(evidence, band, filter(is_instance, dimensions)), None),
        flags=tuple(_values(evidence, band, filter(is_flag, dimensions))),
        others=tuple(_values(evidence, band, _plain(dimensions))),
    )


def _components(found: Findings) -> tuple[str, ...]:
    return tuple(
        row.stage
        for row in found.stages
        if row.stage not in NO_COMPONENT and row.role is not StageRole.CONTAINER
    )


def _requests(evidence: Evidence, rows: Sampled, names: tuple[str, ...], band: Band) -> Requests:
    columns = [rows.stages.index(name) for name in (TOTAL, *names)]
    end_ms = band_limits_ms(evidence.total, (FAST[0], band[1] if band[1] != "max" else "p99"))[1]
    stage_ms = np.minimum(np.nan_to_num(rows.stage_ms[:, columns]), _CAP * end_ms)
    return Requests(
        ts_ns=rows.ts_ns,
        stages=(TOTAL, *names),
        stage_ms=stage_ms,
        features=features_of(rows),
        slow=in_band(evidence.total, rows, band),
        fast=in_band(evidence.total, rows, FAST),
        cold=touched(rows.ts_ns, 1, evidence.cold_windows),
    )


def _dimensions(evidence: Evidence) -> tuple[str, ...]:
    names = {name for cohort in evidence.cohorts.cohorts for name, _ in cohort}
    return tuple(sorted(names - {"(other)"}))


def _plain(dimensions: Iterable[str]) -> Iterable[str]:
    return (name for name in dimensions if not is_instance(name) and not is_flag(name))


def _values(evidence: Evidence, band: Band, dimensions: Iterable[str]) -> Iterator[Values]:
    for name in dimensions:
        values = values_of(evidence.total, evidence.cohorts, name, band)
        if values is not None:
            yield values

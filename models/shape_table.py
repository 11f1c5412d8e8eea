"""How latency follows the shape of the input.

Fits are from co-moments, on all requests. How a dimension is spread in the bands, and latency for
one unit of a length, are from the sampled requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from tailbudget.models.attribution import structure
from tailbudget.models.breakdown import Floats, components
from tailbudget.models.ranks import requests_needed
from tailbudget.models.regression import Fit, correlation, fit
from tailbudget.models.sampled import FAST, Sampled, in_band, sampled
from tailbudget.models.shape_units import length_unit, unit_of
from tailbudget.models.sketch import nearest_rank
from tailbudget.models.student import t_quantile
from tailbudget.models.tail import slow_band
from tailbudget.schemas.ledger import ACCEPTED
from tailbudget.schemas.sections import Collinear, Interval, PerUnit, ShapeBand, ShapeRow
from tailbudget.schemas.slo import QUANTILES
from tailbudget.schemas.summary import TOTAL, UNATTRIBUTED, Summary

COLLINEAR: Final = 0.7
"""Correlation beyond which slopes are badly distorted: Dormann et al., Collinearity, Ecography 36
(2013), 27-46."""

CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class ShapeTable:
    """What is to say about input-shape dimensions.

    Attributes:
        rows: a row for the total, each stage and unattributed time, on each covariate.
        bands: how each covariate is spread in the slow and in the fast band.
        collinear: covariates that move together.
        per_unit: latency for one unit of each covariate that is a length.
        notes: what a reader must know, in sentences.
    """

    rows: tuple[ShapeRow, ...]
    bands: tuple[ShapeBand, ...]
    collinear: tuple[Collinear, ...]
    per_unit: tuple[PerUnit, ...]
    notes: tuple[str, ...]


def shape_table(total: Summary, threshold: str | float) -> ShapeTable:
    """Return how the stages of a one-group summary (or of an empty one) follow its covariates.

    A fit that the requests do not determine (a constant covariate, too few of them, negative
    values for a logarithm) is None in its columns.

    Raises:
        ValueError: the summary has several groups, or the threshold names no percentile.
    """
    if not len(total.cohorts) or not total.covariates:
        return ShapeTable((), (), (), (), ())
    stages = _stages(total, threshold)
    requests = sampled(total)
    together = tuple(_collinear(total))
    rows = tuple(_row(total, stage, name) for stage in stages for name in total.covariates)
    return ShapeTable(
        rows=rows,
        bands=tuple(_bands(total, requests, threshold)),
        collinear=together,
        per_unit=tuple(_per_unit(requests, stages)),
        notes=tuple(_notes(total, rows, together, requests)),
    )


def _stages(total: Summary, threshold: str | float) -> tuple[str, ...]:
    """Return what to fit; unattributed time as recorded knows no containers, nor overlap."""
    rest = (UNATTRIBUTED,) if structure(total, threshold).plain else ()
    return (TOTAL, *components(total), *rest)


def _row(total: Summary, stage: str, covariate: str) -> ShapeRow:
    at = (total.covariates.index(covariate), total.stages.index(stage))
    line = fit(total, stage, covariate)
    parabola = fit(total, stage, covariate, "quadratic")
    power = fit(total, stage, covariate, "loglog")
    return ShapeRow(
        stage=stage,
        covariate=covariate,
        n=int(total.moments.n[0][at]),
        r2=line.r2 if line else None,
        slope_ms_per_unit=line.slope if line else None,
        intercept_ms=line.intercept if line else None,
        slope_interval_ms=_interval(line, _rows_a_request(total)) if line else None,
        quadratic_r2=parabola.r2 if parabola else None,
        loglog_r2=power.r2 if power else None,
        exponent=power.slope if power else None,
        unit=unit_of(covariate),
    )


def _rows_a_request(total: Summary) -> float:
    """Return how many records one request stands on: below 1 when telemetry is sampled."""
    requests = int(total.requests[0])
    rows = sum(count for (_, reason), count in total.ledger.items() if reason == ACCEPTED)
    return min(rows / requests, 1.0) if rows and requests else 1.0


def _interval(line: Fit, rows_a_request: float) -> Interval | None:
    """Return the interval of the slope: Student's t with as many degrees as records, less two.

    Draper and Smith, Applied Regression Analysis (1998), 1.4. It takes the scatter about the line
    to be alike everywhere. A request that stands for several is one record, not several.
    """
    freedom = round(line.n * rows_a_request) - 2
    if line.slope_error is None or freedom < 1:
        return None
    error = line.slope_error * ((line.n - 2) / freedom) ** 0.5
    reach = t_quantile(CONFIDENCE, freedom) * error
    return line.slope - reach, line.slope + reach


def _collinear(total: Summary) -> Iterator[Collinear]:
    for first, second in combinations(total.covariates, 2):
        r = correlation(total, first, second)
        if r is not None and abs(r) > COLLINEAR:
            yield Collinear(first, second, r)


def _bands(total: Summary, requests: Sampled, threshold: str | float) -> Iterator[ShapeBand]:
    if not len(requests):
        return
    inside = {
        "slow": in_band(total, requests, slow_band(threshold)),
        "fast": in_band(total, requests, FAST),
    }
    for covariate in requests.covariates:
        for band, rows in inside.items():
            values = requests.of(covariate)[rows]
            found = np.sort(values[~np.isnan(values)])
            p50, p95, p99 = _percentiles(found)
            most = float(found[-1]) if len(found) else None
            yield ShapeBand(covariate, band, len(found), p50, p95, p99, most)


def _per_unit(requests: Sampled, stages: Sequence[str]) -> Iterator[PerUnit]:
    for covariate in requests.covariates:
        if length_unit(covariate) is None:
            continue
        units = requests.of(covariate)
        for stage in stages:
            both = (units > 0) & ~np.isnan(requests.stage(stage))
            found = np.sort(requests.stage(stage)[both] / units[both])
            values = (
                value if len(found) >= requests_needed(q) else None
                for value, q in zip(_percentiles(found), QUANTILES.values(), strict=True)
            )
            yield PerUnit(stage, covariate, len(found), *values)


def _percentiles(ordered: Floats) -> tuple[float | None, ...]:
    """Return the nearest-rank p50, p95 and p99 of ascending values."""
    if not len(ordered):
        return (None, None, None)
    at = [nearest_rank(len(ordered), q) - 1 for q in QUANTILES.values()]
    return tuple(ordered[at].tolist())


def _notes(
    total: Summary, rows: Sequence[ShapeRow], together: Sequence[Collinear], requests: Sampled
) -> Iterator[str]:
    for pair in together:
        yield (
            f"{pair.first} and {pair.second} move together (r {pair.r:.2f}): "
            "the slope of neither stands alone"
        )
    for row in rows:
        if row.stage == TOTAL and row.r2 is None:
            yield f"no fit on {row.covariate}: too few of the requests carry it, or it never varies"
    if len(requests):
        of = int(total.n[0, total.stages.index(TOTAL)])
        yield f"spread and latency a unit are those of {len(requests):,} of {of:,} requests"

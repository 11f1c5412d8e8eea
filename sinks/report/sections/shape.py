"""Section 5: how latency follows the shape of the input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tailbudget.schemas.sections import PerUnit, ShapeBand, ShapeRow
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.clean import clean_name
from tailbudget.sinks.report.document import (
    Block,
    Bullets,
    Line,
    Name,
    Paragraph,
    Section,
    Span,
    Table,
    columns,
    cut,
    paragraph,
    say,
)
from tailbudget.sinks.report.figures import (
    count,
    insufficient,
    ms,
    not_measured,
    number,
    ratio,
)

_LINES: Final = "Stage | Input | n > | R² > | Slope > | 95 % interval > | At zero >"
_CURVES: Final = "Stage | Input | R², line > | R², parabola > | R², power law > | Power >"
_NO_FIT: Final = "no fit"
"""Of too few requests, or of an input that never varies; a warning says which inputs."""

_BANDS: Final = "Input | Band | n > | P50 > | P95 > | P99 > | Max >"
_PER_UNIT: Final = "Stage | For one unit of | n > | P50 > | P95 > | P99 >"


def shape(audit: Audit) -> Section:
    """Return the fits, how inputs are spread in the two bands, and the time of one unit."""
    blocks = (*_fits(audit), *_bands(audit), *_collinear(audit), *_per_unit(audit))
    if not blocks:
        blocks = (paragraph("Not measured: no input-shape dimension is known."),)
    return Section("shape", "Input shape", blocks)


def strongest(audit: Audit) -> ShapeRow | None:
    """Return the fit that explains most; None when there is none."""
    known = [row for row in audit.shape if row.r2 is not None]
    return max(known, key=lambda row: row.r2 or 0, default=None)


def _fits(audit: Audit) -> Iterator[Block]:
    best = strongest(audit)
    if best is not None:
        yield Paragraph(_sentence(best))
    if audit.shape:
        rows, more = cut(tuple(say(*_straight(row)) for row in audit.shape), "fits")
        yield Table("Latency by input shape, fitted by a line", columns(_LINES), rows)
        yield from more
    curved = tuple(say(*_curved(row)) for row in audit.shape if _has_curves(row))
    if curved:
        rows, more = cut(curved, "fits")
        yield Table("The same fitted by curves", columns(_CURVES), rows)
        yield from more


def _sentence(best: ShapeRow) -> Line:
    return say(
        "Strongest: ",
        Name(best.covariate),
        f" explains {number(100 * (best.r2 or 0))} % of the variance of ",
        Name(best.stage),
        f", {_per(best.slope_ms_per_unit, best)}.",
    )


def _straight(row: ShapeRow) -> Iterator[Span]:
    yield Name(row.stage)
    yield Name(row.covariate)
    yield count(row.n)
    yield ratio(row.r2, _NO_FIT)
    yield _per(row.slope_ms_per_unit, row)
    yield _slope_interval(row)
    yield ms(row.intercept_ms, _NO_FIT)


def _has_curves(row: ShapeRow) -> bool:
    return row.quadratic_r2 is not None or row.loglog_r2 is not None


def _curved(row: ShapeRow) -> Iterator[Span]:
    yield Name(row.stage)
    yield Name(row.covariate)
    yield ratio(row.r2)
    yield ratio(row.quadratic_r2)
    yield ratio(row.loglog_r2)
    yield ratio(row.exponent)


def _per(value: float | None, row: ShapeRow) -> str:
    if value is None:
        return _NO_FIT
    return f"{number(value)} ms/{clean_name(row.unit) if row.unit else 'unit'}"


def _slope_interval(row: ShapeRow) -> str:
    if row.slope_interval_ms is None:
        return not_measured()
    low, high = row.slope_interval_ms
    return f"{number(low)} to {number(high)}"


def _bands(audit: Audit) -> Iterator[Block]:
    if audit.shape_bands:
        rows, more = cut(tuple(say(*_band(row)) for row in audit.shape_bands), "bands")
        yield Table("Inputs of slow and of fast requests, sampled", columns(_BANDS), rows)
        yield from more


def _band(row: ShapeBand) -> Iterator[Span]:
    few = insufficient(row.n)
    yield Name(row.covariate)
    yield row.band
    yield count(row.n)
    for value in (row.p50, row.p95, row.p99, row.max):
        yield few if value is None else number(value)


def _collinear(audit: Audit) -> Iterator[Block]:
    if audit.collinear:
        lines = (
            say(Name(pair.first), " and ", Name(pair.second), f" (r = {number(pair.r)})")
            for pair in audit.collinear
        )
        yield Bullets(tuple(lines), "Inputs that move together; neither slope stands alone:")


def _per_unit(audit: Audit) -> Iterator[Block]:
    if audit.per_unit:
        rows, more = cut(tuple(say(*_unit(row)) for row in audit.per_unit), "rows")
        yield Table("Latency of one unit of length, sampled", columns(_PER_UNIT), rows)
        yield from more


def _unit(row: PerUnit) -> Iterator[Span]:
    few = insufficient(row.n)
    yield Name(row.stage)
    yield Name(row.covariate)
    yield count(row.n)
    for value in (row.p50_ms, row.p95_ms, row.p99_ms):
        yield ms(value, few)

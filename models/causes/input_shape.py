"""Input shape: slow requests are slow because their inputs are large.

Share: what the input-shape covariates explain of the gap in all stages, at equal time. Established:
0.95 where the slope within cohorts is that of all requests; less in proportion where it is flatter
(the cohorts differ, not the inputs); 0.75 where inputs vary too little within cohorts to tell; half
where inputs vary only with time.
"""

from __future__ import annotations

from typing import Final

from tailbudget.models.causes.carrier import carrier
from tailbudget.models.causes.gap import Part
from tailbudget.models.causes.names import Role, is_waiting, role
from tailbudget.models.causes.picture import Picture
from tailbudget.models.causes.values import slopes_of
from tailbudget.models.causes.weighed import Weighed
from tailbudget.models.causes.words import in_ms, largest, median, num
from tailbudget.models.regression import fit
from tailbudget.schemas.proposals import CauseName

_BEST: Final = 0.95
_CONFOUNDED: Final = 0.75
_TIED: Final = 0.5
_MOSTLY: Final = 0.5
_KNOWN: Final = 0.25
"""Standard error over slope beyond which the slope within cohorts says nothing either way."""


def shaped(part: Part) -> bool:
    """Tell whether inputs may explain a stage: waiting is not for one's own input."""
    return not is_waiting(part.stage)


def shape_ms(picture: Picture) -> float:
    """Return what input shape explains of the gap, over all stages."""
    explained = (picture.explained_ms(p, Role.SHAPE) for p in picture.stages if shaped(p))
    return sum(max(ms, 0.0) for ms in explained)


def weigh(picture: Picture) -> Weighed | None:
    """Return the cause; None when there is no covariate, or it explains nothing."""
    strongest = _strongest(picture)
    if strongest is None:
        return None
    part, covariate = strongest
    share = picture.share(shape_ms(picture))
    factor, said = established(picture, part.stage, covariate)
    carried = carrier(picture)
    evidence = _evidence(picture, part, covariate)
    if carried:
        evidence += (carried.sentence,)
    if share > _MOSTLY:
        evidence += (_no_faster_model(picture, share, covariate),)
    against = said + _left(picture, part, covariate)
    return Weighed(
        cause=CauseName.INPUT_SHAPE,
        stage=part.stage,
        share=share,
        established=factor * picture.confidence,
        evidence=evidence,
        against=against,
        cohort=carried.cohort if carried else "",
        covariate=covariate,
    )


def established(picture: Picture, stage: str, covariate: str) -> tuple[float, tuple[str, ...]]:
    """Return how well the effect of a covariate is established, and what speaks against it."""
    if picture.split.tied:
        text = f"{covariate} changes only with time: what else changed then cannot be told apart"
        return _TIED, (text,)
    slopes = slopes_of(picture.evidence.cohorts, stage, covariate)
    if slopes is None or len(picture.evidence.cohorts.cohorts) < 2:
        return _BEST, ()
    if slopes.pooled <= 0 or slopes.error > _KNOWN * slopes.pooled:
        text = (
            f"whether {stage} grows with {covariate} within cohorts too is not known well enough "
            f"({num(slopes.within)} ± {num(slopes.error)} ms for one more)"
        )
        return _CONFOUNDED, (text,)
    ratio = min(max(slopes.within / slopes.pooled, 0.0), 1.0)
    if ratio > _MOSTLY:
        return _BEST * ratio, ()
    text = (
        f"within cohorts {stage} grows by {in_ms(slopes.within)} for one more of {covariate}, "
        f"not by {in_ms(slopes.pooled)} as over all: the cohorts differ, not the inputs"
    )
    return _BEST * ratio, (text,)


def credible(picture: Picture, stage: str, covariate: str) -> float:
    """Return which part of what a covariate explains is its own, 0 to 1."""
    return established(picture, stage, covariate)[0] / _BEST


def _strongest(picture: Picture) -> tuple[Part, str] | None:
    found = [
        (ms, part, name)
        for part in picture.stages
        if shaped(part)
        for name, ms in part.by_covariate.items()
        if role(name) is Role.SHAPE and ms > 0
    ]
    if not found:
        return None
    _, part, name = max(found, key=lambda row: row[0])
    return part, name


def _evidence(picture: Picture, part: Part, covariate: str) -> tuple[str, ...]:
    values, rows = picture.rows.of(covariate), picture.requests
    slow, fast = values[rows.slow], values[rows.fast]
    line = fit(picture.evidence.total, part.stage, covariate)
    texts = [
        (
            f"inputs explain {in_ms(part.by_covariate[covariate])} of the {in_ms(part.delta_ms)} "
            f"by which slow requests are longer in {part.stage} ({covariate}, at equal time)"
        ),
        (
            f"{covariate} has a median of {median(slow)} in slow requests and {median(fast)} in "
            f"fast ones; the largest are {largest(slow)} and {largest(fast)}"
        ),
    ]
    if line is not None:
        texts.append(
            f"R² of {part.stage} on {covariate} is {line.r2:.2f} over {line.n:,} requests: "
            f"{in_ms(line.slope)} for one more"
        )
    return tuple(texts)


def _no_faster_model(picture: Picture, share: float, covariate: str) -> str:
    """Say why a faster model leaves the tail where it is, relative to the rest."""
    values, rows = picture.rows.of(covariate), picture.requests
    return (
        f"a faster model would not help by itself: inputs ({covariate}) explain "
        f"{100 * share:.0f} % of what slow requests take longer, and for any model the largest "
        f"stay at {largest(values[rows.slow])} where {median(values[rows.fast])} is usual"
    )


def _left(picture: Picture, part: Part, covariate: str) -> tuple[str, ...]:
    texts = []
    apart = part.level_ms + part.rest_ms
    if apart > 0.25 * part.delta_ms:
        texts.append(
            f"{in_ms(apart)} of the {in_ms(part.delta_ms)} in {part.stage} remain at equal "
            f"inputs, {in_ms(part.level_ms)} of it in spans of time that were slow as a whole"
        )
    texts += [
        f"{pair.first} and {pair.second} move together (r = {pair.r:.2f}): "
        "which of them it is cannot be told"
        for pair in picture.found.collinear
        if covariate in (pair.first, pair.second)
    ]
    return tuple(texts)

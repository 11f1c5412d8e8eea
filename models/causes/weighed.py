"""How much weight a cause has.

The score of every cause is the same product, so that causes compare:

    score = share of the slow-minus-fast gap tied to the cause x how well that tie is established

The share is measured. How well it is established is 0 to 1: what the kind of evidence is worth
(each cause says why), less what speaks against it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from tailbudget.schemas.proposals import Cause, CauseName

NAMED: Final = 0.25
"""The score from which a cause is named: less, and a perfect fix leaves three quarters."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A cause with its weight; see `Cause` for the rest.

    Attributes:
        cause: its name.
        stage: the stage that it acts through.
        share: of the gap, 0 to 1.
        established: 0 to 1.
        evidence: sentences for it.
        against: sentences against it.
        missing: what to measure next.
        cohort: "dimension=value", or empty.
        covariate: or empty.
    """

    cause: CauseName
    stage: str
    share: float
    established: float
    evidence: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    cohort: str = ""
    covariate: str = ""

    @property
    def score(self) -> float:
        """The product, each factor within 0 and 1."""
        return min(max(self.share, 0.0), 1.0) * min(max(self.established, 0.0), 1.0)

    def told(self) -> Cause:
        """Return it for the report."""
        return Cause(
            cause=self.cause,
            stage=self.stage,
            score=self.score,
            evidence=self.evidence,
            against=self.against,
            missing=self.missing,
            cohort=self.cohort,
            covariate=self.covariate,
        )


@dataclass(frozen=True, slots=True)
class Observation:
    """What somebody else saw of a cause: an anomaly model, a hardware signal.

    Attributes:
        cause: which one it is about.
        stage: the stage; empty is any.
        speaks_for: else it speaks against.
        weight: 0 to 1, how much of the doubt (or of what is established) it takes away.
        sentence: with its figures.
    """

    cause: CauseName
    stage: str
    speaks_for: bool
    weight: float
    sentence: str


def observed(weighed: Weighed, observations: Iterable[Observation]) -> Weighed:
    """Return a cause with what was observed of it; its share of the gap stays as measured."""
    for seen in observations:
        if seen.cause is not weighed.cause or seen.stage not in ("", weighed.stage):
            continue
        e = weighed.established
        if seen.speaks_for:
            weighed = replace(
                weighed,
                established=1 - (1 - e) * (1 - seen.weight),
                evidence=(*weighed.evidence, seen.sentence),
            )
        else:
            weighed = replace(
                weighed,
                established=e * (1 - seen.weight),
                against=(*weighed.against, seen.sentence),
            )
    return weighed

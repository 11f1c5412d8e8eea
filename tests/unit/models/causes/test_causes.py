"""Which cause is named first, on simulated services whose cause is known."""

from __future__ import annotations

import pytest
from findings import findings
from simulated import Service
from tail_causes import CASES, PAIRS, Case

from tailbudget.models.causes import causes
from tailbudget.models.evidence import Evidence
from tailbudget.schemas.proposals import Cause

SEEDS = (1, 2, 3)


def first(evidence: Evidence) -> Cause:
    """Return the first cause that is named."""
    return causes(evidence, findings(evidence))[0]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_each_cause_ranks_first_where_it_is_the_cause(case: Case, seed: int) -> None:
    """The simulated cause is the first one named, with evidence."""
    named = first(case(Service(seed)))
    assert named.cause is CASES[case], named
    assert named.evidence


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", PAIRS, ids=lambda case: case.__name__)
def test_one_picture_and_two_causes(case: Case, seed: int) -> None:
    """The cause is told from what only looks like it."""
    named = first(case(Service(seed)))
    assert named.cause is PAIRS[case], named

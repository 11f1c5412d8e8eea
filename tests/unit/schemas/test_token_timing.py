"""What tools mean by token timings."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tailbudget.schemas import refusals
from tailbudget.schemas.errors import Refused
from tailbudget.schemas.settings import Settings
from tailbudget.schemas.token_timing import DEFINITIONS, Source, require_same
from tailbudget.streams.audit_log import Wanted, open_log
from tailbudget.streams.log_report import Asked, make
from tailbudget.streams.sources import FORMATS

DATA = Path(__file__).parents[2] / "data"
NOW_NS = 1_800_000_000 * 10**9


def source(name: str) -> Source:
    return Source(name, DEFINITIONS.get(name))


def test_only_equal_definitions_are_compared() -> None:
    """Of formats that define their token timings, two compare where all of it agrees."""
    assert DEFINITIONS.keys() <= FORMATS.keys()
    for one, other in itertools.product(DEFINITIONS, repeat=2):
        if DEFINITIONS[one] == DEFINITIONS[other]:
            require_same(source(one), source(other))
        else:
            with pytest.raises(Refused, match=f"{one} and {other}") as caught:
                require_same(source(one), source(other))
            assert caught.value.reason == refusals.DEFINITIONS
    require_same(source("native"), source("llmperf"))


def test_a_baseline_of_another_definition_is_refused() -> None:
    """AIPerf's time to the first token is not LLMPerf's."""
    log, other = "aiperf_v0.5_profile_export.jsonl", "llmperf_groq_70b_individual.json"
    asked = Asked(DATA / log, Wanted(service="x"), NOW_NS, baseline=DATA / other)
    with pytest.raises(Refused, match="do not mean the same"):
        make(Settings(), asked)


def test_the_report_says_the_definition() -> None:
    """A reader of the report learns what the tool means."""
    reading = open_log(DATA / "llmperf_groq_70b_individual.json", now_ns=NOW_NS)
    (said,) = (one for one in reading.found.assumptions if one.startswith("token timings"))
    assert said == (
        "token timings of llmperf: to the first token at the client, reasoning is not told apart;"
        " time of an output token: the whole latency over all tokens"
    )

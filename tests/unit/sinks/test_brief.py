"""The optimisation brief: what it has to say, and in how many words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from audited import audit_of
from found import cause_of
from gathered import gathered
from known_causes import CLASSIFIER_SLO, FRAUD_SLO, classifier, classifier_cause, fraud, fraud_cause

from tailbudget.models.advice import WORDS, brief
from tailbudget.schemas.brief import Brief
from tailbudget.schemas.catalogue import Catalogue, load_catalogue
from tailbudget.schemas.context import Context
from tailbudget.schemas.proposals import CauseName
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.markdown_report import section_markdown
from tailbudget.sinks.report.sections.brief import brief as brief_section

LONG = "every " * 33
CONTEXTS = {
    "nothing": Context(),
    "everything": Context(
        framework="PyTorch 2.4",
        serving_runtime="vLLM",
        deployment_target="Kubernetes",
        hardware="2 x A10G",
        traffic_pattern="40 requests a second, peaks at noon",
        constraints=("no loss of quality", "data stays in the EU"),
    ),
    "very long": Context(
        framework=LONG,
        serving_runtime=LONG,
        deployment_target=LONG,
        hardware=LONG,
        traffic_pattern=LONG,
        constraints=(LONG,) * 20,
    ),
}


def wordy() -> Catalogue:
    fixes = {
        key: fix.model_copy(update={"fix": "a " * 80, "verify": "b " * 100})
        for key, fix in load_catalogue().fixes.items()
    }
    return Catalogue(fixes=fixes)


def many_stages(catalogue: Catalogue | None = None) -> Audit:
    rng = np.random.default_rng(30)
    stages: dict[str, Any] = {f"lookup_of_source_{i}_ms": rng.gamma(2, 4, 2_000) for i in range(40)}
    stages |= {f"part_{i}_ms": rng.gamma(2, 2, 2_000) for i in range(20)}
    cause = cause_of(CauseName.EXTERNAL_DEPENDENCY, "lookup_of_source_0", missing=("x " * 60,))
    evidence = gathered({"total_ms": sum(stages.values()), **stages})
    return audit_of(evidence, SloTarget(p50_ms=300, p95_ms=400, p99_ms=430), [cause], catalogue)


def unknown() -> Audit:
    evidence = gathered({"total_ms": np.random.default_rng(31).lognormal(4, 1, 2_000)})
    cause = cause_of(CauseName.UNKNOWN, missing=("Record the stages " + "y " * 60,))
    return audit_of(evidence, None, [cause])


AUDITS: dict[str, Callable[[], Audit]] = {
    "fraud": lambda: audit_of(fraud(), FRAUD_SLO, [fraud_cause()]),
    "classifier": lambda: audit_of(classifier(), CLASSIFIER_SLO, [classifier_cause()]),
    "wordy": lambda: audit_of(fraud(), FRAUD_SLO, [fraud_cause()], wordy()),
    "many stages": many_stages,
    "wordy with many stages": lambda: many_stages(wordy()),
    "wordy classifier": lambda: audit_of(
        classifier(), CLASSIFIER_SLO, [classifier_cause()], wordy()
    ),
    "unknown": unknown,
    "refused": lambda: replace(unknown(), recommendation=None, refused="because " + "z " * 99),
}


def brief_markdown(made: Brief) -> str:
    section = brief_section(replace(unknown(), brief=made))
    return "" if section is None else section_markdown(section)


@pytest.fixture(scope="module", params=AUDITS)
def audited(request: pytest.FixtureRequest) -> Audit:
    made: Audit = AUDITS[request.param]()
    return made


@pytest.fixture(scope="module")
def of_fraud() -> Audit:
    return AUDITS["fraud"]()


@pytest.mark.parametrize("context", CONTEXTS)
def test_it_has_fewer_than_700_words(audited: Audit, context: str) -> None:
    """Bars and dashes of tables count as words, and users may write at any length."""
    text = brief_markdown(brief(audited, CONTEXTS[context]))
    assert len(text.split()) < 700


@pytest.mark.parametrize("context", CONTEXTS)
def test_every_part_is_there(audited: Audit, context: str) -> None:
    """Places, batching, caches, reductions, one table, measuring and three steps."""
    text = brief_markdown(brief(audited, CONTEXTS[context]))
    headings = re.findall(r"^### (.+)$", text, re.MULTILINE)
    assert headings == [
        "Where slow requests spend time",
        "Batching, and its effect on P95",
        "Caching, and what invalidates it",
        "Smaller models",
        "Ranked",
        "Measuring",
        "First week",
    ]
    for name in (
        "Dynamic", "Micro", "Continuous", "Embedding", "KV", "Prefix", "Response", "Pruning",
        "Quantisation", "Distillation", "Smaller architecture", "Operator fusion",
    ):  # fmt: skip
        assert f"- {name}: " in text
    assert len(re.findall(r"^\|[-:|]+\|$", text, re.MULTILINE)) <= 1
    assert re.findall(r"^(\d)\. ", text, re.MULTILINE) == ["1", "2", "3"]
    assert "gains must be measured on the target hardware" in text
    assert "checked against the version" in text


def test_the_problem_is_one_sentence(of_fraud: Audit) -> None:
    """It names the service, the figure, the target, the driver and the cause."""
    said = brief(of_fraud, CONTEXTS["everything"]).problem
    p99 = next(row for row in of_fraud.end_to_end if row.percentile == "p99")
    assert f"svc has a p99 of {p99.measured_ms:,.4g} ms against a target of 200 ms" in said
    assert "driven by feature_lookup, because of input shape (batch_size)" in said
    assert "constraints: no loss of quality, data stays in the EU" in said
    assert said.count(".") == 1 + said.split("target")[0].count(".")


def test_what_is_missing_is_listed(of_fraud: Audit) -> None:
    """What nobody said and what was not measured stand in one list; what is known does not."""
    nothing = brief(of_fraud, Context()).missing
    assert nothing[:3] == ("framework", "serving runtime", "deployment target")
    assert {"cache hit ratio", "deploy times", "latency under varying load"} <= set(nothing)
    assert "SLO" not in nothing
    assert "stage timings" not in nothing
    assert "hardware" not in brief(of_fraud, CONTEXTS["everything"]).missing


def test_time_is_placed_by_the_names_of_stages(of_fraud: Audit) -> None:
    """The lookup is network, the model the forward pass; the rest is named as not mapped."""
    made = brief(of_fraud, Context())
    where = {place.place: place for place in made.places}
    assert where["network"].stages == ("feature_lookup",)
    assert where["forward pass"].stages == ("model",)
    assert where["tokenisation"].share_pct is None
    assert [place.place for place in made.unmapped] == ["unattributed"]
    known = [p.share_pct for p in (*made.places, *made.unmapped) if p.share_pct is not None]
    assert sum(known) == pytest.approx(100)
    text = brief_markdown(made)
    assert "tokenisation: not measured" in text
    assert f"network: {where['network'].share_pct:.0f} % (`feature_lookup`)" in text


def test_every_gain_is_an_estimate_or_not_measured(audited: Audit) -> None:
    """No row of the table claims a gain without saying what it is."""
    for row in brief(audited, Context()).ranked:
        assert row.impact.endswith(", estimate") or row.impact.startswith("not measured")
        assert row.effort.endswith(" h") or row.effort == "not known"
    assert "Effort (estimate)" in brief_markdown(brief(audited, Context()))


def test_figures_are_those_of_the_audit(of_fraud: Audit) -> None:
    """Each number of the table is one of the audit's, or an hour of the catalogue."""
    first, row = of_fraud.optimizations[0], brief(of_fraud, Context()).ranked[0]
    assert row.action == first.fix
    assert row.impact.startswith(f"{first.p99_saved_ms:,.4g} ms (")
    assert row.effort == "8 h"


def test_a_refused_audit_ranks_nothing() -> None:
    """The reason stands where the gain would, and no fix is named."""
    made = brief(AUDITS["refused"](), Context())
    assert len(made.ranked) == 1
    assert made.ranked[0].impact.startswith("not measured: because z z")


def test_no_built_in_text_is_cut() -> None:
    """What is cut for room is the text of users; ours fits."""
    texts = [text for fix in load_catalogue().fixes.values() for text in (fix.fix, fix.verify)]
    assert [text for text in texts if len(text.split()) > WORDS] == []


def test_a_model_swap_is_told_off_where_length_is_the_cause() -> None:
    """The brief says that it leaves the longest inputs the slowest."""
    text = brief_markdown(brief(AUDITS["classifier"](), Context()))
    assert "The tail comes from sequence_length: a model swap speeds all requests up alike" in text


def test_bars_in_a_fix_do_not_break_the_table(of_fraud: Audit) -> None:
    """A bar that a user writes is escaped."""
    fix = replace(of_fraud.optimizations[0], fix="Use a | b")
    text = brief_markdown(brief(replace(of_fraud, optimizations=(fix,)), Context()))
    assert "| Use a \\| b |" in text

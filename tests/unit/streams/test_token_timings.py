"""Times of tokens and goodput: of real files against the files themselves, and by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from logs import NOW_NS, as_lines

from tailbudget.models.summarise import summarise
from tailbudget.models.token_times import with_goodput
from tailbudget.schemas import refusals
from tailbudget.schemas.errors import ConfigError, Refused
from tailbudget.schemas.settings import Settings
from tailbudget.schemas.token_settings import parse_goodput
from tailbudget.schemas.token_timing import DEFINITIONS, GoodputTarget
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.json_report import as_json
from tailbudget.sinks.report.markdown_report import markdown
from tailbudget.streams.api import audit as api_audit
from tailbudget.streams.audit_log import Wanted
from tailbudget.streams.log_report import Asked, make
from tailbudget.streams.sources import Rules, SourceMessage, decoder

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data"
SCHEMA = json.loads((ROOT / "schemas" / "audit.schema.json").read_text())
BOUND = 1 / 128
Times = tuple[float | None, float | None, float]


def aiperf(row: Mapping[str, Any]) -> Times | None:
    """Return time to the first token, of an output token, and of the whole, in milliseconds."""
    metrics = row["metrics"]
    if row.get("error"):
        return None
    first = metrics.get("ttft") or metrics["time_to_first_token"]
    whole = metrics["request_latency"]["value"]
    tokens = metrics["output_sequence_length"]["value"]
    return first["value"], (whole - first["value"]) / (tokens - 1), whole


def llmperf(row: Mapping[str, Any]) -> Times | None:
    if row["error_code"] is not None:
        return None
    each = row["inter_token_latency_s"]
    return 1e3 * row["ttft_s"], 1e3 * each, 1e3 * row["end_to_end_latency_s"]


def rows_of(name: str) -> list[dict[str, Any]]:
    text = (DATA / name).read_text()
    lines = (
        text.splitlines() if name.endswith("jsonl") else [json.dumps(r) for r in json.loads(text)]
    )
    return [json.loads(line) for line in lines]


def audited(path: Path, **asked: Any) -> Audit:
    return make(Settings(), Asked(path, Wanted(), NOW_NS, **asked)).audit


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("aiperf_v0.1_profile_export.jsonl", aiperf),
        ("aiperf_v0.5_profile_export.jsonl", aiperf),
        ("llmperf_groq_70b_individual.json", llmperf),
        ("llmperf_bedrock_70b_individual.json", llmperf),
    ],
)
@pytest.mark.parametrize(
    "target", [(1_500.0, 30.0, None), (400.0, None, 1_200.0), (None, 20.0, None)]
)
def test_goodput_of_real_files(
    name: str, times: Callable[[Mapping[str, Any]], Times | None], target: Times
) -> None:
    """Good requests, counted from the file itself, and medians by nearest rank."""
    rows = [times(row) for row in rows_of(name)]
    answered = [row for row in rows if row is not None]
    good = sum(
        all(
            most is None or (ms is not None and ms <= most)
            for ms, most in zip(row, target, strict=True)
        )
        for row in answered
    )
    found = audited(DATA / name, goodput=GoodputTarget(*target)).token_timings
    assert found is not None
    assert found.goodput is not None
    assert (found.goodput.n, found.goodput.good) == (len(rows), good)
    assert found.goodput.share_pct == pytest.approx(100 * good / len(rows))
    format_name = name.split("_", maxsplit=1)[0]
    assert found.definition == DEFINITIONS[format_name]
    of = {row.figure: row for row in found.rows}
    for index, figure in enumerate(("ttft", "tpot")):
        values = np.array([row[index] for row in answered])
        assert of[figure].n == len(values)
        if len(values) >= 20:
            median = float(np.quantile(values, 0.5, method="inverted_cdf"))
            assert of[figure].p50_ms == pytest.approx(median, rel=BOUND)
        assert of[figure].p99_ms is None


def test_the_rate_is_of_the_span() -> None:
    """Good requests a second, over the panes that hold the requests."""
    found = audited(
        DATA / "aiperf_v0.1_profile_export.jsonl", goodput=GoodputTarget(ttft_ms=10_000)
    ).token_timings
    assert found is not None
    goodput = found.goodput
    assert goodput is not None
    starts = [
        row["metadata"]["timestamp_ns"] for row in rows_of("aiperf_v0.1_profile_export.jsonl")
    ]
    first, last = min(starts) // 10**10, max(starts) // 10**10
    assert goodput.per_s == pytest.approx(goodput.good / (10 * (last - first + 1)))
    found = audited(
        DATA / "llmperf_groq_70b_individual.json", goodput=GoodputTarget(ttft_ms=10_000)
    ).token_timings
    assert found is not None
    assert found.goodput is not None
    assert found.goodput.per_s is None


def test_the_report_says_it(tmp_path: Path) -> None:
    """Markdown has section and definition, JSON keeps to its schema."""
    audit = audited(
        DATA / "aiperf_v0.1_profile_export.jsonl", goodput=parse_goodput("ttft=1500,tpot=30")
    )
    text = markdown(audit)
    assert "to the first token at the client, reasoning counts" in text
    assert "| good requests               |  " in text
    jsonschema.validate(as_json(audit), SCHEMA)
    log = tmp_path / "log.jsonl"
    log.write_bytes(as_lines([{"request_id": "a", "timestamp": 1_772_445_600, "total_ms": 5.0}]))
    assert audited(log).token_timings is None
    assert "Token timings" not in markdown(audited(log))


def test_times_of_tokens_are_no_part_of_the_total() -> None:
    """They lie over the stages: the rest of the total, the driver and the table know none."""
    audit = audited(DATA / "aiperf_v0.1_profile_export.jsonl")
    assert {row.stage for row in audit.stages} == {"unattributed", "prefill", "decode"}
    assert not audit.tail_driver or audit.tail_driver.stage in {"prefill", "decode"}
    (rest,) = (row for row in audit.stages if row.stage == "unattributed")
    assert rest.p50_ms == pytest.approx(0, abs=1e-3)
    assert not any("overlap" in warning for warning in audit.warnings)


def native(**cells: Any) -> dict[str, Any]:
    return {"request_id": "r", "timestamp": 1_772_445_600, "total_ms": 1_000.0, **cells}


def test_one_token_has_no_time_of_an_output_token(tmp_path: Path) -> None:
    """It keeps that target; what tells no first token keeps none, and is counted."""
    rows = [
        native(request_id="one", ttft_ms=900, output_tokens=1),
        native(request_id="slow", ttft_ms=100, output_tokens=10),
        native(request_id="quick", ttft_ms=910, output_tokens=10),
        native(request_id="untold", output_tokens=10),
        native(request_id="failed", ttft_ms=1, output_tokens=1, status="error"),
    ]
    log = tmp_path / "log.jsonl"
    log.write_bytes(as_lines(rows))
    found = api_audit(log, goodput="tpot=50").token_timings
    assert found is not None
    assert found.goodput is not None
    assert (found.goodput.n, found.goodput.good, found.goodput.untold) == (5, 2, 1)
    assert {row.figure: row.n for row in found.rows} == {"ttft": 3, "tpot": 2}
    assert found.definition is None


def test_settings_say_what_the_records_mean(tmp_path: Path) -> None:
    """A service's own definition and targets stand in its report, and bar what differs."""
    log = tmp_path / "log.jsonl"
    log.write_bytes(as_lines([native(service="chat", ttft_ms=100, output_tokens=5)]))
    said = {
        "goodput": "ttft=200,e2e=2000",
        "token_timing": {"where": "client", "first": "chunk", "reasoning": False},
    }
    chosen = Settings.model_validate({"services": {"chat": said}})
    found = make(chosen, Asked(log, Wanted(), NOW_NS)).audit.token_timings
    assert found is not None
    assert found.definition is not None
    assert (found.definition.first, found.definition.per_output) == ("chunk", "after_first")
    assert found.goodput is not None
    assert (found.goodput.ttft_ms, found.goodput.e2e_ms, found.goodput.good) == (200, 2_000, 1)
    baseline = DATA / "aiperf_v0.5_profile_export.jsonl"
    asked = Asked(log, Wanted(), NOW_NS, baseline=baseline)
    with pytest.raises(Refused, match="do not mean the same"):
        make(chosen, asked)


@pytest.mark.parametrize("swapped", [False, True])
def test_differing_definitions_are_not_compared(swapped: bool) -> None:  # noqa: FBT001
    """LLMPerf's time of a token holds the first one, AIPerf's does not: refused either way."""
    pair = [DATA / "llmperf_groq_70b_individual.json", DATA / "aiperf_v0.1_profile_export.jsonl"]
    log, baseline = reversed(pair) if swapped else pair
    with pytest.raises(Refused, match="do not mean the same") as caught:
        audited(log, baseline=baseline)
    assert caught.value.reason == refusals.DEFINITIONS


@pytest.mark.parametrize("text", ["", "ttft", "ttft=0", "first=3", "ttft=1,ttft_ms=2", "ttft=x"])
def test_targets_that_are_none(text: str) -> None:
    """Text of another form is refused with the form."""
    with pytest.raises(ConfigError) as caught:
        parse_goodput(text)
    assert "ttft=200,tpot=50" in caught.value.remedy


times = st.one_of(st.none(), st.floats(0.1, 2_000))
# A time of more than 100 totals is a contradiction, and such a record is in no figure.
requests = st.lists(
    st.fixed_dictionaries(
        {"total_ms": st.floats(25, 2_000), "status": st.sampled_from(["ok", "error"])},
        optional={"ttft_ms": times, "output_tokens": st.integers(0, 50), "tpot_ms": times},
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(requests, times, times, times)
def test_goodput_equals_a_count_by_hand(
    rows: list[dict[str, Any]], ttft: float | None, tpot: float | None, e2e: float | None
) -> None:
    """Whatever cells are there: every target that is set is kept, and failures are never good."""
    target = GoodputTarget(ttft, tpot, e2e)
    records = [native(request_id=str(n)) | row for n, row in enumerate(rows)]
    messages = [SourceMessage(json.dumps(row).encode(), n, NOW_NS) for n, row in enumerate(records)]
    (columns,) = decoder("native", Rules()).decode(messages).services
    kept = 0
    for row in records:
        first, whole, tokens = row.get("ttft_ms"), row["total_ms"], row.get("output_tokens")
        each = row.get("tpot_ms")
        if each is None and first is not None and tokens and tokens >= 2 and whole >= first:
            each = (whole - first) / (tokens - 1)
        good = row["status"] == "ok"
        good &= ttft is None or (first is not None and first <= ttft)
        good &= tpot is None or (first is not None if each is None else each <= tpot)
        kept += good and (e2e is None or whole <= e2e)
    total = summarise(with_goodput(columns, target), pane_ns=10**18, thresholds_ms=())
    stage = total.stages.index("goodput") if "goodput" in total.stages else None
    counted = 0 if stage is None else int(total.n[:, stage].sum())
    assert counted == (kept if target else 0)

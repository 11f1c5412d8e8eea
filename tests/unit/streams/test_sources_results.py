"""Results of benchmarks, and traces of engines, of which a file is one document."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from logs import Read

from tailbudget.schemas import refusals
from tailbudget.schemas.errors import Refused
from tailbudget.schemas.records import Columns, Outcome
from tailbudget.streams.audit_log import open_log
from tailbudget.streams.sources import DOCUMENTS, Rules, ServiceRules, SourceMessage, decoder

DATA = Path(__file__).parents[2] / "data"
NOW_NS = 1_800_000_000 * 10**9
T0 = 1_772_445_600.0
RULES = Rules(
    default=ServiceRules(
        covariates=("input_tokens", "output_tokens"),
        cohort_dims=("model_variant", "load", "route", "version"),
    )
)


def read(name: str, document: Any) -> Read:
    message = SourceMessage(json.dumps(document).encode(), 0, NOW_NS)
    return Read([decoder(name, RULES).decode([message])])


def stages(columns: Columns, row: int = 0) -> dict[str, float]:
    pairs = zip(columns.stages, columns.stage_ms[:, row].tolist(), strict=True)
    return {name: ms for name, ms in pairs if not math.isnan(ms)}


def test_a_report_of_aggregates_is_refused() -> None:
    """GuideLLM's report without lists of requests is named and refused, for a topic rejected."""
    path = DATA / "guidellm_report_v2.json"
    with pytest.raises(Refused, match=r"aggregated \(GuideLLM\)") as caught:
        open_log(path, now_ns=NOW_NS)
    assert caught.value.reason == refusals.AGGREGATES
    log = read("guidellm", json.loads(path.read_text()))
    assert log.columns == {}
    assert [(r.reason, r.raw) for r in log.rejected] == [("rejected.not_of_format", b"")]


OLD = {
    "request_id": "a", "prompt": "my secret", "output": "yours", "request_latency": 0.5,
    "time_to_first_token_ms": 120.0, "inter_token_latency_ms": 9.0, "prompt_tokens": 32,
    "output_tokens": 8, "start_time": T0, "end_time": T0 + 0.5,
}  # fmt: skip
NEW = {
    "request_id": "b", "request_latency": None, "prompt_tokens": 64, "output_tokens": 4,
    "info": {
        "timings": {
            "targeted_start": T0 - 0.25, "request_start": T0, "request_end": T0 + 0.75,
            "first_token_iteration": T0 + 0.125,
        },
    },
}  # fmt: skip


def test_the_requests_of_guidellm(tmp_path: Path) -> None:
    """Lists of both layouts are read: seconds, milliseconds, and the time a request was due."""
    lists = {"successful": [OLD, NEW], "errored": [{**OLD, "request_id": "c"}], "incomplete": []}
    report = {
        "metadata": {"guidellm_version": "0.4"},
        "benchmarks": [{"config": {"backend": {"model": "m"}}, "requests": lists}],
    }
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report, indent=1))
    reading = open_log(path, now_ns=NOW_NS)
    assert reading.found.format == "guidellm"
    columns = Read(reading).only
    assert list(columns.ids) == ["a", "b", "c"]
    assert columns.total_ms.tolist() == pytest.approx([500, 1_000, 500])
    assert columns.outcome.tolist() == [Outcome.OK, Outcome.OK, Outcome.ERROR]
    assert stages(columns, 0) == {"prefill": 120, "decode": 380, "ttft": 120, "tpot": 9}
    assert stages(columns, 1)["schedule_wait"] == 250
    assert stages(columns, 1)["prefill"] == pytest.approx(125)
    assert columns.covariate[0].tolist() == [32, 64, 32]
    assert "secret" not in repr(read("guidellm", report).only)


RESULT = {
    "date": "20260302-100000", "model_id": "m", "request_throughput": 2.0,
    "input_lens": [10, 20, 30, 40], "output_lens": [3, 1, 0, 2],
    "ttfts": [0.1, 0.2, 0.0, 0.3], "itls": [[0.01, 0.02], [], [], [0.05]],
    "errors": ["", "", "refused", ""], "generated_texts": ["my secret", "", "", ""],
}  # fmt: skip


@pytest.mark.parametrize("lines", [1, 2])
def test_results_of_a_serving_benchmark(lines: int, tmp_path: Path) -> None:
    """The latency is the first token's and the gaps after it; runs may stand in lines."""
    path = tmp_path / "result.json"
    path.write_text("\n".join([json.dumps(RESULT)] * lines))
    reading = open_log(path, now_ns=NOW_NS)
    assert reading.found.format == "vllm_bench"
    assert not reading.found.times_known
    columns = Read(reading).only
    totals = [1e3 * (t + sum(i)) for t, i in zip(RESULT["ttfts"], RESULT["itls"], strict=True)]  # type: ignore[call-overload]
    assert len(columns) == 4 * lines
    assert columns.total_ms[[0, 1, 3]].tolist() == pytest.approx([totals[0], totals[1], totals[3]])
    assert columns.outcome[:4].tolist() == [0, 0, Outcome.ERROR, 0]
    assert math.isnan(columns.total_ms[2])
    assert stages(columns, 0) == pytest.approx(
        {"prefill": 100, "decode": 30, "ttft": 100, "itl": 15, "tpot": 15}
    )
    assert stages(columns, 3)["tpot"] == pytest.approx(50)
    assert "tpot" not in stages(columns, 1)
    assert len(set(columns.id_hash.tolist())) == 4 * lines


def test_results_without_details_are_refused(tmp_path: Path) -> None:
    """Means and percentiles alone are aggregates of vLLM's benchmark."""
    path = tmp_path / "result.json"
    keep = {k: v for k, v in RESULT.items() if k not in {"ttfts", "itls"}}
    path.write_text(json.dumps({**keep, "mean_ttft_ms": 1.0}))
    with pytest.raises(Refused, match="vLLM's benchmark"):
        open_log(path, now_ns=NOW_NS)


@pytest.mark.parametrize(
    ("name", "rejected"),
    [("triton_perf_analyzer_decoupled.json", 0), ("triton_known_error_file.json", 1)],
)
def test_exports_of_perf_analyzer(name: str, rejected: int) -> None:
    """Ticks are nanoseconds; no response is a failure, and text is no number."""
    (experiment,) = json.loads((DATA / name).read_text())["experiments"]
    log = Read(open_log(DATA / name, now_ns=NOW_NS))
    wanted = []
    for request in experiment["requests"]:
        stamps = request.get("response_timestamps", request.get("responses_timestamps"))
        if isinstance(request["timestamp"], int):
            wanted.append((stamps[-1] - request["timestamp"]) / 1e6 if stamps else None)
    totals = [None if math.isnan(t) else t for t in log.only.total_ms.tolist()]
    assert totals == wanted
    assert (log.only.outcome != 0).tolist() == [one is None for one in wanted]
    assert len(log.rejected) == rejected
    assert {r.reason for r in log.rejected} <= {"rejected.not_a_number"}


def test_an_export_with_epochs_has_times() -> None:
    """Stamps of the real clock say when a request was, and the load is a label."""
    start = int(T0) * 10**9
    request = {"timestamp": start, "response_timestamps": [start + 10**8, start + 3 * 10**8]}
    export = {
        "experiments": [{"experiment": {"mode": "concurrency", "value": 4}, "requests": [request]}]
    }
    columns = read("perf_analyzer", export).only
    assert columns.ts_ns.tolist() == [start]
    assert stages(columns) == {"prefill": 100, "decode": 200, "ttft": 100, "itl": 200}
    assert dict(columns.cohorts[0])["load"] == "concurrency 4"


def triton(id_: int, **stamps: int) -> list[dict[str, Any]]:
    """Return the entries of a trace in pieces, as Triton writes them."""
    pieces = [{"id": id_, "timestamps": [{"name": n, "ns": ns}]} for n, ns in stamps.items()]
    return [{"id": id_, "model_name": f"m{id_}", "model_version": 3}, *pieces]


def test_traces_of_triton(tmp_path: Path) -> None:
    """Pieces of one id belong together; queue and compute are stages; old names are read."""
    ms = 10**6
    one = triton(
        1, HTTP_RECV_START=0, REQUEST_START=2 * ms, QUEUE_START=3 * ms, COMPUTE_START=13 * ms,
        COMPUTE_INPUT_END=14 * ms, COMPUTE_OUTPUT_START=40 * ms, COMPUTE_END=41 * ms,
        REQUEST_END=42 * ms, HTTP_SEND_END=50 * ms,
    )  # fmt: skip
    old = triton(2, **{"request handler start": 0, "request handler end": 7 * ms})
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([*one[::2], *old, *one[1::2]]))
    reading = open_log(path, now_ns=NOW_NS)
    assert reading.found.format == "triton"
    columns = Read(reading).only
    assert columns.total_ms.tolist() == [50, 7]
    assert stages(columns) == {
        "queue": 10, "compute_input": 1, "compute_infer": 26, "compute_output": 1,
    }  # fmt: skip
    assert dict(columns.cohorts[0])["route"] == "m1"


def test_the_models_of_an_ensemble_are_its_stages() -> None:
    """A model that names a parent is no request."""
    inner = triton(2, QUEUE_START=0, COMPUTE_START=5_000_000, COMPUTE_INPUT_END=6_000_000)
    inner[0]["parent_id"] = 1
    log = read("triton", [*triton(1, REQUEST_START=0, REQUEST_END=20_000_000), *inner])
    assert log.only.total_ms.tolist() == [20]
    assert stages(log.only) == {"m2 queue": 5, "m2 compute_input": 1}


NAMES = ["id", "timestamps", "ns", "name", "experiments", "requests", "timestamp"]
NAMES += ["response_timestamps", "ttfts", "itls", "errors", "benchmarks", "successful", "info"]
NAMES += ["timings", "request_start"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**63) | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(NAMES),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)


SHAPES: dict[str, Callable[[Any, Any], Any]] = {
    "guidellm": lambda a, b: {"benchmarks": [{"requests": {"successful": [a], "errored": b}}, b]},
    "vllm_bench": lambda a, b: {"ttfts": [a, 1], "itls": [b, [a]], "errors": b, "input_lens": a},
    "perf_analyzer": lambda a, b: {
        "experiments": [{"experiment": a, "requests": [{"timestamp": b}, a]}, {"requests": b}]
    },
    "triton": lambda a, b: [{"id": a, "timestamps": [{"name": b, "ns": 5}, a]}, {"id": b, **_d(a)}],
}


def _d(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(DOCUMENTS)), JSON, JSON, st.booleans())
def test_odd_documents_never_raise(name: str, one: Any, other: Any, bare: bool) -> None:  # noqa: FBT001
    """Whatever stands where something else belongs is rejected, or counted."""
    assert SHAPES.keys() == DOCUMENTS
    text = json.dumps(one if bare else SHAPES[name](one, other)).encode()
    decoder(name, RULES).decode([SourceMessage(text, 0, NOW_NS)])

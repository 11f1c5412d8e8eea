"""Request logs of serving engines."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from logs import Read

from tailbudget.schemas.records import Columns
from tailbudget.streams.audit_log import open_log
from tailbudget.streams.sources import ACCESS_LOGS, Rules, ServiceRules, SourceMessage, decoder
from tailbudget.streams.sources.written_durations import written_ms

NOW_NS = 1_800_000_000 * 10**9
T0_NS = 1_772_445_600 * 10**9
RULES = Rules(
    default=ServiceRules(
        covariates=("input_tokens", "output_tokens"), cohort_dims=("route", "instance_id")
    )
)
TGI = (
    '2026-03-02T10:00:01.500000Z  INFO generate{parameters=Params { stop: ["my secret"] }'
    ' total_time="1.5s" validation_time="35.1ms" queue_time="120.5\u00b5s" inference_time="1.46s"'
    ' time_per_token="19ms" seed="None"}: text_generation_router::server: server.rs:457: Success'
)
SGLANG = (
    "[2026-03-02 10:00:01] Finish: obj=GenerateReqInput(text='my secret'), out={'text': 'x',"
    " 'meta_info': {'id': '5c3f', 'finish_reason': {'type': 'stop', 'matched': 2},"
    " 'prompt_tokens': 12, 'completion_tokens': 8, 'cached_tokens': 4, 'e2e_latency': 0.75,"
    " 'queue_time': 0.125}}"
)
TORCHSERVE = (
    "2026-03-02T10:00:00,118 [INFO ] nioEventLoopGroup-3-1 ACCESS_LOG - /127.0.0.1:40592"
    ' "POST /predictions/resnet HTTP/1.1" 200 118'
)
RAY = "INFO 2026-03-02 10:00:00,250 default_Model ab12cd 5c3f-4d2b -- POST /predict/77 200 250.0ms"
KSERVE = (
    "2026-03-02 10:00:00.030 INFO kserve.trace requestId: 5c3f, preprocess_ms: 5.0, explain_ms: 0,"
    " predict_ms: 24.5, postprocess_ms: 0.5"
)
LINES = {
    "tgi": TGI,
    "sglang_log": SGLANG,
    "torchserve": TORCHSERVE,
    "ray_serve": RAY,
    "kserve": KSERVE,
}


def read(name: str, line: str) -> Columns:
    return Read([decoder(name, RULES).decode([SourceMessage(line.encode(), 0, NOW_NS)])]).only


def stages(columns: Columns) -> dict[str, float]:
    pairs = zip(columns.stages, columns.stage_ms[:, 0].tolist(), strict=True)
    return {name: ms for name, ms in pairs if not math.isnan(ms)}


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("35.1ms", 35.1),
        ("1.2s", 1_200),
        ("120.5\u00b5s", 0.1205),
        ("500ns", 0.0005),
        ("1m2.5s", 62_500),
        ("12", None),
        ("ms", None),
        ("12.5 ms", None),
        ("-3ms", None),
        ("", None),
    ],
)
def test_printed_durations(text: str, ms: float | None) -> None:
    """A number has its unit right behind it; anything else is no duration."""
    assert written_ms(text) == (ms if ms is None else pytest.approx(ms))


def test_text_generation_inference() -> None:
    """The line is stamped with the end; times are printed with their units."""
    columns = read("tgi", TGI)
    assert columns.total_ms.tolist() == [1_500]
    assert columns.ts_ns.tolist() == [T0_NS]
    found = stages(columns)
    assert found == pytest.approx({"validation": 35.1, "queue": 0.1205, "inference": 1_460})
    span = {f"{n}_time": t for n, t in (("total", "1.5s"), ("queue", "1ms"), ("inference", "1s"))}
    line = {"timestamp": "2026-03-02T10:00:01.500Z", "level": "INFO", "target": "t", "span": span}
    columns = read("tgi", json.dumps(line))
    assert stages(columns) == {"queue": 1, "inference": 1_000}
    headers = {"x-total-time": "150", "x-queue-time": "1", "x-inference-time": "140"}
    record = {**headers, "x-prompt-tokens": "9", "timestamp": "2026-03-02T10:00:00.150Z"}
    columns = read("tgi", json.dumps(record))
    assert columns.total_ms.tolist() == [150]
    assert columns.ts_ns.tolist() == [T0_NS]
    assert columns.covariate[0].tolist() == [9]


def test_sglang() -> None:
    """Numbers of a finished request; what was asked is not kept."""
    columns = read("sglang_log", SGLANG)
    assert columns.total_ms.tolist() == [750]
    assert columns.ts_ns.tolist() == [T0_NS + 250 * 10**6]
    assert stages(columns) == {"queue": 125}
    assert columns.covariate[:, 0].tolist() == [12, 8]
    assert columns.ids[0].startswith("5c3f-")
    assert "secret" not in repr(columns)


def test_torchserve() -> None:
    """The last number is milliseconds."""
    columns = read("torchserve", TORCHSERVE)
    assert columns.total_ms.tolist() == [118]
    assert columns.ts_ns.tolist() == [T0_NS]
    assert dict(columns.cohorts[0])["route"] == "/predictions/resnet"


def test_ray_serve() -> None:
    """As text and as JSON, of which newer versions have fields of their own."""
    columns = read("ray_serve", RAY)
    assert columns.total_ms.tolist() == [250]
    assert columns.ts_ns.tolist() == [T0_NS]
    assert dict(columns.cohorts[0]) == {"route": "/predict/*", "instance_id": "ab12cd"}
    line = {
        "levelname": "INFO", "asctime": "2026-03-02 10:00:00,250", "request_id": "5c3f",
        "deployment": "Model", "replica": "ab12cd", "message": "POST /predict 500 250.0ms",
    }  # fmt: skip
    columns = read("ray_serve", json.dumps(line))
    assert (columns.total_ms.tolist(), columns.outcome.tolist()) == ([250], [1])


def test_kserve() -> None:
    """The steps are stages, and together the total."""
    columns = read("kserve", KSERVE)
    assert columns.total_ms.tolist() == [30]
    assert columns.ts_ns.tolist() == [T0_NS]
    assert stages(columns) == {"preprocess": 5, "explain": 0, "predict": 24.5, "postprocess": 0.5}


@pytest.mark.parametrize("name", LINES)
def test_files_are_recognised_among_other_lines(name: str, tmp_path: Path) -> None:
    """A line tells which engine wrote it; others are rejected, and none is of two formats."""
    assert [one.name for one in ACCESS_LOGS if one.recognises(LINES[name])] == [name]
    path = tmp_path / "engine.log"
    path.write_text("loading weights\n" + f"{LINES[name]}\n" * 4)
    reading = open_log(path, now_ns=NOW_NS)
    assert reading.found.format == name
    log = Read(reading)
    assert len(log.only) == 4 if name != "sglang_log" else len(log.only) >= 1
    assert [r.reason for r in log.rejected] == ["rejected.not_of_format"]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(LINES)), st.integers(0, 400), st.text(max_size=6), st.booleans())
def test_damaged_lines_never_raise(name: str, at: int, text: str, cut: bool) -> None:  # noqa: FBT001
    """A line that was cut, or has something else in it, is read or rejected."""
    line = LINES[name]
    damaged = (line[:at] + text + ("" if cut else line[at:])).encode("utf-8", "surrogatepass")
    decoder(name, RULES).decode([SourceMessage(damaged, 0, NOW_NS)])


def test_a_long_line_does_not_take_long() -> None:
    """Patterns do not try endless ways to read a line as long as is read."""
    for name in LINES:
        for piece in (
            "a ",
            "1_ms: 2, ",
            "2026-03-02 10:00:00,118 ",
            "-- GET / 200 ",
            "'e2e_latency",
        ):
            line = (LINES[name][:60] + piece * (64_000 // len(piece)))[:65_000].encode()
            decoder(name, RULES).decode([SourceMessage(line, 0, NOW_NS)])

"""What is found out of a log, what is said of it, and what a caller may name instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from logs import NOW_NS, Read, as_csv, as_lines, cells, records, write

from tailbudget.schemas.errors import ConfigError
from tailbudget.streams.audit_log import Found, Wanted, open_frame, open_log, parse_columns
from tailbudget.streams.audit_log.sample import MANY, ROWS
from tailbudget.streams.sources import Rules, ServiceRules
from tailbudget.streams.sources.base import Origin

T0 = "2026-03-02T10:00:00Z"


def log_of(count: int = 400, /, **columns: Any) -> pl.DataFrame:
    """Return requests with columns of these values, over and over."""
    base: dict[str, Any] = {
        "request_id": [f"r{i}" for i in range(count)],
        "timestamp": [T0] * count,
        "total_ms": [100.0] * count,
    }
    more = {
        name: [values[i % len(values)] for i in range(count)] for name, values in columns.items()
    }
    return pl.DataFrame({**base, **more}, strict=False)


def found_in(frame: pl.DataFrame, **wanted: Any) -> Found:
    return open_frame(frame, Wanted(**wanted), now_ns=NOW_NS).found


def dims(frame: pl.DataFrame) -> tuple[str, ...]:
    return found_in(frame).rules.default.cohort_dims


def test_labels_and_flags_are_dimensions() -> None:
    """Text of few values, booleans, and numbers that are 0 or 1 split cohorts."""
    frame = log_of(
        region=["eu", "us", "ap"],
        precision=["fp8", "bf16"],
        cache_hit=[0, 1, 1],
        streaming=[True, False],
        version=["v1"],
    )
    assert dims(frame) == ("region", "version", "cache_hit", "precision", "streaming")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("label", [f"v{i}" for i in range(MANY + 1)]),  # too many values
        ("label", ["only"]),  # one value splits nothing
        ("user_id", ["a", "b"]),
        ("sessionId", ["a", "b"]),
        ("error_message", ["a", "b"]),
        ("started_at", ["a", "b"]),
        ("label", ["a text of many words", "another text of many words"]),
        ("label", ["x" * 65, "y"]),
        ("score", [3, 4, 5]),  # a number that is no flag
    ],
)
def test_what_is_no_label_is_no_dimension(name: str, values: list[Any]) -> None:
    """Ids, free text, outcomes, constants and texts of many values never split cohorts."""
    frame = log_of(4_000, **{name: values})
    assert dims(frame) == ()
    assert f"in no figure: {name}" in found_in(frame).assumptions


def test_text_with_few_rows_a_value_is_no_label() -> None:
    """Forty prompts in a hundred rows are text, not forty kinds."""
    assert dims(log_of(100, topic=[f"t{i}" for i in range(6)])) == ()
    assert dims(log_of(120, topic=[f"t{i}" for i in range(6)])) == ("topic",)


def test_replicas_are_recognised() -> None:
    """A column named for replicas is one, though it ends in id or holds numbers."""
    for name in ("pod_name", "instance_id", "hostname", "worker"):
        found = found_in(log_of(400, **{name: [1, 2, 3]}))
        assert found.replica == name
        assert found.rules.default.cohort_dims == (name,)
        assert f"replicas: the values of {name}" in found.assumptions
    many = found_in(log_of(pod=[f"p{i}" for i in range(MANY + 1)]))
    assert many.replica is None
    assert f"no cohorts by pod: more than {MANY} values" in many.assumptions


def test_dimensions_are_bounded_together() -> None:
    """Labels are taken, the fewest values first, until their combinations are too many."""
    rng = np.random.default_rng(3)
    labels = {f"label{i}": [f"x{x}" for x in rng.integers(0, 20, 8_000)] for i in range(3)}
    found = found_in(log_of(8_000, **labels, two=["a", "b"]))
    assert found.rules.default.cohort_dims == ("two", "label0", "label1")
    assert "no cohorts by label2: more than 2,000 combinations of values" in found.assumptions


@pytest.mark.parametrize(
    ("name", "is_shape"),
    [
        ("sequence_length", True),
        ("ContextTokens", True),
        ("number_input_tokens", True),
        ("image_bytes", True),
        ("n_rows", True),
        ("batch_id", False),
        ("row_number", False),
        ("tokens_per_s", False),
        ("batch_wait_s", False),
        ("score", False),
    ],
)
def test_covariates_are_counts_and_sizes(name: str, is_shape: bool) -> None:  # noqa: FBT001
    """Numbers named like a size of the input are covariates; ids, rates and times are not."""
    frame = log_of(400, **{name: [3, 14, 15, 92, 65]})
    assert (name in found_in(frame).rules.default.covariates) == is_shape
    as_text = frame.with_columns(pl.col(name).cast(pl.String))
    assert (name in found_in(as_text).rules.default.covariates) == is_shape


def test_a_flag_named_like_a_size_is_a_dimension() -> None:
    """Values of 0 and 1 are a flag, whatever the name; a known covariate stays one."""
    found = found_in(log_of(batch=[0, 1], batch_size=[1]))
    assert found.rules.default.cohort_dims == ("batch",)
    assert "batch_size" in found.rules.default.covariates


def test_stages_are_all_columns_of_milliseconds() -> None:
    """Those that turn up after the first rows count too, and text is no time."""
    found = found_in(log_of(queue_ms=[1.0], ttft_ms=[2.0], timeout_ms=[9.0]))
    assert found.rules.default.stages is None
    assert found.assumptions[0] == "stages: every *_ms column (queue)"
    late = pl.concat([log_of(ROWS), log_of(10, late_ms=[5.0])], how="diagonal")
    assert Read(open_frame(late, now_ns=NOW_NS)).only.stages == ("late",)
    odd = found_in(log_of(queue_ms=[1.0], plan_ms=["soon"]))
    assert odd.rules.default.stages == ("queue",)
    assert "no stages, for they hold no numbers: plan_ms" in odd.assumptions


def test_only_the_first_rows_are_looked_at() -> None:
    """What comes later changes nothing, so that a cut of the log changes nothing."""
    later = log_of(ROWS, label=["a", "b"])
    early = pl.concat([later, log_of(10, label=[f"v{i}" for i in range(100)])])
    assert found_in(early) == found_in(later)


def test_what_was_named_is_taken() -> None:
    """Named stages, covariates and dimensions replace those that would be found."""
    frame = log_of(queue_ms=[1.0], run_ms=[2.0], weird=[7, 8], kind=[7, 8], route=["a", "b"])
    reading = open_frame(
        frame,
        Wanted(service="x", stages=("run",), covariates=("weird",), cohort_dims=("kind",)),
        now_ns=NOW_NS,
    )
    assert reading.found.rules.default == ServiceRules(("weird",), ("kind",), ("run",))
    columns = Read(reading).only
    assert columns.service == "x"
    assert columns.stages == ("run",)
    assert columns.cohorts == ((("kind", "7"),), (("kind", "8"),))
    assert not [text for text in reading.found.assumptions if text.startswith(("stages", "cohort"))]


def test_rules_of_the_settings_are_taken_whole() -> None:
    """Where the settings say how to read, nothing is found out, and absent columns are no error."""
    rules = Rules(
        default=ServiceRules(("batch_size",), ("route",)),
        services={"b": ServiceRules((), ("kind",))},
    )
    found = found_in(log_of(kind=["a", "b"]), rules=rules)
    assert (found.rules.default, found.rules.services) == (rules.default, rules.services)
    assert found.assumptions == ()


@pytest.mark.parametrize(
    "wanted",
    [
        {"stages": ("que",)},
        {"covariates": ("tokens",)},
        {"cohort_dims": ("rout",)},
        {"columns": parse_columns("total_ms=latency")},
    ],
)
def test_names_that_no_row_has_are_refused(wanted: dict[str, Any]) -> None:
    """A misspelt name is an error that lists what there is."""
    frame = log_of(queue_ms=[1.0], route=["a"])
    with pytest.raises(ConfigError) as error:
        found_in(frame, **wanted)
    assert "no row of the first 400 has a column" in error.value.message
    assert "queue_ms, request_id, route, timestamp" in error.value.remedy


@pytest.mark.parametrize(
    "wanted",
    [
        {"format": "xml"},
        {"timezone": "Mars/Olympus"},
        {"covariates": ("a",), "cohort_dims": ("a",)},
    ],
)
def test_what_cannot_be_meant_is_refused(wanted: dict[str, Any]) -> None:
    """Unknown formats and zones, and columns of two meanings, are errors of usage."""
    with pytest.raises(ConfigError):
        found_in(log_of(), **wanted)


def test_columns_are_mapped_with_their_units(tmp_path: Path) -> None:
    """Names and units of any source give the same rows as our own, in every format."""
    ours = records(60)
    theirs = [
        {
            "id": row["request_id"],
            "start": row["timestamp"],
            "result": row["status"],
            "latency": None if row["total_ms"] is None else row["total_ms"] / 1000,
            "wait": None if row["queue_ms"] is None else row["queue_ms"] * 1000,
            "tokens": row["input_tokens"],
            "route": row["route"],
            "queue_ms": 77.0,
        }
        for row in ours
    ]
    kept = ("request_id", "timestamp", "status", "total_ms", "queue_ms", "input_tokens", "route")
    plain = [{name: row[name] for name in kept} for row in ours]
    expected = Read(open_log(write(tmp_path, plain, "jsonl", "x"), now_ns=NOW_NS)).only
    mapping = parse_columns(
        "request_id=id, timestamp=start,status=result,total_ms=latency:s,"
        "queue_ms=wait:us,input_tokens=tokens"
    )
    for kind in ("jsonl", "json", "csv", "parquet"):
        path = write(tmp_path, theirs, kind)
        columns = Read(open_log(path, Wanted(columns=mapping), now_ns=NOW_NS)).only
        np.testing.assert_allclose(columns.total_ms, expected.total_ms, rtol=1e-12)
        np.testing.assert_allclose(columns.stage_ms, expected.stage_ms, rtol=1e-12)
        same = ("cohorts", "outcome", "id_hash", "ts_ns", "shape")
        assert [cells(columns)[k] for k in same] == [cells(expected)[k] for k in same]


def test_one_column_may_stand_for_several(tmp_path: Path) -> None:
    """A column that is named twice is read for both."""
    rows = [{"key": f"r{i}", "at": T0, "ms": 5.0 + i} for i in range(3)]
    mapping = parse_columns("request_id=key,timestamp=at,total_ms=ms,run_ms=ms")
    for kind in ("jsonl", "csv", "parquet"):
        reading = open_log(write(tmp_path, rows, kind), Wanted(columns=mapping), now_ns=NOW_NS)
        columns = Read(reading).only
        assert columns.total_ms.tolist() == columns.stage_ms[0].tolist() == [5, 6, 7]


def test_mappings_are_parsed() -> None:
    """A unit is what follows the last colon, if it is one; what maps nothing is refused."""
    assert parse_columns("total_ms=latency:s, run_ms=a:b") == {
        "total_ms": Origin("latency", "s"),
        "run_ms": Origin("a:b"),
    }
    for text in ("total_ms", "=x", "total_ms=", "a_ms=b,a_ms=c", "timestamp=t:ms"):
        with pytest.raises(ConfigError):
            parse_columns(text)


def zoned(tmp_path: Path, stamps: list[str], timezone: str | None, kind: str) -> tuple[Found, Read]:
    rows = [{"request_id": f"r{i}", "timestamp": s, "total_ms": 5.0} for i, s in enumerate(stamps)]
    path = write(tmp_path, rows, "jsonl" if kind == "frame" else kind)
    wanted = Wanted(timezone=timezone)
    if kind == "frame":
        frame = pl.DataFrame(rows).with_columns(pl.col("timestamp").str.to_datetime())
        reading = open_frame(frame, wanted, now_ns=NOW_NS)
    else:
        reading = open_log(path, wanted, now_ns=NOW_NS)
    return reading.found, Read(reading)


@pytest.mark.parametrize("kind", ["jsonl", "csv", "frame"])
def test_times_without_a_zone_are_of_the_named_one(tmp_path: Path, kind: str) -> None:
    """Summer and winter differ; an hour that occurs twice is the earlier, a skipped one is none."""
    stamps = [
        "2025-07-01T12:00:00",
        "2025-12-01T12:00:00",
        "2025-10-26T02:30:00",
        "2025-03-30T02:30:00",
    ]
    found, log = zoned(tmp_path, stamps, "Europe/Berlin", kind)
    texts = np.array(log.only.ts_ns, "datetime64[ns]").astype("datetime64[s]").astype(str)
    assert texts.tolist() == ["2025-07-01T10:00:00", "2025-12-01T11:00:00", "2025-10-26T00:30:00"]
    assert log.ledger["rejected.bad_timestamp"] == 1
    said = "times without a zone: Europe/Berlin, the earlier of an hour it has twice"
    assert said in found.assumptions
    found, log = zoned(tmp_path, stamps, None, kind)
    assert log.ledger["accepted"] == 4
    assert "times without a zone: read as UTC" in found.assumptions


def test_times_with_a_zone_stay_what_they_are(tmp_path: Path) -> None:
    """Offsets, Z and epochs are not moved by the named zone."""
    stamps = ["2026-03-02T10:00:00Z", "2026-03-02T11:00:00.000+01:00", "1772445600"]
    found, log = zoned(tmp_path, stamps, "Asia/Tokyo", "jsonl")
    assert set(log.only.ts_ns.tolist()) == {1_772_445_600 * 10**9}
    assert not [text for text in found.assumptions if text.startswith("times")]


def test_ids_and_times_that_no_row_has(tmp_path: Path) -> None:
    """Rows are numbered, and have the time of reading; both are said."""
    rows = [{"start_time": "x", "total_ms": 5.0 + i} for i in range(5)]
    for kind in ("jsonl", "csv", "parquet"):
        reading = open_log(write(tmp_path, rows, kind), now_ns=NOW_NS)
        columns = Read(reading).only
        assert list(columns.ids) == ["0", "1", "2", "3", "4"]
        assert set(columns.ts_ns.tolist()) == {NOW_NS}
        assert not reading.found.times_known
        assert reading.found.assumptions[-2:] == (
            (
                "times are unknown, for there is no timestamp; if start_time is one,"
                " give --columns timestamp=start_time"
            ),
            "request ids: the numbers of the rows, for there is no request_id",
        )


def test_a_younger_row_than_the_reading_is_quarantined() -> None:
    """Only the moment of reading says what lies in the future of a file."""
    frame = log_of(3).with_columns(
        timestamp=pl.Series([NOW_NS - 1, NOW_NS + 59 * 10**9, NOW_NS + 61 * 10**9])
    )
    log = Read(open_frame(frame, now_ns=NOW_NS))
    assert log.ledger == {"accepted": 2, "quarantined.future": 1}


def test_a_named_format_is_taken(tmp_path: Path) -> None:
    """The caller knows better than a name or a first line."""
    path = tmp_path / "log.json"
    path.write_bytes(as_csv(records(5)))
    assert len(Read(open_log(path, Wanted(format="csv"), now_ns=NOW_NS)).only) == 5
    path.write_bytes(as_lines(records(5)))
    reading = open_log(path, Wanted(format="native"), now_ns=NOW_NS)
    assert reading.found.format == "native"

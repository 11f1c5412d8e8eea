"""Any cut of a stream gives the same rows, nothing raises, and fast equals straightforward."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tailbudget.schemas.records import Columns, Decoded
from tailbudget.streams.sources import (
    FORMATS,
    Decoder,
    Rules,
    ServiceRules,
    SourceMessage,
    decoder,
    timetext,
)
from tailbudget.streams.sources.outcomes import outcome_of

ARRIVAL_NS = 1_772_445_700 * 10**9
RULES = Rules(
    service="chat",
    default=ServiceRules(covariates=("size",), cohort_dims=("route", "region")),
    services={
        "rank": ServiceRules(covariates=("batch",), cohort_dims=("size",), stages=("queue",))
    },
    max_record_bytes=2_000,
)
Row = tuple[Any, ...]


def rows_of(columns: Columns) -> list[Row]:
    """Return comparable rows, without what depends on the batch."""

    def cell(value: float) -> float | None:
        return None if math.isnan(value) else float(value)

    def cells(names: Sequence[str], matrix: Any, row: int) -> dict[str, float]:
        pairs = ((name, cell(matrix[i, row])) for i, name in enumerate(names))
        return {name: value for name, value in pairs if value is not None}

    return [
        (
            columns.service,
            int(columns.offset[row]),
            columns.ids[row],
            int(columns.ts_ns[row]),
            int(columns.outcome[row]),
            cell(columns.total_ms[row]),
            cell(columns.limit_ms[row]),
            1 if columns.weight is None else int(columns.weight[row]),
            cells(columns.stages, columns.stage_ms, row),
            cells(columns.covariates, columns.covariate, row),
            columns.cohorts[columns.cohort[row]],
            int(columns.id_hash[row]),
        )
        for row in range(len(columns))
    ]


class Whole:
    """All that several batches of one stream decoded to."""

    def __init__(self, parts: Iterable[Decoded]) -> None:
        self.rows: list[Row] = []
        self.ledger: Counter[tuple[str, int, str]] = Counter()
        self.rejected: list[tuple[int, str, str, bytes]] = []
        self.unknown: set[str] = set()
        for part in parts:
            self.rows += [row for columns in part.services for row in rows_of(columns)]
            self.ledger.update(part.ledger)
            self.rejected += [(r.offset, r.reason, r.detail, r.raw) for r in part.rejected]
            self.unknown |= part.unknown
        self.rows.sort(key=lambda row: row[:2])
        self.rejected.sort()


def whole(messages: Sequence[SourceMessage], cuts: Iterable[int], one: Decoder) -> Whole:
    edges = [0, *sorted(cut % (len(messages) + 1) for cut in cuts), len(messages)]
    return Whole(one.decode(messages[a:b]) for a, b in pairwise(edges))


numbers: st.SearchStrategy[Any] = st.one_of(
    st.integers(-5, 2_000),
    st.floats(-10, 1e5),
    st.sampled_from([0, -0.0, 1e9, 1e300, 2**63, 2**64, float("nan"), float("inf"), -math.inf]),
    st.sampled_from(["12.5", " 7 ", "1,250.0", "12.5ms", "nan", "-inf", "", "1_0", "1e3", "٣"]),
    st.sampled_from([None, True, False, [], [1], {"a": 1}, {"b_ms": None}]),
)
sane = st.one_of(st.floats(0.1, 1_000), st.integers(1, 1_000))
stamps = st.one_of(
    st.integers(0, 999).map("2026-03-02T10:00:00.{:03d}Z".format),
    st.integers(1_772_445_600_000, 1_772_445_700_000),
    st.sampled_from(["2026-03-02T10:00:00Z", "2026-03-02T10:00:01.5+00:00", 1_772_445_600]),
    st.sampled_from([1_772_445_600.25, 1_772_445_600_900_000_000, "1772445600123", 0, "", None]),
    st.sampled_from(["soon", 9_780_306_406_157, True, [], "2027-01-01T00:00:00Z", -5, 1e300]),
)
texts: st.SearchStrategy[Any] = st.sampled_from(
    ["chat", "eu", "a:b", 'q":', "x !:", "é😀", "\t:", '":null', None, 1, 1.0, {}]
)
record = st.fixed_dictionaries(
    {
        "request_id": st.sampled_from([*"abcdefghijk", 7, None, "", "x" * 70, "\ud800"]),
        "timestamp": stamps,
        "total_ms": st.one_of(sane, sane, sane, numbers),
    },
    optional={
        "service": st.sampled_from(["chat", "rank", "other", "", None]),
        "status": st.sampled_from(["ok", "timeout", 200, 429, "504", 503.0, True, "odd", None, ""]),
        "queue_ms": st.one_of(sane, numbers),
        "run_ms": st.one_of(sane, numbers),
        "failed_ms": numbers,
        "timeout_ms": numbers,
        "ttft_ms": numbers,
        "weight": st.one_of(numbers, st.floats(1, 50)),
        "size": numbers,
        "batch": numbers,
        "route": texts,
        "region": texts,
        "note": texts,
        "odd key:": texts,
        'odd "key': texts,
    },
)


def dump(fields: dict[str, Any], style: int) -> bytes:
    separators = [(",", ":"), (", ", ": "), (" , ", " : "), (",", "\t:")][style % 4]
    return json.dumps(fields, separators=separators, ensure_ascii=style % 2 == 0).encode(
        errors="surrogatepass"
    )


good = st.builds(dump, record, st.integers(0, 3))
plain = st.builds(
    lambda n, ms: dump({"request_id": str(n), "timestamp": 1_772_445_600, "total_ms": ms}, 0),
    st.integers(0, 99),
    st.floats(0, 100),
)
bad = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([b"[]", b"null", b"1", b"{", b"{}", b"\xef\xbb\xbf{}", b"\x0b", b'{"a":1}x']),
    st.builds(lambda line, cut: line[:cut], good, st.integers(0, 60)),
)
line = st.one_of(plain, good, good, bad)
value = st.one_of(
    line,
    line,
    st.none(),
    st.lists(line, max_size=4).map(b"\n".join),
    st.lists(line, max_size=3).map(b"\r\n \n".join),
    record.map(lambda fields: json.dumps(fields, indent=1).encode()),
    st.integers(1_990, 2_010).map(lambda size: b'{"a":"' + b"x" * (size - 8) + b'"}'),
)
streams = st.lists(value, max_size=25).map(
    lambda values: [SourceMessage(v, 100 + i, ARRIVAL_NS + i) for i, v in enumerate(values)]
)


@settings(max_examples=60, deadline=None)
@given(streams, st.lists(st.integers(0, 100), max_size=6))
def test_any_cut_gives_the_same(messages: list[SourceMessage], cuts: list[int]) -> None:
    """Rows, ledger, dead letters and unknown columns do not depend on the batches."""
    once = whole(messages, [], decoder("native", RULES))
    again = whole(messages, cuts, decoder("native", RULES))
    assert again.rows == once.rows
    assert again.ledger == once.ledger
    assert again.rejected == once.rejected
    assert again.unknown == once.unknown


@settings(max_examples=60, deadline=None)
@given(streams, streams)
def test_history_leaves_no_trace(before: list[SourceMessage], then: list[SourceMessage]) -> None:
    """What a decoder read before does not change what it reads next."""
    used = decoder("native", RULES)
    used.decode(before)
    assert vars(whole(then, [], used)) == vars(whole(then, [], decoder("native", RULES)))


@settings(max_examples=60, deadline=None)
@given(streams)
def test_nothing_is_lost(messages: list[SourceMessage]) -> None:
    """Each record is accepted, rejected or quarantined, and that once."""
    found = whole(messages, [], decoder("native", RULES))
    count: Counter[str] = Counter()
    for (_, _, reason), number in found.ledger.items():
        count[reason.partition(".")[0]] += number
    assert count["rejected"] == len(found.rejected)
    assert count["accepted"] == len(found.rows)
    single = [m.value for m in messages if m.value and b"\n" not in m.value]
    others = len(messages) - len(single)
    if not others:
        judged = count["rejected"] + count["accepted"] + count["quarantined"] + count["tombstone"]
        assert judged == len(messages)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=10), st.sampled_from(sorted(FORMATS)))
def test_bytes_never_raise(values: list[bytes], name: str) -> None:
    """No content makes a decoder raise."""
    messages = [SourceMessage(value, i, ARRIVAL_NS) for i, value in enumerate(values)]
    decoded = decoder(name, RULES).decode(messages)
    assert all(r.reason.startswith("rejected.") and r.detail for r in decoded.rejected)


def expected(fields: dict[str, Any], offset: int) -> Row | None:
    """Decode one record in the obvious way; None where it is not accepted."""
    service = fields.get("service") or "chat"
    rules = RULES.of(service)
    rid, stamp = as_text(fields.get("request_id")), as_text(fields.get("timestamp"))
    outcome = int(outcome_of(as_text(fields.get("status"))))
    total = as_number(fields.get("total_ms"))
    if not rid or not stamp:
        return None
    ts_ns = timetext.epoch_ns(stamp)
    if not timetext.FIRST_NS <= ts_ns <= min(timetext.LAST_NS, ARRIVAL_NS + offset + 60 * 10**9):
        return None
    usable = isinstance(total, float) and 0 <= total <= 86_400_000
    if not usable and outcome == 0:
        return None
    total = total if usable else None
    stages = {
        name: number
        for name in ("queue", "run", "ttft")
        if (number := as_number(fields.get(f"{name}_ms"))) not in {None, "bad"}
        if isinstance(number, float) and 0 <= number <= 86_400_000
        if rules.stages is None or name in (*rules.stages, "ttft")
    }
    if outcome == 0 and stages and max(stages.values()) > 100 * max(float(total or 0), 0.01):
        return None
    covariates = {
        name: number
        for name in rules.covariates
        if isinstance(number := as_number(fields.get(name), service), float)
        if abs(number) < 1e300
    }
    limit = as_number(fields.get("timeout_ms"))
    limit = limit if isinstance(limit, float) and 0 < limit < 1e300 else None
    pairs = ((dim, as_text(fields.get(dim))) for dim in rules.cohort_dims)
    cohort = tuple((dim, "(none)" if text is None else text) for dim, text in pairs)
    return service, offset, rid, ts_ns, outcome, total, limit, stages, covariates, cohort


def as_number(found: Any, _: str = "") -> float | str | None:
    """Return a number, None where there is none, or "bad"."""
    if isinstance(found, str) and not found.strip():
        return None
    if isinstance(found, str) and re.fullmatch(r"\s*[+-]?[0-9]+(\.[0-9]+)?(e[0-9]+)?\s*", found):
        return float(found)
    if isinstance(found, bool) or not isinstance(found, (int, float, type(None))):
        return "bad"
    return None if found is None else float(found) if math.isfinite(found) else "bad"


def as_text(found: Any) -> str | None:
    """Return a cell as text."""
    if found is None or isinstance(found, str):
        return found
    if isinstance(found, float):
        return f"{found:.0f}" if found == int(found) else repr(found)
    return json.dumps(found)


simple = record.filter(
    lambda fields: (
        not isinstance(fields.get("size"), (float, dict, list, str))
        and "\ud800" not in str(fields.get("request_id"))
        and 1e300 not in fields.values()
    )
)


@settings(max_examples=60, deadline=None)
@given(st.lists(simple, min_size=1, max_size=12), st.integers(0, 3))
def test_equals_a_straightforward_decoder(records: list[dict[str, Any]], style: int) -> None:
    """The vectorised decoder accepts the rows, with the cells, that a loop over records does."""
    messages = [SourceMessage(dump(r, style), i, ARRIVAL_NS + i) for i, r in enumerate(records)]
    found = whole(messages, [], decoder("native", RULES)).rows
    wanted = [row for i, fields in enumerate(records) if (row := expected(fields, i)) is not None]
    assert [(*row[:7], *row[8:11]) for row in found] == sorted(wanted, key=lambda row: row[:2])

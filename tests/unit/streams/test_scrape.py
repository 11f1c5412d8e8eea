"""Scrapes of Prometheus: bounds against a target, and never beside requests."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from logs import NOW_NS, records, write
from typer.testing import CliRunner

from tailbudget.schemas import refusals
from tailbudget.schemas.bounds import REASON
from tailbudget.schemas.errors import ConfigError, DecodeError, Refused
from tailbudget.schemas.settings import Settings, parse_slo
from tailbudget.schemas.verdicts import Audit, Verdict
from tailbudget.sinks.report.json_report import as_json
from tailbudget.sinks.report.markdown_report import markdown
from tailbudget.streams import scrape
from tailbudget.streams.audit_log import Wanted, parse_columns, prometheus
from tailbudget.streams.cli.app import app
from tailbudget.streams.log_report import Asked, make

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "schemas" / "audit.schema.json").read_text())
EDGES = ("0.1", "0.25", "0.5", "+Inf")


def histogram(name: str, counts: tuple[int, ...], labels: str = "", total: float = 1.0) -> str:
    """Return a histogram as /metrics writes it."""
    comma = f",{labels}" if labels else ""
    braces = f"{{{labels}}}" if labels else ""
    lines = [
        f'{name}_bucket{{le="{le}"{comma}}} {count}'
        for le, count in zip(EDGES, counts, strict=True)
    ]
    return "\n".join([*lines, f"{name}_sum{braces} {total}", f"{name}_count{braces} {counts[-1]}"])


def scraped(folder: Path, *parts: str, name: str = "metrics.prom") -> Path:
    path = folder / name
    path.write_text("# HELP up of the target\n" + "\n".join([*parts, ""]))
    return path


WHOLE = histogram("vllm:e2e_request_latency_seconds", (100, 1_900, 1_990, 2_000), total=400.0)


def audited(path: Path, slo: str | None = None, **wanted: Any) -> Audit:
    asked = Asked(path, Wanted(**wanted), NOW_NS, slo=parse_slo(slo) if slo else None)
    return make(Settings(), asked).audit


@pytest.mark.parametrize(
    ("slo", "verdict", "status"),
    [
        ("p99=500", Verdict.OK, 0),
        ("p99=250", Verdict.BREACH, 1),
        ("p99=300", Verdict.UNDECIDED, 4),
        ("p50=250,p99=300", Verdict.UNDECIDED, 4),
        ("p50=90,p99=500", Verdict.BREACH, 1),
    ],
)
def test_a_target_is_met_broken_or_inside_of_the_bucket(
    slo: str, verdict: Verdict, status: int, tmp_path: Path
) -> None:
    """Of 2,000 requests the 1,980th lies in (250, 500]: only targets outside of it are decided."""
    path = scraped(tmp_path, WHOLE)
    audit = audited(path, slo)
    assert audit.verdict is verdict
    p99 = next(row for row in audit.bounds if row.percentile == "p99")
    assert (p99.low_ms, p99.high_ms, p99.n, p99.mean_ms) == (250, 500, 2_000, 200)
    done = CliRunner().invoke(app, ["audit", str(path), "--slo", slo])
    assert done.exit_code == status


def test_the_report_says_bounds_and_why_there_is_nothing_else(tmp_path: Path) -> None:
    """Section 2 has no point, all others have the reason, and the JSON keeps to its schema."""
    audit = audited(scraped(tmp_path, WHOLE), "p99=300", service="chat")
    text = markdown(audit)
    assert text.startswith("**UNDECIDED**: `chat` P99 lies over 250 and up to 500 ms")
    assert "its 300 ms SLO is inside" in text
    assert text.count(f"Not measured: {REASON}.") == 8
    for title in ("3. Stages", "5. Input shape", "9. Optimisations", "10. SLO and capacity"):
        assert title in text
    plain = as_json(audit)
    jsonschema.validate(plain, SCHEMA)
    assert (plain["provenance"]["n_failed"], plain["end_to_end"], plain["stages"]) == (None, [], [])


def test_parts_and_token_timings_are_bounds_too(tmp_path: Path) -> None:
    """The engine's other histograms stand beside, those of no time are named and left out."""
    first = histogram("vllm:time_to_first_token_seconds", (1_900, 1_900, 1_900, 2_000), total=40.0)
    length = histogram("vllm:request_prompt_tokens", (0, 0, 1, 5))
    audit = audited(scraped(tmp_path, WHOLE, first, length))
    found = [(row.percentile, row.low_ms, row.high_ms) for row in audit.bounds if row.of == "ttft"]
    assert found == [("p50", 0, 100), ("p95", 0, 100), ("p99", 500, None)]
    said = audit.provenance.assumptions
    assert "histograms in no figure: vllm:request_prompt_tokens" in said
    assert audit.verdict is Verdict.INSUFFICIENT


def test_failed_requests_are_beyond_every_bound(tmp_path: Path) -> None:
    """A label of the status tells them apart: fast failures break the target."""
    name = "http_request_duration_seconds"
    good = histogram(name, (1_900, 1_900, 1_900, 1_900), 'code="2xx"')
    bad = histogram(name, (100, 100, 100, 100), 'code="500"')
    audit = audited(scraped(tmp_path, good, bad), "p50=100,p99=100")
    assert (audit.provenance.n, audit.provenance.n_failed) == (2_000, 100)
    assert [(row.percentile, row.status) for row in audit.bounds] == [
        ("p50", Verdict.OK),
        ("p95", None),
        ("p99", Verdict.BREACH),
    ]
    assert audit.bounds[2].high_ms is None
    assert f"end_to_end: {name}, 2 series added up" in audit.provenance.assumptions


def test_series_are_added_up_where_all_have_a_bound(tmp_path: Path) -> None:
    """The count at a common bound is exact; bounds of one series alone are given up."""
    name = "http_request_duration_seconds"
    other = f'{name}_bucket{{le="0.25",a="b"}} 10\n{name}_bucket{{le="+Inf",a="b"}} 20'
    audit = audited(scraped(tmp_path, histogram(name, (5, 10, 15, 20), 'a="a"'), other))
    assert audit.provenance.n == 40
    assert [(row.low_ms, row.high_ms) for row in audit.bounds] == [
        (0, 250),
        (250, None),
        (250, None),
    ]
    assert audit.bounds[0].mean_ms is None


def test_the_engine_goes_before_its_web_server(tmp_path: Path) -> None:
    """Both have a histogram of requests; that of the engine is of the whole answer."""
    web = histogram("http_request_duration_seconds", (2_000, 2_000, 2_000, 2_000))
    audit = audited(scraped(tmp_path, web, WHOLE))
    assert audit.bounds[0].metric == "vllm:e2e_request_latency_seconds"


def test_a_metric_that_is_not_known_is_named(tmp_path: Path) -> None:
    """Nothing is guessed of a name; --columns says it, with the unit."""
    path = scraped(tmp_path, histogram("my_duration", (0, 500, 1_000, 1_000)))
    with pytest.raises(Refused, match="none of my_duration") as caught:
        audited(path)
    assert caught.value.reason == refusals.NO_LATENCY
    audit = audited(path, "p99=500", columns=parse_columns("total_ms=my_duration:s"))
    assert audit.verdict is Verdict.OK
    with pytest.raises(ConfigError, match="no histogram 'other'"):
        audited(path, columns=parse_columns("total_ms=other:s"))


def test_a_scrape_is_never_mixed_with_requests(tmp_path: Path) -> None:
    """Not in a directory, and not as or with a baseline."""
    path = scraped(tmp_path, WHOLE)
    log = write(tmp_path, records(50), "jsonl")
    for source, baseline in ((tmp_path, None), (path, log), (log, path), (path, path)):
        with pytest.raises(Refused, match="never mixed") as caught:
            make(Settings(), Asked(source, Wanted(), NOW_NS, baseline=baseline))
        assert caught.value.reason == refusals.MIXED


def test_two_scrapes_are_not_added_up(tmp_path: Path) -> None:
    """A later scrape holds the requests of the earlier one again."""
    scraped(tmp_path, WHOLE)
    with pytest.raises(ConfigError, match="holds one scrape"):
        audited(tmp_path)
    scraped(tmp_path, WHOLE, name="later.prom")
    with pytest.raises(Refused, match="never mixed"):
        audited(tmp_path)


def test_histograms_give_no_proposal(tmp_path: Path) -> None:
    """What takes single requests is refused as usage, and says so."""
    done = CliRunner().invoke(app, ["audit", str(scraped(tmp_path, WHOLE)), "--propose-slo"])
    assert isinstance(done.exception, ConfigError)


def test_scrapes_in_other_forms(tmp_path: Path) -> None:
    """Compressed ones and those of OpenMetrics are the same."""
    path = tmp_path / "metrics.gz"
    path.write_bytes(gzip.compress(scraped(tmp_path, WHOLE).read_bytes()))
    family = "vllm:e2e_request_latency_seconds"
    open_metrics = tmp_path / "open.txt"
    open_metrics.write_text(f"# TYPE {family} histogram\n{WHOLE}\n# EOF\n")
    expected = audited(tmp_path / "metrics.prom").bounds
    assert audited(path).bounds == expected
    assert audited(open_metrics).bounds == expected


def test_damaged_scrapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text that only begins like a scrape is an error, and so is one that never ends."""
    with pytest.raises(DecodeError, match="no text of Prometheus"):
        audited(scraped(tmp_path, 'broken_bucket{le="'))
    monkeypatch.setattr(prometheus, "MAX_BYTES", 100)
    with pytest.raises(DecodeError, match="more than 100 bytes"):
        audited(scraped(tmp_path, WHOLE))


def test_what_counts_nothing(tmp_path: Path) -> None:
    """A service without a request has no percentile, and a scrape of gauges holds none."""
    empty = histogram("http_request_duration_seconds", (0, 0, 0, 0), total=0.0)
    audit = audited(scraped(tmp_path, empty), "p99=5")
    assert (audit.verdict, audit.bounds) == (Verdict.NO_DATA, ())
    assert "NO DATA" in markdown(audit)
    with pytest.raises(Refused, match="Prometheus, without a histogram"):
        audited(scraped(tmp_path, "up 1"))


def test_every_known_metric_has_a_short_name() -> None:
    """The table is written as names are looked up in it."""
    assert all(scrape._short(name) == name for name in scrape.KNOWN)

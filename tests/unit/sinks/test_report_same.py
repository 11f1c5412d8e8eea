"""Markdown, HTML, text and JSON say the same of one audit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import audits
import pytest
from said import html_words, markdown_words, text_words

from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.figures import count, number
from tailbudget.sinks.report.json_report import as_json

FORMATS = {"markdown": markdown_words, "html": html_words, "text": text_words}
KEY_FIGURES = {
    "end_to_end": ("measured_ms", "slo_ms", "headroom_ms"),
    "stages": ("p50_ms", "p95_ms", "p99_ms", "mean_fast_ms", "mean_slow_ms", "delta_ms"),
    "shape": ("r2", "slope_ms_per_unit", "intercept_ms", "exponent"),
    "cohorts": ("p99_ms", "delta_ms", "slow_share_pct", "traffic_share_pct", "p99_without_ms"),
    "causes": ("score",),
    "optimizations": ("p99_saved_ms", "hours", "ms_per_hour"),
}

every_format = pytest.mark.parametrize("words", FORMATS.values(), ids=FORMATS)


def figures(report: dict[str, Any]) -> Iterator[str]:
    """Yield the key figures of a JSON report as a reader sees them."""
    for section, keys in KEY_FIGURES.items():
        for row in report[section]:
            yield from (shown(key, row[key]) for key in keys if row[key] is not None)
    provenance, cold, baseline = report["provenance"], report["cold_start"], report["baseline"]
    yield from (count(provenance[key]) for key in ("n", "n_ok", "n_failed"))
    yield from (count(n) for n in report["ledger"].values())
    yield from (number(cold[key]) for key in ("unfiltered_p99_ms", "filtered_p99_ms"))
    yield from (number(part["delta_ms"]) for part in baseline["parts"])
    yield from (number(row["supported_ms"]) for row in report["recommendation"]["supported"])


def shown(key: str, value: float) -> str:
    """Return a figure with the decimals of its kind."""
    kinds = {"_pct": 2, "_ms": 3, "r2": 3}
    return number(value, next((n for end, n in kinds.items() if key.endswith(end)), 6))


@every_format
def test_key_figures_of_the_json_report_occur(words: Callable[[Audit], list[str]]) -> None:
    """Every key figure stands in the report as a word of its own."""
    wanted = set(figures(as_json(audits.breach())))
    found = {word.strip("(),;.").removeprefix("+") for word in words(audits.breach())}
    assert len(wanted) > 80
    assert wanted - found == set()


@pytest.mark.parametrize("build", [audits.breach, audits.sparse])
def test_formats_say_the_same_words_in_the_same_order(build: Callable[[], Audit]) -> None:
    """Nothing but the layout differs between Markdown, HTML and text."""
    said = markdown_words(build())
    assert len(said) > 100
    assert html_words(build()) == said
    assert text_words(build()) == said


@pytest.mark.parametrize("name", audits.HOSTILE, ids=range(len(audits.HOSTILE)))
def test_formats_say_the_same_of_hostile_names(name: str) -> None:
    """A name's signs are shown as they are in each format, not obeyed in any."""
    audit = audits.hostile(name)
    said = html_words(audit)
    assert markdown_words(audit) == said
    assert text_words(audit) == said


@every_format
def test_the_verdict_comes_first(words: Callable[[Audit], list[str]]) -> None:
    """The first line says what breaks, by how much, the driver, the cohort and the first fix."""
    line = " ".join(words(audits.breach())[:60])
    assert line.startswith(
        "BREACH: fraud-scoring P99 is 512.8 ms, 312.8 ms over its 200 ms SLO (P95 too); "
        "tail driver feature_lookup +265.2 ms in slow requests (92.4 %); "
        "worst cohort route=bulk, 92.1 % of slow requests from 8.01 % of traffic; "
        "first fix: Fetch all features of a batch in one request (an estimated 254 ms of P99 "
        "for 16 hours of work)."
    )
    assert as_json(audits.breach())["headline"] in line


@every_format
def test_what_is_unknown_never_reads_as_zero(words: Callable[[Audit], list[str]]) -> None:
    """Of an audit without measurements no figure is 0 but the score of the unknown cause."""
    said = words(audits.sparse())
    assert said.count("0") == 1
    assert not {"None", "nan", "NaN", "null"} & set(said)
    assert " ".join(said).count("not measured") + " ".join(said).count("Not measured") > 8

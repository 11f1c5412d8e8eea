"""What the documentation says is so: links, commands, settings, reasons, keys and numbers."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from pages import DOCS, PAGES, ROOT, anchors, blocks, codes, prose, rows, text
from requests_of import SECOND_NS, T0_NS, columns_of, summary_of

from tailbudget.models import breach, compare, evidence, ranks, sample, sketch, snapshot
from tailbudget.schemas import ledger, wire
from tailbudget.schemas.alert import Alert
from tailbudget.schemas.setting_paths import locate
from tailbudget.schemas.settings import Settings
from tailbudget.schemas.slo import QUANTILES, SloTarget
from tailbudget.schemas.yaml_file import Key
from tailbudget.streams import (
    anomaly_watch,
    dedup,
    held_attempts,
    holes,
    instrument,
    proofs,
    protocol,
    rolling_reports,
    segment_sender,
    service_audit,
    topics,
    up,
    watched,
    worker,
)
from tailbudget.streams.alert_book import AlertBook
from tailbudget.streams.audit_log import discovery
from tailbudget.streams.audit_log import sample as first_rows
from tailbudget.streams.cli.app import app
from tailbudget.streams.instrument import producer, shipper
from tailbudget.streams.sources import lines

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
SETTING = re.compile(
    r"(kafka|clickhouse|stream|defaults|services|chat|web|slo)(\[\])?(\.[A-Za-z_]+(\[\])?)+\*?"
)
VARIABLE = re.compile(r"\bTAILBUDGET_[A-Z0-9_]+")
NEED_ARGUMENTS = {"replay", "report", "sql"}
NO_SETTINGS = {"TAILBUDGET_CONFIG", "TAILBUDGET_FILE"}

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file that exists, and a heading that it has."""
    for target in LINK.findall(prose(page)):
        if "://" in target:
            continue
        path, _, fragment = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert not fragment or fragment in anchors(file), target


def test_the_index_names_every_page() -> None:
    """A reader of the index finds all pages, and the README leads to them too."""
    pages = {page.name for page in DOCS.glob("*.md")} - {"index.md"}
    assert pages == {name for name in LINK.findall(text(DOCS / "index.md")) if "/" not in name}
    linked = set(LINK.findall(text(ROOT / "README.md")))
    assert {f"docs/{name}" for name in pages | {"index.md"}} <= linked


def command_lines(page: Path) -> Iterator[list[str]]:
    """Yield the arguments of every command line of ours on a page."""
    whole = [block.replace("\\\n", " ") for block in blocks(page, "sh")]
    spans = [code for code in codes(page) if "tailbudget " in code and "…" not in code]
    for script in [*whole, *spans]:
        for words in shell_commands(script):
            while words and "=" in words[0]:
                del words[0]
            if words[:1] == ["tailbudget"]:
                yield words[1:]


def shell_commands(script: str) -> Iterator[list[str]]:
    """Yield the words of each line; a line ends at a newline outside of quotes."""
    lexer = shlex.shlex(script + "\n", posix=True, punctuation_chars="\n")
    lexer.whitespace, lexer.whitespace_split = " \t", True
    words: list[str] = []
    for word in lexer:
        if word.strip("\n"):
            words.append(word)
        else:
            yield words
            words = []


@every_page
def test_command_lines_are_understood(page: Path) -> None:
    """Every command line names a command of ours, with arguments that it takes."""
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    for arguments in command_lines(page):
        name, *rest = arguments
        if rest or name not in NEED_ARGUMENTS:
            group.commands[name].make_context(name, rest)


def test_the_pages_have_command_lines() -> None:
    """The search for command lines finds them, in blocks and within sentences."""
    found = [arguments for page in PAGES for arguments in command_lines(page)]
    assert ["up", "--for", "125s", "--data", "./demo"] in found
    assert ["migrate"] in found
    assert any(arguments[:1] == ["sql"] and "SELECT" in arguments[-1] for arguments in found)


def key_of(path: str) -> Key:
    """Return the path of a setting as the pages write it."""
    if path.startswith("slo."):
        path = f"defaults.{path}"
    key: list[str | int] = []
    for part in path.split("."):
        key += [part.removesuffix("[]"), *([0] if part.endswith("[]") else [])]
    return tuple(key)


@every_page
def test_settings_exist(page: Path) -> None:
    """Every setting that a page names can be set; a star stands for the rest of a name."""
    for code in codes(page):
        if SETTING.fullmatch(code) is None or code.endswith((".yaml", ".md")):
            continue
        if code.endswith("*"):
            *path, start = key_of(code.rstrip("*"))
            names = locate(Settings, (*path, "?")).siblings
            assert any(name.startswith(str(start)) for name in names), code
        else:
            assert locate(Settings, key_of(code)).known, code


@every_page
def test_variables_exist(page: Path) -> None:
    """Every variable that a page names overrides a setting."""
    for name in set(VARIABLE.findall(text(page))) - NO_SETTINGS:
        parts = name.removeprefix("TAILBUDGET_").lower().split("__")
        key: Key = tuple(int(part) if part.isdecimal() else part for part in parts)
        assert name == "TAILBUDGET_" or locate(Settings, key).known, name


def test_the_page_lists_every_reason_of_the_ledger() -> None:
    """The table says of each reason what the code says, in its order."""
    table = rows(DOCS / "record.md", "| Reason | Meaning |")
    assert table == [[f"`{reason}`", meaning] for reason, meaning in ledger.MEANING.items()]


def test_the_page_lists_every_reason_to_drop_a_record() -> None:
    """The table of the instrumentation says of each reason what the code says, in its order."""
    table = rows(DOCS / "instrument.md", "| Reason | Meaning |")
    assert table == [[f"`{reason}`", meaning] for reason, meaning in instrument.DROPS.items()]


@every_page
def test_json_and_python_are_well_formed(page: Path) -> None:
    """Every example of a record, an event or a program can be read."""
    for block in blocks(page, "json"):
        assert isinstance(json.loads(block), dict)
    for block in blocks(page, "python"):
        ast.parse(block)


def alert() -> Alert:
    """Return the alert of a service that answers too slowly."""
    audit = service_audit.ServiceAudit(
        "chat", SloTarget(p99_ms=5), pane_s=10, book=AlertBook("chat")
    )
    times = [T0_NS + i * SECOND_NS // 100 for i in range(1000)]
    slow = columns_of([float(10 + i % 7) for i in range(1000)], ts_ns=times, service="chat")
    audit.add(summary_of(slow, thresholds_ms=(5.0,)))
    (said,) = audit.judge(T0_NS + 9 * SECOND_NS, [])
    return said


def test_the_page_lists_every_key_of_an_alert() -> None:
    """The table names the keys of the message on the alerts topic, and no others."""
    table = rows(DOCS / "windows-and-alerts.md", "| Key | Meaning |")
    named = [name for row in table for name in re.findall(r"`(\w+)`", row[0])]
    payload = alert().to_payload()
    assert sorted(named) == sorted(payload)
    assert f"`{payload['schema']}`" in table[0][1]


def test_the_page_lists_every_topic() -> None:
    """The table of topics says how each is cleaned up."""
    kafka = Settings().kafka
    table = rows(DOCS / "deployment.md", "| Topic | Written by | Cleanup | Kept |")
    said = {row[0].strip("`").replace("<prefix>", kafka.prefix): row[2] for row in table}
    requests = said.pop("the request topics")
    specs = {spec.name: spec.cleanup.replace(",", ", ") for spec in topics.topic_specs(kafka)}
    assert requests == specs.pop(kafka.requests[0].topic)
    assert said == specs


def test_the_page_names_what_up_decides() -> None:
    """The page of the embedded stack has the settings that `up` puts in."""
    page = text(DOCS / "embedded.md")
    chosen = up.embedded_settings(Settings(), Path("demo"), "127.0.0.1:1", 6066)
    kafka, slo = chosen.kafka, chosen.service("chat").slo
    assert slo is not None
    assert f"| {kafka.session_timeout_s:g} and {kafka.heartbeat_s:g}, " in page
    assert f"{slo.p50_ms:g}, {slo.p95_ms:g} and {slo.p99_ms:g} ms" in page
    assert f"after {up.FAULT_AFTER_S:g} s its stage" in page
    assert f"slower for {up.FAULT_FOR_S:g} s" in page
    assert f"up to {holes.TRIES} times" in page


NUMBERS = (
    ("shape-and-anomaly.md", f"| rows a tick | {anomaly_watch.MOST_ROWS:,};"),
    ("shape-and-anomaly.md", f"event time into | {anomaly_watch.MOST_TICKS}:"),
    ("shape-and-anomaly.md", f"wait for event time | {anomaly_watch.MOST_WAITING:,} |"),
    ("shape-and-anomaly.md", f"behind event time | {anomaly_watch.LATE_NS // 10**9} s;"),
    ("shape-and-anomaly.md", f"`<prefix>.models` every {watched.SAVE_S:g} s"),
    (
        "pane-summary.md",
        f"at most 1/{1 / sketch.RELATIVE_ERROR:g} = {100 * sketch.RELATIVE_ERROR:g} %",
    ),
    ("pane-summary.md", f"{sample.KEEP.group} whole requests of each cohort"),
    ("pane-summary.md", f"its slowest {sample.SLOWEST}"),
    ("pane-summary.md", f"more than {segment_sender.MAX_BODY:,} bytes"),
    ("pane-summary.md", f"`{wire.MAGIC.decode()}` and a version byte ({wire.VERSION})"),
    ("pane-summary.md", f"`{protocol.MAGIC.decode()}` and a version byte ({protocol.VERSION})"),
    ("record.md", f"{dedup.Dedup(200_000).sets:,} sets of {dedup.WAYS}"),
    ("record.md", f"more than {held_attempts.MOST_FAILED:,} failed attempts"),
    ("comparison.md", f"at {compare.LEVEL:.0%}".replace("%", " %")),
    ("comparison.md", f"at least {ranks.requests_needed(QUANTILES['p99']):,} on either side"),
    ("comparison.md", f"at most {evidence.REPORT_SAMPLE.group:,}"),
    ("exactly-once.md", f"every {proofs.MARK_S:g} s"),
    ("exactly-once.md", f"first {lines.RAW_BYTES:,} bytes"),
    ("windows-and-alerts.md", f"above {snapshot.AT_RISK_SHARE:.0%}".replace("%", " %")),
    ("windows-and-alerts.md", f"less than {snapshot.CHANCE:.0%}".replace("%", " %")),
    ("windows-and-alerts.md", f"less than {breach.CHANCE:.0%}".replace("%", " %")),
    ("windows-and-alerts.md", f"below {breach.CLEAR_SHARE:.0%}".replace("%", " %")),
    ("windows-and-alerts.md", f"for {breach.CLEAR_NS / SECOND_NS:g} s"),
    ("windows-and-alerts.md", f"the last {service_audit.RESET_S} s do not deny it"),
    ("windows-and-alerts.md", f"(or {ranks.EVIDENCE} beyond the target)"),
    ("windows-and-alerts.md", f"audits of the last {service_audit.MAX_CAUGHT_UP} are"),
    ("windows-and-alerts.md", f"{rolling_reports.MOST_BEHIND} reports of each window back"),
    ("windows-and-alerts.md", f"about {1 / worker.JUDGE_S:g} times a second"),
    ("windows-and-alerts.md", f"After {service_audit.SILENT_NS / SECOND_NS:g} s without"),
    ("instrument.md", f"holds {instrument.Limits().queue:,} records"),
    ("instrument.md", f"for {instrument.Limits().flush_s:g} s at most"),
    ("instrument.md", f"up to {shipper.INTERVAL_S:g} s of records"),
    ("instrument.md", f"topic `{producer.TOPIC}`"),
    (
        "instrument.md",
        f"buffer holds {producer.KAFKA_DEFAULTS['queue.buffering.max.kbytes'] >> 10} MiB",
    ),
    (
        "instrument.md",
        f"a message waits {producer.KAFKA_DEFAULTS['message.timeout.ms'] // 1000} s for the broker",
    ),
    ("audit-input.md", f"the first {first_rows.ROWS:,} rows"),
    ("audit-input.md", f"at most {first_rows.MANY} values"),
    ("audit-input.md", f"at least {discovery.ROWS_PER_VALUE} rows for each"),
    ("audit-input.md", f"combinations are at most {discovery.MAX_COHORTS:,}"),
    ("deployment.md", f"messages of {topics.MAX_MESSAGE_BYTES >> 20} MiB"),
    ("deployment.md", f"at most {worker.STOP_S:g} s"),
)


@pytest.mark.parametrize(("page", "said"), NUMBERS)
def test_numbers_are_those_of_the_code(page: str, said: str) -> None:
    """A number on a page is the constant that decides it."""
    assert said in text(DOCS / page)


def test_the_requests_that_a_percentile_takes() -> None:
    """The page says how many requests each percentile takes."""
    said = ", ".join(f"{ranks.requests_needed(q):,} for {name}" for name, q in QUANTILES.items())
    assert f"requests: {said}." in text(DOCS / "windows-and-alerts.md")

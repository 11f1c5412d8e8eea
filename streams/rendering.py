"""A report in the format that was asked for, with what else was asked for."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Final

import orjson
from rich.console import Console

from tailbudget.models.advice import brief
from tailbudget.models.evidence import Evidence
from tailbudget.models.slo_proposal import proposal
from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.html_report import html
from tailbudget.sinks.report.json_report import as_json
from tailbudget.sinks.report.markdown_report import markdown
from tailbudget.sinks.report.text_report import text
from tailbudget.streams.cli.judging import Extras

_WIDTH: Final = 120


def with_extras(audit: Audit, evidence: Evidence, extras: Extras) -> Audit:
    """Return a report with the proposal and the brief, as far as they are asked for.

    Raises:
        ConfigError: they are asked of histograms.
    """
    if audit.bounds and (extras.propose_slo or extras.advice):
        raise ConfigError(
            "histograms give neither a proposal nor advice", remedy="give a log of single requests"
        )
    if extras.propose_slo and audit.provenance.n:
        audit = replace(audit, proposal=proposal(evidence, audit.stages))
    if extras.advice:
        audit = replace(audit, brief=brief(audit, extras.context))
    return audit


def render(audit: Audit, format_name: str) -> str:
    """Return a report as "text", "markdown", "html" or "json"."""
    if format_name == "json":
        return orjson.dumps(as_json(audit), option=orjson.OPT_INDENT_2).decode() + "\n"
    if format_name == "html":
        return html(audit)
    if format_name == "markdown":
        return markdown(audit)
    file = io.StringIO()
    text(audit, Console(file=file, width=_WIDTH, color_system=None))
    return file.getvalue()

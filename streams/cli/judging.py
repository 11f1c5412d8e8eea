"""Options of the commands that print a report, and how it is printed."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer

from tailbudget.schemas.context import Context, load_context
from tailbudget.schemas.errors import ConfigError

if TYPE_CHECKING:
    from tailbudget.models.evidence import Evidence
    from tailbudget.schemas.verdicts import Audit


class Format(StrEnum):
    """How a report is written."""

    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"


Slo = Annotated[
    str | None,
    typer.Option(
        "--slo",
        "--slo-target",
        metavar="TARGET",
        help="Such as p50=100,p95=180,p99=200,budget=1; else what the settings say.",
    ),
]
SlowThreshold = Annotated[
    str,
    typer.Option(
        "--slow-request-threshold",
        metavar="WHERE",
        help="Where slow begins: p95 (to p99), p99 (and beyond), or milliseconds.",
    ),
]
As = Annotated[Format, typer.Option("--format", "-f", help="How the report is written.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file.")
]
Advice = Annotated[
    bool, typer.Option("--advice", help="Add the optimisation brief.", show_default=False)
]
ContextFile = Annotated[
    Path | None,
    typer.Option(
        "--context",
        metavar="FILE",
        help="YAML or JSON about framework, runtime, hardware, traffic, constraints; for --advice.",
    ),
]
ProposeSlo = Annotated[
    bool,
    typer.Option(
        "--propose-slo",
        help="Add the SLO that the measured profile supports, with a budget for each stage.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class Extras:
    """What is asked for beside the report.

    Attributes:
        propose_slo: the SLO that the profile supports.
        advice: the optimisation brief.
        context: about the service, for the brief.
    """

    propose_slo: bool = False
    advice: bool = False
    context: Context = field(default_factory=Context)

    @classmethod
    def asked(cls, *, propose_slo: bool, advice: bool, context: Path | None) -> Self:
        """Return what the options say.

        Raises:
            ConfigError: the context is wrong, or nothing would read it.
        """
        if context is not None and not advice:
            raise ConfigError("--context is for the brief", remedy="add --advice")
        return cls(propose_slo, advice, load_context(context) if context else Context())


def slow_threshold(text: str) -> str | float:
    """Return "p95", "p99" or milliseconds.

    Raises:
        ConfigError: it is none of them.
    """
    if text in {"p95", "p99"}:
        return text
    try:
        ms = float(text.removesuffix("ms"))
    except ValueError:
        ms = 0.0
    if not 0 < ms < float("inf"):
        raise ConfigError(
            f"--slow-request-threshold {text!r} is no threshold",
            remedy="give p95, p99 or milliseconds, such as 250",
        )
    return ms


def exit_status(audit: Audit) -> int:
    """Return 0 within the SLO, 1 for a breach, 3 for a refusal, 4 for not enough data.

    Where only part of the audit is refused, as without stages, what was judged goes before it.
    """
    from tailbudget.schemas.verdicts import Verdict, is_refused, is_unjudged  # noqa: PLC0415

    if is_refused(audit):
        return 3
    if audit.verdict is Verdict.BREACH:
        return 1
    if audit.verdict not in {Verdict.OK, Verdict.AT_RISK} and not is_unjudged(audit):
        return 4
    return 3 if audit.refused and not audit.bounds else 0


def print_report(
    found: tuple[Audit, Evidence], extras: Extras, format_: Format, output: Path | None
) -> None:
    """Write a report with what else was asked for, and exit with its status.

    Args:
        found: the report, and the evidence that it was drawn from.
        extras: what else.
        format_: how it is written.
        output: a file; None is standard output.

    Raises:
        ConfigError: the file cannot be written.
        typer.Exit: always, with the exit status.
    """
    from tailbudget.streams.rendering import render, with_extras  # noqa: PLC0415

    audit = with_extras(*found, extras)
    if output is not None:
        _write(render(audit, format_.value), output)
    elif format_ is Format.TEXT and sys.stdout.isatty():
        from rich.console import Console  # noqa: PLC0415

        from tailbudget.sinks.report.text_report import text  # noqa: PLC0415

        text(audit, Console())
    else:
        sys.stdout.write(render(audit, format_.value))
    raise typer.Exit(exit_status(audit))


def _write(text: str, output: Path) -> None:
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"{output} cannot be written: {error.strerror}", remedy="give another --output"
        ) from error

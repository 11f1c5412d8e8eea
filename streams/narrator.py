"""Tells a person at a terminal what the embedded stack does."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.markup import escape

from tailbudget.schemas.messages import ChatMessage
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.chat import UNLIMITED
from tailbudget.sinks.chat_text import ms_text
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.simulate import Progress

_LATEST: Final = """
SELECT p50_ms, p95_ms, p99_ms, requests, failed, verdict, tail_driver, toUnixTimestamp64Milli(end)
FROM audits FINAL WHERE service = {service:String} AND window_s = 60 ORDER BY end DESC LIMIT 1
"""
_REGRESSIONS: Final = """
SELECT stage, phase, effect_pct, low_pct, high_pct, effect_ms, deploy, cause,
    toUnixTimestamp64Nano(at) AS at_ns, formatDateTime(onset, '%T')
FROM anomalies FINAL
WHERE service = {service:String} AND phase != 'spread' AND at_ns > {since:Int64} ORDER BY at_ns
"""
_NEWEST_CHANGE: Final = """
SELECT toUnixTimestamp64Nano(max(at)) FROM anomalies WHERE service = {service:String}
"""
_COLOURS: Final = {"ok": "green", "at_risk": "yellow", "breach": "red"}


class Narrator:
    """Prints what happens; a chat channel too, so that alerts appear among the rest.

    Attributes:
        name: how the channel is called in logs.
        limits: a terminal takes anything.
    """

    name = "console"
    limits = UNLIMITED

    def __init__(self, console: Console, store: ClickHouse, service: str) -> None:
        self._console = console
        self._store = store
        self._service = service
        self._began = time.monotonic()
        self._told_ms = self._newest_ms()
        self._told_ns = self._newest_change_ns()

    def welcome(self, settings: Settings, path: Path, *, kept: bool) -> None:
        """Say what runs where."""
        target = settings.service(self._service).slo
        promised = ", ".join(f"{n} {ms_text(ms)}" for n, ms in target.items()) if target else "none"
        fate = "kept" if kept else "removed at the end; keep it with --data DIR"
        self._console.print(
            f"broker      {settings.kafka.bootstrap} (in memory), "
            f"topic {settings.kafka.requests[0].topic}\n"
            f"ClickHouse  embedded, in {path} ({fate})\n"
            f"dashboard   http://{settings.web.host}:{settings.web.port}/\n"
            f"service     {self._service}, simulated; SLO {promised}\n"
            f"Ctrl-C ends it. Percentiles come every {settings.stream.pane_s} s. "
            f"Query it from another terminal:\n"
            f"  {self._query(path)}\n",
            soft_wrap=True,
        )

    def farewell(self, path: Path, *, kept: bool) -> None:
        """Say how to go on."""
        self._console.print(f"stopped; {'query it again' if kept else 'the data are removed'}")
        if kept:
            self._console.print(f"  {self._query(path)}", soft_wrap=True)

    def happened(self, progress: Progress) -> None:
        """Print what began or ended in the simulated service."""
        for what in progress.happened:
            self._say("simulated", escape(what), "cyan")

    def send(self, message: ChatMessage) -> str:
        """Print an alert as a chat channel would show it."""
        style = "bold red" if message.state == "firing" else "bold green"
        self._say("alert", escape(message.title), style)
        for line in message.body.splitlines():
            if line.strip("`"):
                indented = f"{'':>20}{escape(line)}"
                self._console.print(indented, style=style.split()[1], soft_wrap=True)
        return ""

    def percentiles(self) -> None:
        """Print the latest rolling audit of the last minute, when there is a new one."""
        rows = self._store.query(_LATEST, {"service": self._service}).rows
        if not rows or rows[0][-1] <= self._told_ms:
            return
        p50, p95, p99, requests, failed, verdict, driver, self._told_ms = rows[0]
        shown = "  ".join(
            f"{name} {'-' if value is None else ms_text(value):>9}"
            for name, value in (("p50", p50), ("p95", p95), ("p99", p99))
        )
        text = f"{shown}  {requests:>7,} requests, {failed} failed  {verdict}"
        if driver:
            text += f"  tail driver {driver}"
        self._say("last minute", escape(text), _COLOURS.get(verdict, "dim"))

    def regressions(self) -> None:
        """Print in a line each stage that became slower for the same shapes, or itself again."""
        given = {"service": self._service, "since": self._told_ns}
        for row in self._store.query(_REGRESSIONS, given).rows:
            stage, phase, pct, low, high, ms, deploy, cause, self._told_ns, onset = row
            began = phase == "started"
            text = f"{stage} {'is slower for the same shapes' if began else 'is over: ' + phase}"
            if pct is not None:
                text += f", {pct:+.0f} % ({low:+.0f} to {high:+.0f}), {ms_text(ms)} a request"
            text += f", since {onset}"
            text += f", after {deploy}" if deploy else ""
            text += f", {cause.replace('_', ' ')}" if cause else ""
            self._say("regression", escape(text), "bold red" if began else "bold green")

    def _newest_change_ns(self) -> int:
        return int(self._store.query(_NEWEST_CHANGE, {"service": self._service}).rows[0][0])

    def _say(self, kind: str, text: str, style: str) -> None:
        seconds = time.monotonic() - self._began
        self._console.print(f"{seconds:6.1f} s {kind:>11} {text}", style=style, soft_wrap=True)

    def _newest_ms(self) -> int:
        """Return the end of the newest audit: what an earlier run left is no news."""
        rows = self._store.query(_LATEST, {"service": self._service}).rows
        return int(rows[0][-1]) if rows else 0

    def _query(self, path: Path) -> str:
        sql = f"SELECT * FROM latency(window = 60) WHERE service = '{self._service}'"
        return f'tailbudget sql --data {shlex.quote(str(path))} "{sql}"'

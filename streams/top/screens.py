"""The screens: all services, one service, and alerts.

Each reads what it shows in a thread, and shows it afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Footer, Static, TabbedContent, TabPane

from tailbudget.models.cohort_split import WHOLE
from tailbudget.sinks.report.clean import clean, clean_name
from tailbudget.streams.top import cells, questions
from tailbudget.streams.top.asking import Asking, Rows
from tailbudget.streams.top.live_table import Line, LiveTable

T = TypeVar("T")

_ALERTS: Final = ("at (UTC)", "alert", "state", "ms", "SLO", "tail driver", "reason")


class LiveScreen(Screen[None], Generic[T]):
    """A screen that shows the newest answers."""

    def compose(self) -> ComposeResult:
        """Lay out what all screens have: a line of state, the content, and the keys."""
        yield Static(Text("reading …", "dim"), id="state")
        yield from self.content()
        yield Footer(show_command_palette=False)

    def content(self) -> ComposeResult:
        """Lay out what is between the first line and the last."""
        raise NotImplementedError

    def read(self, asking: Asking, window_s: int) -> T:
        """Return the answers; runs in a thread, and raises what `Asking.rows` does."""
        raise NotImplementedError

    def show(self, found: T, now_s: float) -> None:
        """Show answers."""
        raise NotImplementedError

    def tell(self, state: Text) -> None:
        """Show the line of state."""
        self.query_one("#state", Static).update(state)


@dataclass(frozen=True, slots=True)
class _Services:
    audits: Rows
    firing: frozenset[str]


class Overview(LiveScreen[_Services]):
    """All services, the worst first."""

    BINDINGS: ClassVar[list[BindingType]] = [("a", "alerts", "Alerts")]

    def content(self) -> ComposeResult:
        """Lay out the table of services."""
        columns = ("service", "status", "p50 ms", "p95 ms", "p99 ms", "SLO ms", "n", "alerts")
        yield LiveTable(columns, "no service has sent anything yet", id="services")

    def read(self, asking: Asking, window_s: int) -> _Services:
        """Ask for the newest audits, and for what fires."""
        firing = asking.rows(questions.alerts_open())
        audits = asking.rows(questions.services(window_s))
        return _Services(audits, frozenset(row["service"] for row in firing))

    def show(self, found: _Services, now_s: float) -> None:
        """Show a line a service."""
        lines = [
            _service(row, now_s, firing=row["service"] in found.firing) for row in found.audits
        ]
        self.query_one(LiveTable).show(lines)

    def on_data_table_row_selected(self, event: LiveTable.RowSelected) -> None:
        """Go to the service that was chosen."""
        if event.row_key.value:
            self.app.push_screen(OneService(event.row_key.value))

    def action_alerts(self) -> None:
        """Go to the alerts of all services."""
        self.app.push_screen(Alerts())


@dataclass(frozen=True, slots=True)
class _Service:
    audit: Rows
    stages: Rows
    cohorts: Rows
    alerts: Rows


class OneService(LiveScreen[_Service]):
    """One service: its stages, cohorts and alerts.

    Args:
        service: the service's name.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "app.pop_screen", "Back"),
        ("s", "tab('stages')", "Stages"),
        ("c", "tab('cohorts')", "Cohorts"),
        ("a", "tab('alerts')", "Alerts"),
    ]

    AUTO_FOCUS = "#stage-table"

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def content(self) -> ComposeResult:
        """Lay out the headline and the tables."""
        yield Static(id="headline")
        stages = (
            "stage",
            "p50 ms",
            "p95 ms",
            "p99 ms",
            "fast ms",
            "slow ms",
            "slow-fast",
            "tail %",
        )
        cohorts = ("cohort", "n", "p99 ms", "to all ms", "slow %", "traffic %")
        with TabbedContent(id="tabs"):
            with TabPane("Stages", id="stages"):
                yield LiveTable(stages, "no stage was timed", id="stage-table")
            with TabPane("Cohorts", id="cohorts"):
                yield LiveTable(cohorts, "the records name no cohort", id="cohort-table")
            with TabPane("Alerts", id="alerts"):
                yield LiveTable(_ALERTS, "nothing has fired", id="alert-table")

    def read(self, asking: Asking, window_s: int) -> _Service:
        """Ask for the newest audit and its parts."""
        return _Service(
            asking.rows(questions.service(self._service, window_s)),
            asking.rows(questions.stages(self._service, window_s)),
            asking.rows(questions.cohorts(self._service, window_s)),
            asking.rows(questions.alerts(self._service)),
        )

    def show(self, found: _Service, now_s: float) -> None:
        """Show the headline and all tables, also those behind other tabs."""
        self.query_one("#headline", Static).update(_headline(self._service, found.audit, now_s))
        self.query_one("#stage-table", LiveTable).show([_stage(row) for row in found.stages])
        self.query_one("#cohort-table", LiveTable).show([_cohort(row) for row in found.cohorts])
        self.query_one("#alert-table", LiveTable).show([_alert(row) for row in found.alerts])

    def action_tab(self, name: str) -> None:
        """Show one of the tables, ready for the arrow keys."""
        tabs = self.query_one("#tabs", TabbedContent)
        tabs.active = name
        tabs.get_pane(name).query_one(LiveTable).focus()


class Alerts(LiveScreen[Rows]):
    """The newest changes of alerts, of all services."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "app.pop_screen", "Back")]

    def content(self) -> ComposeResult:
        """Lay out the table of alerts."""
        columns = ("service", *_ALERTS)
        yield LiveTable(columns, "nothing has fired", id="all-alerts")

    def read(self, asking: Asking, window_s: int) -> Rows:
        """Ask for the alerts; they belong to no window."""
        del window_s
        return asking.rows(questions.alerts())

    def show(self, found: Rows, now_s: float) -> None:
        """Show a line a change."""
        del now_s
        lines = [_alert(row) for row in found]
        named = (cells.name(row["service"]) for row in found)
        self.query_one(LiveTable).show(
            [Line(line.key, (name, *line.cells)) for name, line in zip(named, lines, strict=True)]
        )

    def on_data_table_row_selected(self, event: LiveTable.RowSelected) -> None:
        """Go to the service of the alert."""
        if service := (event.row_key.value or "").partition("\n")[2]:
            self.app.push_screen(OneService(service))


def _service(row: dict[str, Any], now_s: float, *, firing: bool) -> Line:
    return Line(
        row["service"],
        (
            cells.name(row["service"]),
            cells.status(row, now_s),
            cells.percentile(row, "p50"),
            cells.percentile(row, "p95"),
            cells.percentile(row, "p99"),
            cells.promise(row),
            cells.counted(row["requests"]),
            Text("firing", "bold red") if firing else Text("none", "dim"),
        ),
    )


def _headline(service: str, audit: Rows, now_s: float) -> Text:
    title = Text(clean_name(service), "bold")
    if not audit:
        return title.append("\nno audit of this window", "dim")
    row = audit[0]
    title.append("  ").append_text(cells.status(row, now_s))
    driver = clean_name(row["tail_driver"]) if row["tail_driver"] else "unknown"
    title.append(f"  {row['requests']:,} requests, {row['failed']:,} failed")
    title.append("\n").append_text(cells.promises(row)).append(f"tail driver: {driver}")
    return title


def _stage(row: dict[str, Any]) -> Line:
    figures = ("p50_ms", "p95_ms", "p99_ms", "mean_fast_ms", "mean_slow_ms", "delta_ms")
    return Line(
        row["stage"],
        (
            cells.name(row["stage"]),
            *(cells.figure(row[key]) for key in figures),
            cells.figure(row["tail_share_pct"], "bold"),
        ),
    )


def _cohort(row: dict[str, Any]) -> Line:
    return Line(
        repr((row["dimension"], row["value"])),
        (
            cells.name(_cohort_name(row), 30),
            cells.counted(row["n"]),
            cells.figure(row["p99_ms"]),
            cells.figure(row["delta_ms"]),
            cells.figure(row["slow_share_pct"], "bold"),
            cells.figure(row["traffic_share_pct"]),
        ),
    )


def _cohort_name(row: dict[str, Any]) -> str:
    """Return the text of a cohort: a pair of dimensions has both in its value."""
    value = str(row["value"])
    return value if row["dimension"] == WHOLE else f"{row['dimension']}={value}"


def _alert(row: dict[str, Any]) -> Line:
    return Line(
        f"{row['at_ms']} {row['alert']!r} {row['state']}\n{row['service']}",
        (
            cells.moment(row["at_ms"]),
            cells.name(row["alert"]),
            cells.state(row["state"]),
            cells.figure(row["measured_ms"]),
            cells.figure(row["slo_ms"]),
            cells.name(row["tail_driver"] or cells.NOT_MEASURED),
            Text(clean(row["reason"], 120)),
        ),
    )

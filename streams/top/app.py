"""The application: one question a second, and a line that says how old what is shown is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import ClassVar, Final

from rich.text import Text
from textual.app import App
from textual.binding import BindingType

from tailbudget.schemas.errors import TailbudgetError, UnavailableError
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.report.clean import clean
from tailbudget.streams.top import cells
from tailbudget.streams.top.asking import Asking
from tailbudget.streams.top.questions import WINDOWS_S
from tailbudget.streams.top.screens import LiveScreen, Overview

REFRESH_S: Final = 1.0


class Top(App[None]):
    """Shows what ClickHouse has, until `q`.

    Args:
        asking: where answers come from.
        clock: returns the time, seconds since 1970.
    """

    CSS: ClassVar[str] = """
    #state { height: auto; max-height: 6; padding: 0 1; background: $panel; }
    #headline { height: auto; max-height: 4; padding: 0 1; }
    LiveScreen { overflow: hidden; }
    TabbedContent, ContentSwitcher { height: 1fr; }
    TabPane { padding: 0; height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("w", "window", "Window"),
        ("r", "read", "Read now"),
        ("q", "quit", "Quit"),
    ]
    ENABLE_COMMAND_PALETTE = False
    TITLE = "tailbudget top"

    def __init__(self, asking: Asking, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._asking = asking
        self._clock = clock
        self._windows = list(WINDOWS_S)
        self._reading = False
        self._read_s: dict[object, float] = {}

    def on_mount(self) -> None:
        """Show the services, and begin to read."""
        self.push_screen(Overview())
        self.set_interval(REFRESH_S, self.action_read)

    def action_window(self) -> None:
        """Look at the next longer window, or at the shortest again."""
        self._windows.append(self._windows.pop(0))
        self.action_read()

    def action_read(self) -> None:
        """Read what the screen shows, unless that is being done."""
        if not self._reading and isinstance(self.screen, LiveScreen) and self.screen.is_mounted:
            self._reading = True
            self.run_worker(self._read(self.screen, self._windows[0]))

    async def _read(self, screen: LiveScreen[object], window_s: int) -> None:
        try:
            found = await asyncio.to_thread(screen.read, self._asking, window_s)
        except TailbudgetError as error:
            self._tell(screen, self._ill(screen, error))
        else:
            if screen.is_running:
                self._read_s[screen] = self._clock()
                screen.show(found, self._clock())
                self._tell(screen, self._well(window_s))
        finally:
            self._reading = False
        if screen is not self.screen or window_s != self._windows[0]:
            self.action_read()

    def _tell(self, screen: LiveScreen[object], state: Text) -> None:
        if screen.is_running:
            screen.tell(state)

    def _well(self, window_s: int) -> Text:
        at = time.strftime("%H:%M:%S UTC", time.gmtime(self._clock()))
        line = Text(f"{WINDOWS_S[window_s]}", "bold")
        return line.append(f"  {at}  {clean(self._asking.place, 200)}", "not bold")

    def _ill(self, screen: LiveScreen[object], error: TailbudgetError) -> Text:
        what = "not reachable" if isinstance(error, UnavailableError) else "refused"
        line = Text(f"{what}: {clean(error.message, 200)}", "bold red")
        since = self._read_s.get(screen)
        if since is not None:
            line.append(f"; below is what was {cells.age(self._clock() - since)} ago", "red")
        return line.append(f"\n{clean(error.remedy, 200)}", "default")


def run(settings: Settings) -> None:
    """Show services, stages, cohorts and alerts until the person quits.

    Raises:
        ClickHouseError: ClickHouse, or the worker that owns it, does not answer at the start.
        ConfigError: it refuses us, or there is none.
    """
    asking = Asking(settings)
    asking.rows("SELECT 1")
    try:
        Top(asking).run()
    finally:
        asking.close()

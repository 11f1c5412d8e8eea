"""A page that was opened in a browser, with all it complained about and asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, expect

AXE = Path(__file__).parents[1] / "browser" / "vendor" / "axe-4.14.1.min.js"
SERIOUS = ("serious", "critical")


class Opened:
    """A page in a context of its own.

    Attributes:
        page: Playwright's.
        complaints: what the console said, and errors that nobody caught.
        hosts: whom it asked.
    """

    def __init__(
        self, browser: Browser, *, width: int = 1280, dark: bool = False, zone: str = "UTC"
    ) -> None:
        self._context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            timezone_id=zone,
            accept_downloads=True,
        )
        self.page: Page = self._context.new_page()
        self.complaints: list[str] = []
        self.hosts: set[str | None] = set()
        self.page.on("console", lambda said: self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", self._asked)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            assert self.complaints == [], self.complaints
            assert self.hosts <= {"127.0.0.1"}
        self._context.close()

    def overflow(self) -> int:
        """Return how many pixels the page is wider than its window."""
        width: int = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        return width

    def settled(self) -> None:
        """Wait until no panel loads any more."""
        expect(self.page.locator(".panel[aria-busy=true]")).to_have_count(0, timeout=60_000)

    def faults(self) -> list[dict[str, Any]]:
        """Return the serious faults of accessibility that axe-core finds.

        It runs in the page's own world by the debugger, which no policy of the page forbids.
        """
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            {"id": one["id"], "nodes": [node["html"][:200] for node in one["nodes"]]}
            for one in found["violations"]
            if one["impact"] in SERIOUS
        ]

    def _asked(self, request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in {"http", "https", "ws", "wss", "ftp"}:
            self.hosts.add(parts.hostname)

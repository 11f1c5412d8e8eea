"""Take the pictures of the documentation from the real stack.

Run with PYTHONPATH=.types:tests/support. It runs `tailbudget up`, waits for the simulated fault,
and writes PNG files to docs/images; with `--all DIR` it takes every page at 1440, 1024 and 390
pixels, light and dark, to look at.
"""

from __future__ import annotations

import argparse
import io
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from opened import Opened
from PIL import Image
from playwright.sync_api import Browser, expect, sync_playwright
from up_process import Up

IMAGES = Path(__file__).parents[2] / "docs" / "images"
PATHS = {
    "overview": "/",
    "service": "/services/chat?last=5m",
    "cohort": "/services/chat?last=5m&where=route%3Dsearch",
    "unknown": "/services/nobody",
    "alerts": "/alerts",
    "sql": "/sql",
}
COLOURS = 256
"""Enough for pages of few colours, and a third of the bytes."""


@dataclass(frozen=True)
class Shot:
    """One picture.

    Attributes:
        page: which of `PATHS`.
        width: of the window.
        height: of the picture; 0 is the whole page.
        dark: in the dark theme.
    """

    page: str
    width: int
    height: int = 0
    dark: bool = False

    @property
    def name(self) -> str:
        """Name of its file."""
        return f"{self.page}-{self.width}{'-dark' if self.dark else ''}.png"


# What fires is over after a minute: it is taken first.
DOCUMENTED = {
    "service.png": Shot("service", 1440, 1560),
    "alerts.png": Shot("alerts", 1440, 560),
    "service-dark.png": Shot("service", 1440, 1000, dark=True),
    "service-phone.png": Shot("service", 390, 1100),
    "overview.png": Shot("overview", 1440, 280),
    "sql.png": Shot("sql", 1440, 1000),
}
EVERY = {
    shot.name: shot
    for page in PATHS
    for width in (1440, 1024, 390)
    for dark in (False, True)
    for shot in [Shot(page, width, dark=dark)]
}


def take(browser: Browser, url: str, shot: Shot) -> bytes:
    """Return a picture as PNG."""
    with Opened(browser, width=shot.width, dark=shot.dark) as opened:
        page = opened.page
        page.set_viewport_size({"width": shot.width, "height": shot.height or 900})
        page.goto(f"{url}{PATHS[shot.page]}")
        expect(page.locator("#live")).to_have_text("live", timeout=60_000)
        if shot.page == "sql":
            page.locator("#ready button").first.click()
            expect(page.locator("#said")).to_contain_text("rows in", timeout=60_000)
        if shot.page == "overview":
            expect(page.locator("#services canvas")).to_have_count(1, timeout=60_000)
        opened.settled()
        picture = page.screenshot(full_page=not shot.height)
    image = Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS)
    small = io.BytesIO()
    image.save(small, "PNG", optimize=True)
    return small.getvalue()


def wait_for_the_fault(browser: Browser, url: str) -> None:
    """Return once the page tells of the breach and its cause."""
    with Opened(browser) as opened:
        opened.page.goto(url)
        opened.page.get_by_role("link", name="chat", exact=True).click(timeout=60_000)
        expect(opened.page.locator("#verdict")).to_have_text("breach", timeout=240_000)
        expect(opened.page.locator("#diagnosis")).to_contain_text(
            "external dependency", timeout=60_000
        )


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", type=Path, metavar="DIR", help="every page, to look at")
    everywhere: Path | None = parser.parse_args().all
    folder, shots = (everywhere, EVERY) if everywhere else (IMAGES, DOCUMENTED)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        with Up(Path(data, "data")) as up:
            wait_for_the_fault(chromium, up.url)
            for name, shot in shots.items():
                (folder / name).write_bytes(take(chromium, up.url, shot))
        chromium.close()


if __name__ == "__main__":
    main()

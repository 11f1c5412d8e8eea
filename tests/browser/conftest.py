"""A Chromium without a window; a machine without one fails these tests rather than skip them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium; within containers it has no sandbox of its own."""
    path = shutil.which("chromium")
    assert path is not None, "install chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()

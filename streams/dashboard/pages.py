"""Pages from templates: every value escaped, and nothing foreign loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined

STATIC: Final = Path(__file__).parent / "static"

HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
            "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        ),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
)
"""Headers of every answer. A chart is saved as a picture from `blob:` and `data:`."""


def environment() -> Environment:
    """Return the templates."""
    made = Environment(
        loader=PackageLoader("tailbudget.streams.dashboard", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["path"] = lambda text: quote(text, safe="")
    return made


def html(text: str, *, status: int = 200) -> web.Response:
    """Return a page."""
    return web.Response(
        text=text, status=status, content_type="text/html", headers={"Cache-Control": "no-cache"}
    )


async def guard(_: web.Request, response: web.StreamResponse) -> None:
    """Add the headers of every answer."""
    response.headers.update(HEADERS)


def wants_html(request: web.Request) -> bool:
    """Return whether a browser asks, and no program."""
    return "text/html" in request.headers.get("Accept", "")

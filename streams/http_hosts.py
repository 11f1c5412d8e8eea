"""Under which names we may be asked: no page elsewhere may point its own name at us."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

_LOCAL: Final = frozenset({"localhost"})


def only_hosts_of(listening: str) -> Middleware:
    """Return a middleware that refuses a request for another host than this machine.

    A page of another site can have its own name lead to a loopback address (DNS rebinding); its
    requests still bear that name. Where we listen for other machines, names are theirs to choose.

    Args:
        listening: the address that we listen on.
    """

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if _is_local(listening) and not _is_local(_name(request.host)):
            return web.Response(status=403, text="this server is asked as localhost only\n")
        return await handler(request)

    return check


def _name(host: str) -> str:
    """Return a host without its port; empty where it is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_local(name: str) -> bool:
    if name in _LOCAL:
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False

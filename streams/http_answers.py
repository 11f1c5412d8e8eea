"""Answers of the HTTP port in JSON, and what it says in place of one."""

from __future__ import annotations

from typing import Any, Final

import orjson
from aiohttp import web

from tailbudget.schemas.errors import ConfigError, TailbudgetError

_KEEP_PRESSING: Final = 1_024
"""Bytes from which on an answer is worth compressing."""


def json(value: Any, *, status: int = 200) -> web.Response:
    """Return JSON, compressed when it is long."""
    body = orjson.dumps(value, default=str, option=orjson.OPT_SERIALIZE_NUMPY)
    response = web.Response(
        body=body,
        status=status,
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )
    if len(body) >= _KEEP_PRESSING:
        response.enable_compression()
    return response


def refusal(error: TailbudgetError, *, mistake: int = 400, trouble: int = 503) -> web.Response:
    """Return what is the matter, with its remedy.

    Args:
        error: what was raised.
        mistake: status where the asker can mend it.
        trouble: status of all else.
    """
    status = mistake if isinstance(error, ConfigError) else trouble
    return json({"error": error.message, "remedy": error.remedy}, status=status)

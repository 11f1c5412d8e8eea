"""Request logs of SGLang (`--log-requests`): a line a finished request, with what it measured.

The line prints what was asked and answered; only the numbers of its `meta_info` are read. Latency
and queue time are seconds, and the line is stamped with the end.
"""

from __future__ import annotations

import re
from typing import Any, Final

from tailbudget.streams.sources.access_log import AccessLog, before, milliseconds, number
from tailbudget.streams.sources.translated import NotOfFormatError

_STAMP: Final = re.compile(r"\[?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?)")
_NAMES: Final = "e2e_latency queue_time prompt_tokens completion_tokens cached_tokens"
_NUMBER: Final = re.compile(
    rf"""['"]({_NAMES.replace(" ", "|")})['"]:\s?(-?\d{{1,15}}(?:\.\d+)?(?:e-?\d+)?)"""
)
_ID: Final = re.compile(r"""meta_info['"]:\s?\{['"]id['"]:\s?['"]([\w-]{1,80})['"]""")
_ABORTED: Final = re.compile(r"""['"]type['"]:\s?['"]abort['"]""")


class SglangLogDecoder(AccessLog):
    """Decodes request logs of SGLang; see the package docstring for what it promises."""

    name = "sglang_log"
    private = True

    def parse(self, line: str) -> dict[str, Any]:
        """Return the native record of a line."""
        values = {name: float(value) for name, value in _NUMBER.findall(line)}
        if "e2e_latency" not in values:
            raise NotOfFormatError("no line of a finished request: it has no e2e_latency")
        total_ms = milliseconds(values["e2e_latency"])
        stamp, told_id = _STAMP.match(line), _ID.search(line)
        return {
            "request_id": told_id[1] if told_id else None,
            "timestamp": before(stamp[1] if stamp else None, total_ms),
            "total_ms": total_ms,
            "status": "cancelled" if _ABORTED.search(line) else "ok",
            "queue_ms": milliseconds(values.get("queue_time")),
            "input_tokens": number(values.get("prompt_tokens")),
            "output_tokens": number(values.get("completion_tokens")),
            "cached_tokens": number(values.get("cached_tokens")),
        }

"""Times as reports show them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(time_ns: int) -> str:
    """Return an epoch in nanoseconds as RFC 3339 in UTC, cut to milliseconds."""
    at = _EPOCH + timedelta(microseconds=time_ns // 1000)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

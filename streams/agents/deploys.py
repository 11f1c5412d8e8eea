"""Deploy and scale-up events, kept in ClickHouse, where audits read them.

Every announcement is stored as it came, keyed by its content, so that redelivery changes nothing
and late events need no special path. Announcements of one deploy are joined when they are read.
"""

from __future__ import annotations

from typing import Final

import orjson

from tailbudget.schemas.rows import DeployRow
from tailbudget.streams.agents.events import Kind
from tailbudget.streams.sources.timetext import UNREADABLE, epoch_ns


def deploy_event(row: DeployRow) -> bytes:
    """Return the message that announces a deploy; `deploy_row` reads it."""
    return orjson.dumps(
        {
            "service": row.service,
            "env": row.env,
            "version": row.version,
            "kind": row.kind,
            "ts": row.at_ns,
        }
    )


def deploy_row(value: bytes | None) -> DeployRow:
    """Return the event in a message.

    Raises:
        ValueError: it is no JSON object, or lacks service, version or a time.
    """
    event = orjson.loads(value or b"")
    if not isinstance(event, dict):
        raise ValueError("no JSON object")  # noqa: TRY004  (the caller handles bad values alike)
    missing = [name for name in ("service", "version") if not isinstance(event.get(name), str)]
    at_ns = epoch_ns(str(event.get("ts", event.get("timestamp", ""))))
    if missing or at_ns == UNREADABLE:
        raise ValueError(f"lacks {', '.join(missing) or 'a time (ts)'}")
    return DeployRow(
        service=event["service"],
        env=str(event.get("env", "")),
        version=event["version"],
        at_ns=at_ns,
        last_ns=at_ns,
        kind=str(event.get("kind", "deploy")),
    )


DEPLOYS: Final = Kind(
    "not a deploy event",
    deploy_row,
    '{"service", "version", "ts"} and, if you like, "env" and "kind"',
)

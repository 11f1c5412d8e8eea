"""Which spans of time lie after a deploy or scale-up?

One deploy is announced many times: by the pipeline, by each replica, again after a retry. All
announcements of one version that follow each other within the window are one deploy, and its
window runs from the first of them to `window_min` after the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tailbudget.schemas.rows import DeployRow
from tailbudget.schemas.sections import ColdWindow

PRODUCTION: Final = ("", "prod", "production", "prd", "live")
"""Environments that serve the audited requests when nobody says which one does; "" is unnamed."""

_NS_PER_MIN: Final = 60_000_000_000


def cold_windows(
    deploys: Sequence[DeployRow], service: str, window_min: float, env: str | None
) -> tuple[ColdWindow, ...]:
    """Return one window for each deploy and scale-up of a service, in order of time.

    Args:
        deploys: events of any service and environment, in any order, repeated or not.
        service: whose requests are audited; others' events are ignored.
        window_min: `cold_start_window_min`.
        env: where they were served; None takes `PRODUCTION`, or all of the service's events when
            none of them is of those.
    """
    window_ns = round(window_min * _NS_PER_MIN)
    found: list[ColdWindow] = []
    open_at: dict[tuple[str, str, str], int] = {}
    for event in sorted(_own(deploys, service, env), key=_in_order):
        key = (event.env, event.version, event.kind)
        end_ns = max(event.at_ns, event.last_ns) + window_ns
        at = open_at.get(key)
        if at is not None and event.at_ns <= found[at].end_ns:
            last = found[at]
            found[at] = ColdWindow(
                last.start_ns, max(last.end_ns, end_ns), event.version, event.kind
            )
        else:
            open_at[key] = len(found)
            found.append(ColdWindow(event.at_ns, end_ns, event.version, event.kind))
    return tuple(found)


def _in_order(row: DeployRow) -> tuple[int, int, str, str, str]:
    return row.at_ns, row.last_ns, row.env, row.version, row.kind


def _own(deploys: Iterable[DeployRow], service: str, env: str | None) -> list[DeployRow]:
    own = [row for row in deploys if row.service == service]
    if env is not None:
        return [row for row in own if row.env == env]
    production = [row for row in own if row.env.lower() in PRODUCTION]
    return production or own

"""The newest rolling audit of each window of the services that this worker owns."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from tailbudget.schemas.audit_rows import AuditRow


@dataclass(frozen=True, slots=True)
class _Noted:
    at_s: float
    verdict: dict[str, Any]


class NewestVerdicts:
    """Keeps what the newest rolling audits said, without their payloads.

    Times are seconds of a growing clock.
    """

    def __init__(self) -> None:
        self._noted: dict[tuple[str, int], _Noted] = {}

    def note(self, row: AuditRow, now_s: float) -> None:
        """Take an audit that was just made; those of a window come in order."""
        said = {
            "service": row.service,
            "window_s": row.window_s,
            "end_ns": row.end_ns,
            "verdict": row.verdict,
            "requests": row.requests,
            "failed": row.failed,
            "p50_ms": row.p50_ms,
            "p95_ms": row.p95_ms,
            "p99_ms": row.p99_ms,
            "slo_p50_ms": row.slo_p50_ms,
            "slo_p95_ms": row.slo_p95_ms,
            "slo_p99_ms": row.slo_p99_ms,
            "tail_driver": row.tail_driver,
        }
        self._noted[row.service, row.window_s] = _Noted(now_s, said)

    def clear(self) -> None:
        """Forget all."""
        self._noted.clear()

    def current(self, owned: Container[str], now_s: float) -> list[dict[str, Any]]:
        """Return what still holds, by service and window.

        A service that was silent for as long as a window lasts has nothing in that window.
        """
        return [
            noted.verdict
            for (service, window_s), noted in sorted(self._noted.items())
            if service in owned and now_s - noted.at_s <= window_s
        ]

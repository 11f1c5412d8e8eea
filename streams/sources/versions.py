"""Deploys that nobody announced: a service's spans begin to carry another version."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tailbudget.schemas.rows import DeployRow
from tailbudget.streams.sources.span import Span

_MOST: Final = 1_000
"""Versions that are remembered; a build a minute is not forgotten within a working day."""


class Versions:
    """The versions of the services of one source. The first one that is seen is no deploy."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], dict[str, None]] = {}
        self._new: list[DeployRow] = []

    def see(self, spans: Iterable[Span], default: str | None) -> None:
        """Look at the spans of a trace.

        Args:
            spans: in any order.
            default: service of those that name none.
        """
        for span in sorted(spans, key=lambda one: (one.start_ns, one.id)):
            service, version = span.service or default, span.facts.get("version")
            if service is None or not isinstance(version, str):
                continue
            env = str(span.facts.get("environment", ""))
            seen = self._seen.setdefault((service, env), {})
            if seen and version not in seen:
                at_ns = span.start_ns
                self._new.append(DeployRow(service, env, version, at_ns, at_ns, "deploy"))
            seen[version] = None
            if len(seen) > _MOST:
                del seen[next(iter(seen))]

    def taken(self) -> tuple[DeployRow, ...]:
        """Return the deploys that were seen since the last call."""
        new, self._new = self._new, []
        return tuple(new)

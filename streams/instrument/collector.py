"""A sink for tests of services: it keeps the records as they would travel."""

from __future__ import annotations

from typing import Any

import orjson

from tailbudget.streams.instrument.row import encode
from tailbudget.streams.instrument.sink import Finished


class Collector:
    """Keeps every record in memory.

    Attributes:
        lines: records as text, in the order in which the requests ended.
    """

    def __init__(self, service: str | None = None) -> None:
        self._service = service
        self.lines: list[bytes] = []

    def send(self, record: Finished) -> None:
        """Keep a record; one whose id has no JSON form is left out."""
        line = encode(record, self._service).line
        if line is not None:
            self.lines.append(line)

    def records(self) -> list[dict[str, Any]]:
        """Return the records, decoded again."""
        return [orjson.loads(line) for line in self.lines]

"""Which requests of a service a page looks at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

CHOSEN: Final = """p.service = {service:String} AND p.stage = 'total'
    AND p.pane >= {since:UInt32} AND p.pane < {until:UInt32}
    AND arrayAll(
        (dimension, value) -> if(
            mapContains(p.dims, dimension), p.dims[dimension],
            if(mapContains(p.dims, '(other)'), '(other)', '(none)')) = value,
        {dimensions:Array(String)}, {values:Array(String)})"""
"""Condition on `current_panes AS p`: the totals of the panes and cohorts that are looked at."""


@dataclass(frozen=True, slots=True)
class Look:
    """What is looked at.

    Attributes:
        service: the service's name.
        since_s: start of the range, seconds of event time.
        until_s: its end, exclusive.
        step_s: length of a point of a series.
        cohort: value of each dimension that is filtered by; empty looks at all requests.
    """

    service: str
    since_s: int
    until_s: int
    step_s: int
    cohort: Mapping[str, str] = field(default_factory=dict)

    def parameters(self) -> dict[str, Any]:
        """Return the values of the parameters that queries name."""
        return {
            "service": self.service,
            "since": self.since_s,
            "until": self.until_s,
            "step": self.step_s,
            "dimensions": list(self.cohort),
            "values": list(self.cohort.values()),
        }

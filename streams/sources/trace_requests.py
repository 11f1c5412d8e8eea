"""From the spans of a trace to its requests, as native records."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tailbudget.schemas import ledger
from tailbudget.schemas.records import TOKEN_TIMES
from tailbudget.streams.sources import fields
from tailbudget.streams.sources.span import SHARED, Span
from tailbudget.streams.sources.trace_stages import Stages, stages

_NS_PER_MS: Final = 1e6
_SUMMED: Final = ("input_tokens", "output_tokens")
_INHERITED: Final = ("model_variant", "customer_tier")


@dataclass(frozen=True, slots=True)
class Requests:
    """What a trace turned out to be.

    Attributes:
        records: native records, one a request.
        counts: what else to count of it, by reason.
    """

    records: tuple[dict[str, Any], ...]
    counts: Mapping[str, int]


def requests(spans: Collection[Span]) -> Requests:
    """Return the requests of a trace: those of its spans that nothing is above.

    Where no span is without a parent, requests are those that enter a service and whose parent is
    not there. A span whose parent is not there is else below the one root that there is.
    """
    known = {span.id: span for span in spans}
    above = {span.id: _above(span, known) for span in spans}
    roots = [span for span in spans if above[span.id] == ""]
    if not roots:
        roots = [span for span in spans if span.kind.enters and above[span.id] not in known]
    ended = [span for span in roots if span.end_ns is not None]
    if not ended:
        return Requests((), {ledger.INCOMPLETE: 1})
    entries = {span.id for span in roots}
    lone = roots[0].id if len(roots) == 1 else None
    children: defaultdict[str, list[Span]] = defaultdict(list)
    counts = Counter({ledger.INCOMPLETE: len(roots) - len(ended)})
    for span in spans:
        parent = above[span.id]
        if span.id in entries:
            continue
        if parent not in known and lone is not None:
            parent = lone
            counts[ledger.ORPHAN] += 1
        children[parent].append(span)
    reached: set[str] = set(entries)
    records = []
    for root in ended:
        found = stages(root, children)
        reached |= found.reached
        counts[ledger.ASYNCHRONOUS] += found.asynchronous
        name = root.trace if lone is not None else f"{root.trace}:{root.id}"
        records.append(_record(name, root, found, known))
    counts[ledger.ORPHAN] += len(known) - len(reached)
    return Requests(tuple(records), {reason: n for reason, n in counts.items() if n})


def _above(span: Span, known: Mapping[str, Span]) -> str:
    """Return the id of the span that one is below, whether it came or not; "" where there is none.

    What a call causes is below its server's half, and that half below its client's, if it came.
    """
    shared = span.parent + SHARED
    if shared in known and shared != span.id:
        return shared
    if span.parent not in known and span.id.endswith(SHARED):
        return span.beyond
    return span.parent


def _record(name: str, root: Span, found: Stages, known: Mapping[str, Span]) -> dict[str, Any]:
    below = [known[one] for one in found.reached if one != root.id]
    below.sort(key=lambda span: (span.start_ns, span.id))
    return {
        "request_id": name,
        "timestamp": root.start_ns,
        "service": root.service,
        "total_ms": ((root.end_ns or 0) - root.start_ns) / _NS_PER_MS,
        **_shape(root, below, known),
        **{f"{_stage(stage)}_ms": ms for stage, ms in found.ms.items()},
    }


def _shape(root: Span, below: Sequence[Span], known: Mapping[str, Span]) -> dict[str, Any]:
    """Return what the request's own span tells, and what only those below it do."""
    facts = {"route": root.name, "status": "ok", **root.facts}
    for name in _SUMMED:
        if name not in facts:
            outer = [s for s in below if name in s.facts and not _is_counted_above(s, name, known)]
            if outer:
                facts[name] = sum(span.facts[name] for span in outer)
    for name in _INHERITED:
        values = {span.facts[name] for span in below if name in span.facts}
        if name not in facts and len(values) == 1:
            facts[name] = values.pop()
    return facts


def _is_counted_above(span: Span, name: str, known: Mapping[str, Span]) -> bool:
    """Return whether a span above tells the same: a gateway's tokens are those of its engine."""
    met = {span.id}
    while (above := _above(span, known)) in known and above not in met:
        span = known[above]
        met.add(above)
        if name in span.facts:
            return True
    return False


def _stage(name: str) -> str:
    """Return a name under which the time of a span is a stage, and nothing that is ours."""
    own = fields.stage_of(f"{name}_ms") == name and name not in TOKEN_TIMES
    return name if own else f"{name} span"

"""Before a launch: the SLO that a measured profile supports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tailbudget.schemas.proposals import SloProposal
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.document import (
    Block,
    Bullets,
    Mark,
    Name,
    Paragraph,
    Section,
    Table,
    columns,
    paragraph,
    say,
)
from tailbudget.sinks.report.figures import insufficient, ms, pct

_TARGETS: Final = "Percentile | Proposed > | Measured > | Upper end of its interval > | Margin >"
_BUDGETS: Final = "Stage | P99 budget > | Share >"


def slo_proposal(audit: Audit) -> Section | None:
    """Return the proposal; None when nobody asked for it."""
    if audit.proposal is None:
        return None
    return Section("slo_proposal", "Proposed SLO", tuple(_blocks(audit.proposal)))


def _blocks(said: SloProposal) -> Iterator[Block]:
    targets = said.slo.items()
    text = ",".join(f"{name}={value:g}" for name, value in targets)
    if targets:
        yield Paragraph(say("Promise ", Mark(text), ": as tight as the profile supports."))
    else:
        yield paragraph("No target is supported by what was measured.")
    proposed = dict(targets)
    rows = tuple(
        say(
            one.percentile.upper(),
            ms(proposed.get(one.percentile), insufficient(one.n)),
            ms(one.measured_ms),
            ms(one.supported_ms, insufficient(one.n)),
            pct(one.margin_pct),
        )
        for one in said.supported
    )
    if rows:
        yield Table("Proposed targets", columns(_TARGETS), rows)
    if said.budgets:
        budgets = tuple(
            say(Name(part.stage), ms(part.p99_ms), pct(part.share_pct)) for part in said.budgets
        )
        yield Table("How the P99 target divides over the stages", columns(_BUDGETS), budgets)
    yield paragraph(
        "The stages' medians add up to ", ms(said.floor_ms), ": no target can be below."
    )
    yield paragraph("Failed: ", pct(said.failed_pct), " of the requests.")
    if said.notes:
        yield Bullets(tuple(say(note) for note in said.notes), "Before promising it:")

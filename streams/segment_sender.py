"""Sends what the segments of a tick hold."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from faust.types import TP

from tailbudget.models.select import encode_parts
from tailbudget.schemas.settings import Settings
from tailbudget.streams import protocol
from tailbudget.streams.agents.deploys import deploy_event
from tailbudget.streams.dead_letters import dead_letters
from tailbudget.streams.intake import Intake, Pending
from tailbudget.streams.outbox import Outbox
from tailbudget.streams.segment_summaries import SegmentSummaries

Cut = Mapping[TP, tuple[Intake, Pending]]
"""The segments of one tick."""

MAX_BODY: Final = 700_000
"""Bytes of a summary in one message: Kafka's default limit is a million."""


class SegmentSender:
    """Publishes summaries on the panes topic, and what else the messages showed."""

    def __init__(self, settings: Settings, outbox: Outbox) -> None:
        self._outbox = outbox
        self._summaries = SegmentSummaries(settings)

    async def send(self, cut: Cut) -> None:
        """Send the summaries, deploys and dead letters of the segments of one tick."""
        for topic in sorted({tp.topic for tp in cut}):
            taken = [segment for tp, segment in cut.items() if tp.topic == topic]
            for service in sorted({name for _, pending in taken for name in pending.services}):
                await self._send_service(service, [t for t in taken if service in t[1].services])
        for tp, (source, pending) in cut.items():
            for deploy in pending.deploys:
                await self._outbox.deploy(deploy.service, deploy_event(deploy))
            for key, value in dead_letters(tp, source.key, pending.rejected):
                await self._outbox.dead_letter(key, value)

    async def _send_service(self, service: str, taken: list[tuple[Intake, Pending]]) -> None:
        """Send the summary of all of a topic's segments as one: a cohort then costs once."""
        spans = tuple(
            protocol.Span(source.key, pending.start, pending.end, source.watermark_ns)
            for source, pending in taken
        )
        # In a thread: what was sent before goes its way to a verdict meanwhile.
        bodies = await asyncio.to_thread(self._bodies, service, [pending for _, pending in taken])
        for part, body in enumerate(bodies):
            message = protocol.Segment(
                spans=spans,
                generation=taken[0][0].generation,
                part=part,
                parts=len(bodies),
                service=service,
                body=body,
            )
            await self._outbox.segment(service, protocol.encode(message))

    def _bodies(self, service: str, pending: list[Pending]) -> list[bytes]:
        return encode_parts(self._summaries.of(pending, service), MAX_BODY)

"""A plain Faust agent: a Record model, `async for`, and a dict of counts."""

from __future__ import annotations

import sys
import tempfile
import uuid
from collections import Counter
from typing import Any

import faust
from meter import Meter, arguments


class Request(faust.Record, serializer="json"):
    """A record, as a model of Faust."""

    request_id: str
    service: str
    timestamp: str
    status: str
    total_ms: float
    route: str
    model_variant: str
    region: str
    customer_tier: str
    timeout_ms: float | None = None
    tokenize_ms: float | None = None
    queue_ms: float | None = None
    retrieve_ms: float | None = None
    prefill_ms: float | None = None
    decode_ms: float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    batch_size: float | None = None
    candidates: float | None = None


def main() -> None:
    """Run a worker until there are enough records."""
    options = arguments(__doc__ or "")
    meter = Meter(options.records)
    counts: Counter[tuple[str, str, str, str]] = Counter()
    app = faust.App(
        f"r-{uuid.uuid4()}",
        broker=f"kafka://{options.bootstrap}",
        consumer_auto_offset_reset="earliest",
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_enabled=False,
        datadir=tempfile.mkdtemp(),
    )
    topic = app.topic(options.topic, value_type=Request)

    @app.agent(topic)
    async def count(stream: Any) -> None:
        async for one in stream:
            meter.begin()
            counts[one.route, one.model_variant, one.region, one.customer_tier] += 1
            meter.take()

    sys.argv = [sys.argv[0], "worker", "-l", "warn", "--without-web"]
    app.main()


if __name__ == "__main__":
    main()

"""bytewax with the `ddsketch` package: the same panes, columns and cohorts, in memory."""

from __future__ import annotations

from typing import Any

import bytewax.operators as op
import orjson
from bytewax.connectors.kafka import KafkaSource
from bytewax.connectors.stdio import StdOutSink
from bytewax.dataflow import Dataflow
from bytewax.testing import run_main
from meter import Meter, arguments
from sketches import add


def main() -> None:
    """Run the dataflow until there are enough records."""
    options = arguments(__doc__ or "")
    meter = Meter(options.records)

    def sketch(messages: list[Any]) -> list[Any]:
        meter.begin()
        for message in messages:
            add(orjson.loads(message.value))
        meter.take(len(messages))
        return []

    flow = Dataflow("bench")
    source = KafkaSource([options.bootstrap], [options.topic], tail=True, batch_size=1000)
    messages = op.input("requests", flow, source)
    op.output("nowhere", op.flat_map_batch("sketch", messages, sketch), StdOutSink())
    run_main(flow)


if __name__ == "__main__":
    main()

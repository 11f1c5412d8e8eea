"""confluent-kafka and orjson alone: consume the topic and parse each record."""

from __future__ import annotations

import uuid

import orjson
from confluent_kafka import Consumer, TopicPartition
from meter import Meter, arguments


def main() -> None:
    """Consume until there are enough records."""
    options = arguments(__doc__ or "")
    consumer = Consumer({"bootstrap.servers": options.bootstrap, "group.id": f"r-{uuid.uuid4()}"})
    consumer.assign([TopicPartition(options.topic, n, 0) for n in range(options.partitions)])
    meter = Meter(options.records)
    while True:
        messages = consumer.consume(5000, 0.1)
        if messages:
            meter.begin()
        for message in messages:
            orjson.loads(message.value())
        meter.take(len(messages))


if __name__ == "__main__":
    main()

"""quixstreams with the `ddsketch` package: the same panes, columns and cohorts, in memory."""

from __future__ import annotations

import tempfile
import uuid
from typing import Any

from meter import Meter, arguments
from quixstreams import Application
from sketches import add


def main() -> None:
    """Run the application until there are enough records."""
    options = arguments(__doc__ or "")
    meter = Meter(options.records)
    app = Application(
        broker_address=options.bootstrap,
        consumer_group=f"r-{uuid.uuid4()}",
        auto_offset_reset="earliest",
        state_dir=tempfile.mkdtemp(),
        loglevel="WARNING",
    )
    records = app.dataframe(app.topic(options.topic, value_deserializer="json"))

    def sketch(record: dict[str, Any]) -> None:
        meter.begin()
        add(record)
        meter.take()

    records.update(sketch)
    app.run()


if __name__ == "__main__":
    main()

"""Polars alone: decode the same bytes, with a schema, in joined batches, in one thread.

The batches are joined beforehand and nothing is done with the frames: no broker, no validation,
no times, no cohorts, no sketches.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import orjson
import polars as pl
from meter import Meter


def main() -> None:
    """Decode the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--batch", type=int, default=5000)
    options = parser.parse_args()
    lines = options.file.read_bytes().splitlines()
    step = options.batch
    batches = [b"\n".join(lines[i : i + step]) for i in range(0, len(lines), step)]
    records = len(lines)
    schema = schema_of(lines[0])
    del lines
    meter = Meter(records)
    meter.begin()
    for batch in batches:
        meter.take(pl.read_ndjson(io.BytesIO(batch), schema=schema).height)


def schema_of(line: bytes) -> dict[str, pl.DataType]:
    """Return texts for the names and times of the first record, floats for the rest."""
    record = orjson.loads(line)
    return {k: pl.String() if isinstance(v, str) else pl.Float64() for k, v in record.items()}


if __name__ == "__main__":
    main()

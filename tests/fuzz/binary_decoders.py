r"""Fuzz the decoders of binary formats with atheris, which follows the branches that inputs take.

    pip install atheris
    PYTHONPATH=.types:tests/support \
        python tests/fuzz/binary_decoders.py [FORMAT] [-max_total_time=60]

Opt-in, for atheris has wheels for few systems: no build runs it. FORMAT is `otlp_proto` (the
default), `zipkin` or `jaeger`; all else is libFuzzer's. It ends with the input for which a decoder
raised, or with nothing.
"""

from __future__ import annotations

import sys
from typing import Final

import atheris

with atheris.instrument_imports(include=["tailbudget.streams.sources"]):
    from tailbudget.streams.sources import Rules, SourceMessage, decoder

from real_samples import SAMPLES
from span_encodings import jaeger_proto, thrift_list, zipkin_proto

NOW_NS: Final = 1_800_000_000 * 10**9
SPAN: Final = {
    "traceId": "a1b2c3d4e5f60718", "id": "00f067aa0ba902b7", "timestamp": 1_772_445_600_000_000,
    "duration": 5, "name": "get", "tags": {"http.status_code": "200"},
}  # fmt: skip
JAEGER: Final = {
    "traceID": "a1", "spanID": "b2", "operationName": "op", "references": [],
    "startTime": 1_772_445_600_000_000, "duration": 5, "tags": [],
}  # fmt: skip
SEEDS: Final = {
    "otlp_proto": SAMPLES["otlp_proto"],
    "zipkin": [zipkin_proto([SPAN]), thrift_list([SPAN])],
    "jaeger": [jaeger_proto(JAEGER, {"serviceName": "chat"})],
}


def main() -> None:
    """Run the fuzzer until it finds something, or its time is over."""
    given = sys.argv[1:]
    name = given[0] if given and given[0] in SEEDS else "otlp_proto"
    options = [one for one in given if one not in SEEDS]

    def feed(data: bytes) -> None:
        one = decoder(name, Rules(service="x"))
        decoded = one.decode([SourceMessage(data, 0, NOW_NS)])
        rest = one.finish()
        parts = [decoded] if rest is None else [decoded, rest]
        dead = sum(len(part.rejected) for part in parts)
        counted = sum(
            number
            for part in parts
            for (_, _, reason), number in part.ledger.items()
            if reason.startswith("rejected.")
        )
        if dead != counted:
            raise AssertionError(f"{dead} dead letters, {counted} counted")

    for seed in SEEDS[name]:
        feed(seed)
    atheris.Setup([sys.argv[0], *options], feed)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

"""What goes to the dead-letter topic: where it came from, why, and its first bytes.

The key names the source offset (and which of the message's records, counted among the rejected),
and the topic is compacted: a letter that a restarted worker sends again replaces the first.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from tailbudget.schemas.records import Rejected


def dead_letters(
    tp: Any, source: str, rejected: Iterable[Rejected]
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the key and the value of the dead letter for everything rejected of one source.

    The value is JSON: topic, partition, offset, record (its number among the rejected ones of
    that message), reason, detail, and `raw` as text where it is UTF-8, else `raw_base64`.
    """
    seen: Counter[int] = Counter()
    for one in rejected:
        record = seen[one.offset]
        seen[one.offset] += 1
        letter = {
            "topic": tp.topic,
            "partition": tp.partition,
            "offset": one.offset,
            "record": record,
            "reason": one.reason,
            "detail": one.detail,
            **_raw(one.raw),
        }
        yield f"{source}:{one.offset}:{record}".encode(), orjson.dumps(letter)


def _raw(raw: bytes) -> dict[str, str]:
    try:
        return {"raw": raw.decode()}
    except UnicodeDecodeError:
        return {"raw_base64": base64.b64encode(raw).decode()}

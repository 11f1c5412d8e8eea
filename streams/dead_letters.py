"""What goes to the dead-letter topic: where it came from, why, and its first bytes.

The key names the source offset, and the topic is compacted: a message that a restarted worker
sends again replaces the first.
"""

from __future__ import annotations

import base64

import orjson

from tailbudget.schemas.records import Rejected


def dead_letter(topic: str, partition: int, rejected: Rejected) -> tuple[bytes, bytes]:
    """Return the key and the value of the dead letter for something rejected.

    The value is JSON: topic, partition, offset, reason, detail, and `raw` as text where it is
    UTF-8, else `raw_base64`.
    """
    letter = {
        "topic": topic,
        "partition": partition,
        "offset": rejected.offset,
        "reason": rejected.reason,
        "detail": rejected.detail,
    }
    try:
        letter["raw"] = rejected.raw.decode()
    except UnicodeDecodeError:
        letter["raw_base64"] = base64.b64encode(rejected.raw).decode()
    return f"{topic}:{partition}:{rejected.offset}".encode(), orjson.dumps(letter)

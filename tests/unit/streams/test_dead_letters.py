"""Dead letters: a key for each rejected record, and its first bytes for a person."""

from __future__ import annotations

import base64

import orjson
from faust.types import TP

from tailbudget.schemas.records import Rejected
from tailbudget.streams.dead_letters import dead_letters

TOPIC = TP("requests", 3)


def test_each_record_of_a_message_has_its_own_key() -> None:
    """Two rejected records of one message have distinct keys, the same at each reading."""
    rejected = [
        Rejected(7, "rejected.not_json", "first", b"a"),
        Rejected(7, "rejected.not_json", "second", b"b"),
        Rejected(8, "rejected.not_object", "third", b"[]"),
    ]
    letters = list(dead_letters(TOPIC, "requests:3:1", rejected))
    keys = [key for key, _ in letters]
    assert keys == [b"requests:3:1:7:0", b"requests:3:1:7:1", b"requests:3:1:8:0"]
    assert orjson.loads(letters[2][1]) == {
        "topic": "requests",
        "partition": 3,
        "offset": 8,
        "record": 0,
        "reason": "rejected.not_object",
        "detail": "third",
        "raw": "[]",
    }


def test_bytes_that_are_no_text_are_kept() -> None:
    """What is no UTF-8 travels as base64, whole."""
    ((_, value),) = dead_letters(TOPIC, "s", [Rejected(1, "rejected.not_utf8", "", b"\xff\x00")])
    assert base64.b64decode(orjson.loads(value)["raw_base64"]) == b"\xff\x00"

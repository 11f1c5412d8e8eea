"""What travels on the panes topic comes back, and nothing else passes for it."""

from __future__ import annotations

import struct

import pytest

from tailbudget.schemas.errors import WireError
from tailbudget.streams import protocol

SPANS = (protocol.Span("requests:0:1", 10, 25, 123), protocol.Span("requests:1:1", 4, 9, 120))
SEGMENT = protocol.Segment(SPANS, 7, 0, 2, "chat", b"\x00body\n")
MARK = protocol.Mark("requests:0:1", 7, 25, 123)


@pytest.mark.parametrize("message", [SEGMENT, MARK])
def test_a_message_comes_back(message: protocol.Segment | protocol.Mark) -> None:
    """Encoding and decoding changes nothing, whatever bytes the body has."""
    assert protocol.decode(protocol.encode(message)) == message


@pytest.mark.parametrize("cut", [0, 1, 6, 12, 40])
def test_a_cut_message_is_refused(cut: int) -> None:
    """A message that ends inside of its header is refused, with what to do about it."""
    with pytest.raises(WireError) as caught:
        protocol.decode(protocol.encode(SEGMENT)[:cut])
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (b'"parts":2', b'"parts":"2"'),
        (b'"requests:1:1",4', b'"requests:1:1",{}'),
        (b'"requests:1:1",4', b"1,4"),
        (b",4,9,120]", b",4,9]"),
        (b'"service":"chat"', b'"service":3'),
    ],
)
def test_fields_of_another_type_are_refused(right: bytes, wrong: bytes) -> None:
    """A header whose values are not what they must be is refused, not taken at its word."""
    data = protocol.encode(SEGMENT)
    header = data[7:-6]
    assert right in header
    damaged = header.replace(right, wrong)
    with pytest.raises(WireError, match="damaged"):
        protocol.decode(data[:3] + struct.pack("<I", len(damaged)) + damaged + data[-6:])


def test_another_version_is_named() -> None:
    """A message of a newer release says which version it has and which is read here."""
    data = bytearray(protocol.encode(MARK))
    data[2] = 9
    with pytest.raises(WireError, match="version 9"):
        protocol.decode(bytes(data))


def test_a_source_is_told_apart_from_its_earlier_life() -> None:
    """The same partition of a topic that was made anew has another name."""
    assert protocol.source_key("t", 3, 1) != protocol.source_key("t", 3, 2)

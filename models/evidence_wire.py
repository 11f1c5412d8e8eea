"""The bytes of an `Evidence`, and back, equal to the last bit."""

from __future__ import annotations

import struct
import zlib
from dataclasses import asdict
from typing import Any, Final

import orjson

from tailbudget.models.evidence import Evidence
from tailbudget.schemas.errors import ReleaseError, WireError
from tailbudget.schemas.sections import ColdWindow
from tailbudget.schemas.wire import decode, encode

VERSION: Final = 1

_HEAD = struct.Struct("<2sBII")
_MAGIC: Final = b"TE"
_PARTS: Final = ("total", "cohorts", "timeline", "warm", "warm_cohorts", "instances")


def dump(evidence: Evidence) -> bytes:
    """Return the bytes of an evidence: a JSON header, then the summaries that it names.

    Each has a checksum of its own.
    """
    parts = {name: getattr(evidence, name) for name in _PARTS}
    bodies = {name: encode(part) for name, part in parts.items() if part is not None}
    named = {
        cohort: number for number, cohort in enumerate(dict.fromkeys(evidence.cohort_of.values()))
    }
    header = orjson.dumps(
        {
            "service": evidence.service,
            "start_ns": evidence.start_ns,
            "end_ns": evidence.end_ns,
            "slot_ns": evidence.slot_ns,
            "deploys_known": evidence.deploys_known,
            "cold_windows": [asdict(window) for window in evidence.cold_windows],
            "named": list(named),
            "cohort_of": [(h, named[cohort]) for h, cohort in evidence.cohort_of.items()],
            "sizes": {name: len(body) for name, body in bodies.items()},
        }
    )
    head = _HEAD.pack(_MAGIC, VERSION, zlib.crc32(header), len(header))
    return b"".join((head, header, *bodies.values()))


def load(stored: bytes) -> Evidence:
    """Return the evidence that `dump` was given.

    Raises:
        WireError: the bytes are no evidence, or damaged.
        ReleaseError: they are of another version.
    """
    if len(stored) < _HEAD.size or stored[:2] != _MAGIC:
        raise WireError("no evidence: it does not begin with TE")
    _, version, checksum, size = _HEAD.unpack_from(stored)
    if version != VERSION:
        raise ReleaseError(f"an evidence of version {version}, this program reads {VERSION}")
    end = _HEAD.size + size
    if zlib.crc32(stored[_HEAD.size : end]) != checksum:
        raise WireError("the evidence is damaged: its header has another checksum")
    try:
        header: dict[str, Any] = orjson.loads(stored[_HEAD.size : end])
        sizes = header.pop("sizes")
        windows = tuple(ColdWindow(**window) for window in header.pop("cold_windows"))
        named = [tuple(map(tuple, cohort)) for cohort in header.pop("named")]
        header["cohort_of"] = {h: named[number] for h, number in header["cohort_of"]}
        parts: dict[str, Any] = {}
        for name, length in sizes.items():
            parts[name] = decode(stored[end : end + length])
            end += length
        return Evidence(**header, **parts, cold_windows=windows)
    except (TypeError, ValueError, KeyError) as error:
        raise WireError(f"the evidence is damaged: {error}") from error

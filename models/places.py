"""Where in an inference request a stage belongs, by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tailbudget.models.replay import matching
from tailbudget.schemas.summary import UNATTRIBUTED

FORWARD: Final = "forward pass"

PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "tokenisation": ("*tokeni*",),
    "postprocessing": ("*post*", "*detok*", "*format*", "*seriali*", "*render*", "*encode_resp*"),
    "queueing": ("*queue*", "*wait*", "*admission*", "*schedul*", "*lock*", "*pending*"),
    "network": (
        "*net*", "*fetch*", "*lookup*", "*http*", "*rpc*", "*redis*", "*db*", "*store*", "*api*",
        "*download*", "*upload*", "*transfer*", "*retriev*", "*call*", "*connect*",
    ),
    "preprocessing": (
        "*pre?pro*", "*prepro*", "*parse*", "*valid*", "*resize*", "*crop*", "*normali*",
        "*feature*", "*image_decode*", "*decode_image*", "*prepare*", "*augment*",
    ),
    FORWARD: (
        "*forward*", "*model*", "*infer*", "*predict*", "*prefill*", "*decode*", "*generat*",
        "*gpu*", "*embed*", "*rerank*", "*score*", "*scoring*", "*ttft*",
    ),
}  # fmt: skip
"""Patterns of stage names; the first place that matches counts."""


def place_of(stage: str) -> str | None:
    """Return the place that a stage's name stands for; None when it tells none."""
    if stage == UNATTRIBUTED:
        return None
    return next((place for place, names in PLACES.items() if matching((stage,), names)), None)

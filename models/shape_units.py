"""What one unit of an input-shape dimension is, by the dimension's name."""

from __future__ import annotations

from typing import Final

_LENGTHS: Final = {
    "tokens": "token",
    "sequence_length": "token",
    "pixels": "pixel",
    "bytes": "byte",
    "rows": "row",
    "candidates": "candidate",
    "batch_size": "item",
}
"""Names, or last words of names, of dimensions that count something to be worked through."""


def length_unit(covariate: str) -> str | None:
    """Return what a length counts, such as "token" for "output_tokens"; None for no length."""
    for name, unit in _LENGTHS.items():
        if covariate == name or covariate.endswith("_" + name):
            return unit
    return None


def unit_of(covariate: str) -> str:
    """Return what one unit of a covariate is; its own name where that is not known."""
    return length_unit(covariate) or covariate

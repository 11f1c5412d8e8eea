"""The time of an output token, where a record tells the first one and how many there were.

A tool's own figure goes before it. Where there is none it is what follows the first token over the
other tokens, (total - ttft) / (tokens - 1), as NVIDIA, vLLM and GuideLLM define it (their TPOT).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.columns import with_stages
from tailbudget.schemas.records import TPOT, TTFT, Columns

Floats = NDArray[np.float64]

MOST_TOKENS: Final = 1e9
"""More of them are no count of tokens."""


def with_token_times(columns: Columns, tokens: Floats) -> Columns:
    """Return the rows with the time of an output token, each by its own cells alone.

    Args:
        columns: the rows, of which some tell the time to the first token.
        tokens: [n] output tokens; NaN where they are not told.
    """
    own = dict(zip(columns.stages, columns.stage_ms, strict=True))
    rest_ms = columns.total_ms - own[TTFT]
    derivable = (tokens >= 2) & (tokens < MOST_TOKENS) & (rest_ms >= 0)
    derived = np.where(derivable, rest_ms / np.where(derivable, tokens - 1, 1), np.nan)
    told = own.get(TPOT)
    own[TPOT] = derived if told is None else np.where(np.isnan(told), derived, told)
    if np.isnan(own[TPOT]).all():
        return columns
    return with_stages(columns, own)

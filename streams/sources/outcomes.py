"""How a request ended, from the many ways of writing it."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tailbudget.schemas.records import Outcome

_WORDS: Final = {
    Outcome.OK: "ok success succeeded successful completed complete done true",
    Outcome.TIMEOUT: "timeout timed_out timedout time_out deadline_exceeded deadlineexceeded",
    Outcome.CANCELLED: "cancelled canceled cancel aborted abandoned disconnected",
    Outcome.REJECTED: "rejected throttled rate_limited ratelimited overloaded shed unavailable "
    "resource_exhausted resourceexhausted",
}
_BY_WORD: Final = {word: outcome for outcome, text in _WORDS.items() for word in text.split()}
_BY_CODE: Final = {
    408: Outcome.TIMEOUT,
    429: Outcome.REJECTED,
    499: Outcome.CANCELLED,
    503: Outcome.REJECTED,
    504: Outcome.TIMEOUT,
}
_CODE: Final = re.compile(r"(\d{3})(\.0*)?", re.ASCII)


def outcome_of(status: str | None) -> Outcome:
    """Return the outcome that a status names.

    A missing or blank status is OK. An HTTP code counts by its class; 408 and 504 are timeouts,
    499 is a cancellation, 429 and 503 are rejections. What is not understood is an error: it must
    not pass for a success.
    """
    word = (status or "").strip().lower().replace(" ", "_").replace("-", "_")
    if not word:
        return Outcome.OK
    code = _CODE.fullmatch(word)
    if code is None:
        return _BY_WORD.get(word, Outcome.ERROR)
    number = int(code[1])
    return _BY_CODE.get(number, Outcome.OK if 100 <= number < 400 else Outcome.ERROR)


def outcomes(status: pl.Series) -> NDArray[np.int8]:
    """Return [n] outcomes of [n] statuses."""
    if status.null_count() == len(status):
        return np.zeros(len(status), np.int8)
    if status.null_count() == 0 and bool((status == status[0]).all()):
        return np.full(len(status), outcome_of(status[0]), np.int8)
    known = {text: int(outcome_of(text)) for text in status.unique().to_list()}
    return status.replace_strict(known, return_dtype=pl.Int8).to_numpy()

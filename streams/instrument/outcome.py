"""How a request ended, told from the exception that ended it."""

from __future__ import annotations

from typing import Final

OK: Final = "ok"
ERROR: Final = "error"
TIMEOUT: Final = "timeout"
CANCELLED: Final = "cancelled"

Status = str | int
"""A word of the record format, or an HTTP code."""

_TIMEOUTS: Final = ("timeout", "timedout", "deadline")
_CANCELLATIONS: Final = ("cancel", "generatorexit", "keyboardinterrupt", "systemexit")


def status_of(error: BaseException) -> Status:
    """Return the status of a request that raised this.

    An HTTP error that carries its code (`status_code`, as Starlette's and FastAPI's do) has that
    code. Timeouts and cancellations are told by the names of the class and its bases, for most
    clients derive theirs from no common one. A group has the status that all its parts share.
    """
    code = error.__dict__.get("status_code")
    if isinstance(code, int) and 400 <= code <= 599:
        return code
    if isinstance(error, BaseExceptionGroup):
        shared = {status_of(part) for part in error.exceptions}
        return shared.pop() if len(shared) == 1 else ERROR
    names = " ".join(base.__name__ for base in type(error).__mro__).lower()
    if any(word in names for word in _TIMEOUTS):
        return TIMEOUT
    if any(word in names for word in _CANCELLATIONS):
        return CANCELLED
    return ERROR


def succeeded(status: Status) -> bool:
    """Say whether a status is "ok" or an HTTP code below 400."""
    return status == OK if isinstance(status, str) else 100 <= status < 400

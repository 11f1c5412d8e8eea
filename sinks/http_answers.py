"""What HTTP servers answered to code that only tells us yes or no.

Apprise returns True or False, but whether to send again depends on the status, and when on the
`Retry-After` header. All its HTTP plugins send through `requests`, so we listen there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import wraps
from typing import Any, Final

from requests import Response
from requests.adapters import HTTPAdapter

RETRYABLE: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed (RFC 9110 section 15, RFC 6585)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered.

    Attributes:
        status: HTTP status.
        retry_after_s: seconds that it asked us to wait; None when it did not say.
        response: the whole answer.
    """

    status: int
    retry_after_s: float | None
    response: Response | None = None

    def said(self) -> dict[str, Any]:
        """Return the JSON object that it answered; an empty one where it is none."""
        if self.response is None:
            return {}
        try:
            said = self.response.json()
        except ValueError:
            return {}
        return said if isinstance(said, dict) else {}


_heard: ContextVar[list[Answer] | None] = ContextVar("tailbudget_http_answers", default=None)


@contextmanager
def listening() -> Iterator[list[Answer]]:
    """Collect the answers to requests that this thread sends inside the block."""
    _install()
    answers: list[Answer] = []
    token = _heard.set(answers)
    try:
        yield answers
    finally:
        _heard.reset(token)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the wait that a server asks for (RFC 9110 section 10.2.3).

    A date counts from the server's own `Date`, so that neither clock has to be right.
    """
    value = headers.get("Retry-After", "").strip()
    if value.isdecimal():
        return float(value)
    try:
        until = parsedate_to_datetime(value)
        wait = until - parsedate_to_datetime(headers.get("Date", ""))
    except (TypeError, ValueError):
        return None
    return max(wait.total_seconds(), 0.0)


def _install() -> None:
    send = HTTPAdapter.send
    if not hasattr(send, "_tailbudget"):
        HTTPAdapter.send = _heard_by_us(send)  # type: ignore[method-assign]


def _heard_by_us(send: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(send)
    def listened(*args: Any, **kwargs: Any) -> Any:
        response = send(*args, **kwargs)
        answers = _heard.get()
        if answers is not None:
            wait_s = retry_after_s(response.headers)
            answers.append(Answer(response.status_code, wait_s, response))
        return response

    listened._tailbudget = True  # type: ignore[attr-defined]  # noqa: SLF001
    return listened

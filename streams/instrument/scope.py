"""The scope of one request: what happens inside becomes one record."""

from __future__ import annotations

import time
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Final, Self

from tailbudget.streams.instrument.ids import next_id
from tailbudget.streams.instrument.outcome import OK, Status, status_of
from tailbudget.streams.instrument.sink import Column, Finished, Sink
from tailbudget.streams.instrument.spans import Spans

_CURRENT: Final[ContextVar[Request | None]] = ContextVar("tailbudget_request", default=None)


class Request:
    """One request that is being timed; a context manager, for threads and for tasks.

    The clock runs from the construction until `finish`, or the end of the context. What is set or
    timed later, by a task that outlives the request, is in no record.

    Attributes:
        request_id: unique among the requests of a topic; may be replaced until the end.
        status: how it ended, where you know better than the exception or the response; else None.
        columns: what the record carries beside times and status.
        spans: its clock.
    """

    __slots__ = ("_sink", "_started_ns", "_token", "columns", "request_id", "spans", "status")

    def __init__(self, sink: Sink, request_id: str | None, columns: dict[str, Column]) -> None:
        self._sink = sink
        self._token: Token[Request | None] | None = None
        self.columns = columns
        self.request_id = request_id or next_id()
        self.status: Status | None = None
        self._started_ns = time.time_ns()
        self.spans = Spans()

    def set(self, **columns: Column) -> None:
        """Add columns to the record, or replace them.

        Covariates are numbers, cohort dimensions text; a `<stage>_ms` that was measured elsewhere
        is a stage; `docs/record.md` says what `timeout_ms`, `scheduled_ts` and others mean.
        """
        self.columns.update(columns)

    def stage(self, name: str) -> BoundStage:
        """Time a stage of this request from a thread that does not know the current one."""
        return BoundStage(self, name)

    def finish(self, status: Status = OK) -> None:
        """End the request now and hand its record over; does nothing the second time.

        Args:
            status: how it ended, unless `self.status` says so.
        """
        if not self.spans.freeze():
            return
        ended = status if self.status is None else self.status
        columns, self.columns = self.columns, {}
        self._sink.send(Finished(self.request_id, self._started_ns, ended, columns, self.spans))

    def __enter__(self) -> Self:
        self._token = _CURRENT.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._token is not None:
            _leave(self._token)
        self.finish(OK if error is None else status_of(error))


class BoundStage:
    """A stage of one request, whatever the current request of the thread."""

    __slots__ = ("_name", "_request")

    def __init__(self, request: Request, name: str) -> None:
        self._request = request
        self._name = name

    def __enter__(self) -> Self:
        self._request.spans.open(self._name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._request.spans.close(self._name)


def request(sink: Sink, *, request_id: str | None = None, **columns: Column) -> Request:
    """Begin a request, whose record goes to `sink` when the context ends.

    The record's status is "ok", or that of the exception that leaves the context, which passes.
    A request within a request makes a record of its own, and takes the stages inside of it.

    Args:
        sink: a `RecordProducer`, or a `Collector` in tests.
        request_id: unique among the requests of the topic, a repetition is dropped as a duplicate;
            None has one made.
        columns: as for `Request.set`.
    """
    return Request(sink, request_id, columns)


current_request: Final = _CURRENT.get
"""Return the innermost request of this task or thread; None outside of all."""


def _leave(token: Token[Request | None]) -> None:
    try:
        _CURRENT.reset(token)
    except ValueError:
        # Entered in another context, which ends by itself: a framework may run the two halves of
        # a generator in two copies of its context.
        return

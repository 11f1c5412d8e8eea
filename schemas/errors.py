"""Errors, drawn as a tree by how they are handled.

TailbudgetError
├── ConfigError            wrong settings or usage: exit status 2, nothing was started
├── Refused                the input cannot answer the question: exit status 3
├── UnavailableError       a part we need is away: retried while running, exit 1 at start
│   ├── BrokerError
│   ├── ClickHouseError
│   └── ChatError
├── StorageError           a write was refused for good (schema, rights): crash, lose nothing
├── WireError              bytes on one of our own topics that are not ours: counted, skipped
│   └── ReleaseError        written by another release: crash, for skipping would lose records
└── DecodeError            a whole source file or topic that is not what it claims to be
"""

from __future__ import annotations


class TailbudgetError(Exception):
    """Something went wrong that has a name, a place and a remedy.

    Attributes:
        message: what is wrong, naming the input and the place.
        remedy: what the reader can do about it; empty when nothing can be done.
    """

    exit_status = 1

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n  remedy: {self.remedy}" if self.remedy else self.message


class ConfigError(TailbudgetError):
    """The settings or the command line are wrong; nothing was started."""

    exit_status = 2


class Refused(TailbudgetError):  # noqa: N818 - a judgement, not a mistake
    """The input cannot answer the question that was asked of it.

    Attributes:
        reason: one of `schemas.refusals`.
    """

    exit_status = 3

    def __init__(self, reason: str, detail: str, handoff: str) -> None:
        """Refuse an input.

        Args:
            reason: one of `schemas.refusals`.
            detail: what was found, naming the input.
            handoff: what answers the question instead.
        """
        super().__init__(detail, remedy=handoff)
        self.reason = reason


class UnavailableError(TailbudgetError):
    """A service we depend on does not answer now; trying again may help."""


class BrokerError(UnavailableError):
    """Kafka does not answer, or refuses us."""


class ClickHouseError(UnavailableError):
    """ClickHouse does not answer, or is overloaded; the same write may succeed later."""


class ChatError(UnavailableError):
    """A chat channel does not answer, or refuses the message.

    Attributes:
        retryable: whether sending the same message again may help.
        retry_after_s: seconds that the channel asked us to wait; None when it did not say.
    """

    def __init__(
        self,
        message: str,
        *,
        remedy: str = "",
        retryable: bool = True,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.retryable = retryable
        self.retry_after_s = retry_after_s


class StorageError(TailbudgetError):
    """ClickHouse refused a write or a query for good; trying again cannot help."""


class WireError(TailbudgetError):
    """A message on one of our own topics is damaged, or nothing that we wrote."""


class ReleaseError(WireError):
    """A message on one of our own topics is of a version that this release does not read."""


class DecodeError(TailbudgetError):
    """A source is not of the format it was declared or recognised to be."""

"""How long to wait before a message is sent again, and when to give it up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tailbudget.schemas.errors import ChatError

FIRST_WAIT_S: Final = 0.5
LONGEST_WAIT_S: Final = 10.0
GIVE_UP_S: Final = 900.0
"""A message that a channel did not take for so long is given up, counted and logged."""

LONGEST_ASKED_S: Final = 300.0
"""The longest wait that a server may ask for; then it is tried all the same."""


@dataclass(slots=True)
class Backoff:
    """Waits for one message.

    Attributes:
        began_s: when it was first sent, seconds of a growing clock.
        attempts: how often it was sent.
    """

    began_s: float
    attempts: int = 0

    def after(self, error: ChatError, now_s: float) -> float | None:
        """Return how long to wait after a failure; None gives the message up.

        A server that asks for time gets it: that it answers shows that it will take the message.
        """
        self.attempts += 1
        if not error.retryable or now_s - self.began_s > GIVE_UP_S:
            return None
        if error.retry_after_s is not None:
            return min(error.retry_after_s, LONGEST_ASKED_S)
        return float(min(FIRST_WAIT_S * 2 ** min(self.attempts - 1, 10), LONGEST_WAIT_S))

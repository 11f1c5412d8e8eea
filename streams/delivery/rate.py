"""At most so many messages a minute to one channel."""

from __future__ import annotations


class Rate:
    """A bucket that holds a minute's messages and fills evenly.

    Args:
        per_minute: messages a minute.
    """

    def __init__(self, per_minute: int) -> None:
        self._per_s = per_minute / 60
        self._size = float(per_minute)
        self._left = float(per_minute)
        self._at_s: float | None = None

    def take(self, now_s: float) -> float:
        """Take room for one message; return how many seconds to wait before it is sent.

        Args:
            now_s: a growing clock.
        """
        if self._at_s is not None:
            self._left = min(self._left + (now_s - self._at_s) * self._per_s, self._size)
        self._at_s = now_s
        self._left -= 1
        return max(-self._left / self._per_s, 0.0)

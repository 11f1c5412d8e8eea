"""What belongs together is one message: changes of one service to one state."""

from __future__ import annotations

from collections.abc import Iterable

from tailbudget.streams.delivery.notice import Notice


def grouped(notices: Iterable[Notice]) -> list[list[Notice]]:
    """Return groups in order; the changes of one alert stay in theirs, whatever they join."""
    groups: list[list[Notice]] = []
    newest: dict[tuple[str, str], int] = {}
    for notice in notices:
        alert = notice.alert
        after = newest.get(alert.key, -1) + 1
        fitting = (
            place for place in range(after, len(groups)) if _kind(groups[place][0]) == _kind(notice)
        )
        place = next(fitting, len(groups))
        if place == len(groups):
            groups.append([])
        groups[place].append(notice)
        newest[alert.key] = place
    return groups


def _kind(notice: Notice) -> tuple[str, str]:
    return notice.alert.service, notice.alert.state

"""A month of one service on an accelerated clock: what is told, and what rivals would have told.

A daily rhythm, workload shifts, deploys with cold replicas, three true incidents and a slow leak.
Ours are all kinds of alert rules of the worker on one `AlertBook`: a percentile, a cold start, a
burn rate and the anomaly of a stage; rivals judge the same minutes: a static threshold on the p99,
and the four window pairs of a Sloth file as alerts of their own. Each is judged once a minute.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from month import DAY, FIRST_DAYS, INCIDENTS, month
from month_rules import Ours, Rivals, Told

GRACE: Final = 6 * 60
"""Minutes after an incident in which its windows may still tell of it: the longest short window."""


def report(name: str, told: Sequence[Told], since: int) -> str:
    """Return one row of the table."""
    told = [one for one in told if one.minute >= since]
    begins = [one for one in told if one.begins]
    cells = []
    for incident in INCIDENTS:
        mine = [one for one in begins if incident.on(one.minute)]
        if not mine:
            cells.append("never")
            continue
        first = mine[0]
        cells.append(f"{first.minute + 1 - incident.begin} min, {first.alert}")
    stray = [one for one in begins if not any(i.on(one.minute, GRACE) for i in INCIDENTS)]
    late = [
        one for one in begins if not any(i.on(one.minute) for i in INCIDENTS) and one not in stray
    ]
    pages = [one for one in stray if one.page]
    tickets = [one for one in stray if not one.page]
    figures = (len(pages), len(tickets), len(late), len(told))
    return "| " + " | ".join([name, *cells, *map(str, figures)]) + " |"


def detail(told: Sequence[Told], since: int) -> Iterator[str]:
    """Yield each message of ours."""
    for one in told:
        if one.minute >= since:
            day, minute = divmod(one.minute - since, DAY)
            where = next((i.name for i in INCIDENTS if i.on(one.minute, GRACE)), "no incident")
            said = ("page" if one.page else "ticket") if one.begins else "over"
            yield f"day {day + 1:2} {minute // 60:02}:{minute % 60:02} {one.alert} {said}, {where}"


def main(show: Callable[[str], None] = print) -> None:
    """Play the month and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--messages", action="store_true", help="print each message of ours")
    asked = parser.parse_args()
    ours, rivals = Ours(), Rivals((FIRST_DAYS + asked.days) * DAY)
    told: tuple[list[Told], ...] = ([], [], [])
    for one in month(asked.seed, asked.days):
        static, sloth = rivals.minute(one)
        for kept, new in zip(told, (ours.minute(one), static, sloth), strict=True):
            kept.extend(new)
    since = FIRST_DAYS * DAY
    heads = ["rules", *(one.name for one in INCIDENTS)]
    heads += ["false pages", "false tickets", "begun after an end", "messages"]
    show("| " + " | ".join(heads) + " |")
    show("|" + "---|" * len(heads))
    names = ("tailbudget", "static p99 threshold", "Sloth's window pairs")
    for name, kept in zip(names, told, strict=True):
        show(report(name, kept, since))
    if asked.messages:
        for line in detail(told[0], since):
            show(line)


if __name__ == "__main__":
    main()

"""A simulated month through our burn rates, a static P99 threshold and Sloth's rules.

    PYTHONPATH=tests/support python tests/bench/burn_rates_month.py --seeds 5

The month is that of `tests/support/burn_month.py`: a daily rhythm, deploys, shifts of workload
within the budget, three faults and one slow leak, judged once a minute. Printed, for each way of
alerting: minutes from the begin of each fault to its first notice, how often an alert begins
outside of all faults, and the messages that a channel gets. Of several seeds the worst is shown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from burn_month import INCIDENTS, WAYS, Said, month
from rich.console import Console
from rich.table import Table


def main() -> int:
    """Run it and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=1, help="months to simulate, from seed 7 on")
    seeds = range(7, 7 + parser.parse_args().seeds)
    table = Table(title=f"A month, the worst of {len(seeds)}: minutes to the first notice")
    table.add_column("what happens")
    for name in ("the arithmetic", *WAYS):
        table.add_column(name, justify="right")
    months = [month(seed) for seed in seeds]
    said = [[way(*one) for one in months] for way in WAYS.values()]
    for incident in INCIDENTS:
        waits = [_worst([one.waited(incident) for one in way]) for way in said]
        table.add_row(incident.name, f"{incident.due():.1f}", *waits)
    table.add_section()
    for name, due, figure in _figures(len(INCIDENTS)):
        table.add_row(name, str(due), *(f"{max(map(figure, way)):,}" for way in said))
    Console(width=110).print(table)
    return 0


def _figures(faults: int) -> list[tuple[str, int, Callable[[Said], int]]]:
    """Return what is counted, with what it ought to be."""
    return [
        ("alerts outside of faults", 0, Said.false),
        ("alerts", faults, lambda said: len(said.begins)),
        ("messages", 2 * faults, lambda said: said.messages),
    ]


def _worst(waits: list[int | None]) -> str:
    known = [wait for wait in waits if wait is not None]
    return str(max(known)) if len(known) == len(waits) else "never"


if __name__ == "__main__":
    raise SystemExit(main())

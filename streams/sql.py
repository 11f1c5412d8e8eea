"""Read-only SQL, also while a worker owns the embedded engine."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Literal

import orjson
import requests
from rich.console import Console, Group
from rich.table import Table as RichTable
from rich.text import Text

from tailbudget.schemas.settings import Settings
from tailbudget.streams.ask_worker import ANSWER_S, json_of, refusal_of, request
from tailbudget.streams.data_directory import running_worker

Output = Literal["table", "json"]
_WIDEST: Final = 10_000
"""Letters of a line where there is no terminal."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query returned.

    Attributes:
        columns: names of the columns.
        rows: values, in the order of the columns.
        truncated: whether there were more rows.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    truncated: bool = False


def run(settings: Settings, query: str, output: Output = "table") -> None:
    """Ask ClickHouse and print the answer to standard output.

    Raises:
        ClickHouseError: ClickHouse, or the worker that owns it, does not answer.
        ConfigError: the query is wrong, or more than reading.
    """
    answer = ask(settings, query)
    if output == "json":
        print(as_json(answer))  # noqa: T201 (it is what the command is for)
    else:
        # A file or a pipe has no width to fit: a line a row, for people and for grep.
        width = None if sys.stdout.isatty() else _WIDEST
        Console(width=width).print(as_table(answer))
    if answer.truncated:
        note = f"note: there are more than these {len(answer.rows):,} rows; use LIMIT and OFFSET"
        Console(stderr=True).print(note)


def ask(settings: Settings, query: str) -> Answer:
    """Return the answer to a query, from ClickHouse or through the worker that owns it.

    Raises:
        ClickHouseError: ClickHouse, or the worker that owns it, does not answer.
        ConfigError: the query is wrong, or more than reading.
    """
    if settings.clickhouse.interface == "chdb":
        worker = running_worker(settings.data_dir)
        if worker is not None:
            return ask_worker(worker, query)
    return _ask_directly(settings, query)


def ask_worker(worker: Mapping[str, Any], query: str, *, patience_s: float = ANSWER_S) -> Answer:
    """Return the answer of a running worker, which alone may open its engine.

    Args:
        worker: what it announced in `worker.json`.
        query: the SQL.
        patience_s: how long to wait for the answer.

    Raises:
        ClickHouseError: it does not answer.
        ConfigError: the query is wrong, or more than reading.
    """
    answer = request(worker, "POST", "/sql", json={"query": query}, patience_s=patience_s)
    return _read(answer)


def as_json(answer: Answer) -> str:
    """Return an answer as a JSON array of objects; what is no JSON number is null."""
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    return orjson.dumps(rows, default=str, option=options).decode()


def as_table(answer: Answer) -> Group:
    """Return an answer as a table; numbers stand right, and nothing is read as markup."""
    table = RichTable()
    first = answer.rows[0] if answer.rows else [None] * len(answer.columns)
    for name, value in zip(answer.columns, first, strict=True):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        table.add_column(Text(name), justify="right" if number else "left", overflow="fold")
    for row in answer.rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    return Group(table, f"{len(answer.rows):,} row{'' if len(answer.rows) == 1 else 's'}")


def _ask_directly(settings: Settings, query: str) -> Answer:
    # Here, so that the commands that need no database start without its libraries.
    from tailbudget.streams.database import open_existing  # noqa: PLC0415

    with closing(open_existing(settings.clickhouse)) as database:
        found = database.query(query)
    return Answer(found.columns, found.rows, found.truncated)


def _read(response: requests.Response) -> Answer:
    body = json_of(response)
    if response.ok and {"columns", "rows"} <= body.keys():
        return Answer(body["columns"], body["rows"], bool(body.get("truncated")))
    raise refusal_of(response)


def _cell(value: object) -> str:
    if value is None:
        return "null"
    return f"{value:.6g}" if isinstance(value, float) else str(value)

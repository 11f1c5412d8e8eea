"""Long answers, a block at a time, for a query that only reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

from tailbudget.schemas.clickhouse_target import ClickHouseTarget
from tailbudget.schemas.errors import ConfigError
from tailbudget.sinks.clickhouse.connect import SESSION, connect
from tailbudget.sinks.clickhouse.errors import RETRYABLE, classify, error_code
from tailbudget.sinks.clickhouse.statement import reading_statement

STREAMING: Final = SESSION | {
    # As bytes: ClickHouse does not see to it that text is UTF-8, and Arrow relies on it.
    "output_format_arrow_string_as_string": "0",
    "output_format_arrow_low_cardinality_as_dictionary": "0",
    # Last: it forbids any further change of settings.
    "readonly": "1",
}


def stream(target: ClickHouseTarget, sql: str) -> Iterator[Any]:
    """Yield Arrow record batches of the answer, over a connection of its own.

    A server sends them as they are found. The embedded engine has its answer in memory whole.

    Args:
        target: where ClickHouse is.
        sql: the statement.

    Raises:
        ConfigError: the statement is wrong, or more than reading.
        ClickHouseError: ClickHouse does not answer.
    """
    statement = reading_statement(sql)
    with closing(connect(target, STREAMING)) as connection:
        try:
            with connection.attempt(lambda client: client.query_arrow_stream(statement)) as batches:
                yield from batches
        except GeneratorExit:
            raise
        except Exception as error:
            code = error_code(error)
            if code is None or code in RETRYABLE:
                raise classify(error, "the query") from error
            text = " ".join(str(error).split())
            raise ConfigError(text, remedy="docs/sql.md has queries that work") from error

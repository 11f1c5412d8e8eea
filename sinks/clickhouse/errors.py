"""What an error of the driver means for us: try again, or say what to mend."""

from __future__ import annotations

import errno
import re
from typing import Final

from clickhouse_connect.driver import exceptions as driver

from tailbudget.schemas.errors import (
    ClickHouseError,
    ConfigError,
    StorageError,
    TailbudgetError,
)

# Numbers and names: src/Common/ErrorCodes.cpp of ClickHouse.
RETRYABLE: Final = {
    3: "UNEXPECTED_END_OF_FILE",
    32: "ATTEMPT_TO_READ_AFTER_EOF",
    95: "CANNOT_READ_FROM_SOCKET",
    96: "CANNOT_WRITE_TO_SOCKET",
    159: "TIMEOUT_EXCEEDED",
    198: "DNS_ERROR",
    202: "TOO_MANY_SIMULTANEOUS_QUERIES",
    209: "SOCKET_TIMEOUT",
    210: "NETWORK_ERROR",
    225: "NO_ZOOKEEPER",
    236: "ABORTED",
    241: "MEMORY_LIMIT_EXCEEDED",
    242: "TABLE_IS_READ_ONLY",
    252: "TOO_MANY_PARTS",
    279: "ALL_CONNECTION_TRIES_FAILED",
    285: "TOO_FEW_LIVE_REPLICAS",
    319: "UNKNOWN_STATUS_OF_INSERT",
    341: "UNFINISHED",
    373: "SESSION_IS_LOCKED",
    394: "QUERY_WAS_CANCELLED",
    439: "CANNOT_SCHEDULE_TASK",
    473: "DEADLOCK_AVOIDED",
    499: "S3_ERROR",
    745: "SERVER_OVERLOADED",
    999: "KEEPER_EXCEPTION",
}
"""Codes after which the same write may succeed; our writes are idempotent."""

MISCONFIGURED: Final = {
    81: "create the tables: tailbudget migrate",
    60: "create the tables: tailbudget migrate",
    192: "set clickhouse.username to a user that exists",
    193: "set clickhouse.password",
    194: "set clickhouse.password",
    497: "grant the user SELECT, INSERT, CREATE and ALTER on the database",
    516: "set clickhouse.username and clickhouse.password (TAILBUDGET_CLICKHOUSE__PASSWORD)",
}
"""Codes that the settings can mend, with the remedy."""

FULL: Final = frozenset({243})
_FULL_TEXT: Final = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)
_FULL_REMEDY: Final = "free space on the disk of ClickHouse, then start again; nothing was lost"
_CODE: Final = re.compile(r"\bCode:\s*(\d+)")
_LONGEST: Final = 600


def error_code(error: BaseException) -> int | None:
    """Return ClickHouse's number of an error of the driver, if it has one."""
    code = getattr(error, "code", None)
    if isinstance(code, int):
        return code
    found = _CODE.search(str(error))
    return int(found.group(1)) if found else None


def classify(error: BaseException, doing: str = "a request") -> TailbudgetError:
    """Return our error for one that the driver or the network raised.

    Args:
        error: what was raised.
        doing: what we were doing, and where, for the message.
    """
    if isinstance(error, TailbudgetError):
        return error
    code, text = error_code(error), _shorten(str(error))
    message = f"{doing}: {text}"
    if code in FULL or _is_full(error):
        return StorageError(message, remedy=_FULL_REMEDY)
    if code in MISCONFIGURED:
        return ConfigError(message, remedy=MISCONFIGURED[code])
    if code in RETRYABLE or (code is None and _is_network(error)):
        return ClickHouseError(message)
    if isinstance(error, ImportError):
        return ConfigError(message, remedy="pip install 'tailbudget[embedded]', or use a server")
    return StorageError(message)


def _is_full(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return True
    return bool(_FULL_TEXT.search(str(error)))


def _is_network(error: BaseException) -> bool:
    """Without a code, the server never answered, or something before it did (a proxy's 502)."""
    return isinstance(error, ConnectionError | TimeoutError | driver.OperationalError) or (
        isinstance(error, driver.DatabaseError)
        and not isinstance(error, driver.ProgrammingError | driver.DataError)
    )


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"

"""Which errors of ClickHouse are tried again, and what the others tell the reader."""

from __future__ import annotations

import errno

import pytest
from clickhouse_connect.driver import exceptions as driver

from tailbudget.schemas.errors import (
    ClickHouseError,
    ConfigError,
    StorageError,
)
from tailbudget.sinks.clickhouse.errors import classify


@pytest.mark.parametrize("code", [159, 202, 209, 210, 241, 242, 252, 285, 319, 745, 999])
def test_overload_and_network_codes_are_retryable(code: int) -> None:
    """Too many parts, too many queries, memory, a read-only replica: later it may work."""
    error = driver.DatabaseError(f"Code: {code}. DB::Exception: busy", code=code)
    assert type(classify(error)) is ClickHouseError


def test_a_code_in_the_text_alone_counts() -> None:
    """The driver does not always fill in the code; the text has it."""
    error = driver.DatabaseError("Code: 252. DB::Exception: Too many parts")
    found = classify(error, "writing panes")
    assert type(found) is ClickHouseError
    assert found.message.startswith("writing panes: Code: 252.")


@pytest.mark.parametrize(
    "error",
    [
        driver.OperationalError("Error ConnectionRefusedError executing HTTP request"),
        driver.DatabaseError("HTTP driver received HTTP status 502"),
        ConnectionResetError("reset"),
        TimeoutError("timed out"),
    ],
)
def test_a_server_that_does_not_answer_is_retryable(error: Exception) -> None:
    """Without a code, nobody at the other end has refused anything."""
    assert type(classify(error)) is ClickHouseError


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (516, "clickhouse.password"),
        (497, "grant"),
        (60, "tailbudget migrate"),
        (81, "tailbudget migrate"),
    ],
)
def test_what_settings_can_mend_says_how(code: int, hint: str) -> None:
    """Wrong credentials, rights and missing tables name the remedy."""
    found = classify(driver.DatabaseError("no", code=code))
    assert type(found) is ConfigError
    assert hint in found.remedy


@pytest.mark.parametrize(
    "error",
    [
        driver.DatabaseError("Cannot reserve 1.00 MiB, not enough space", code=243),
        driver.DatabaseError("Code: 75. Cannot write: errno: 28, No space left on device", code=75),
        OSError(errno.ENOSPC, "No space left on device"),
    ],
)
def test_a_full_disk_is_final_and_says_so(error: Exception) -> None:
    """Trying again does not free a disk; the reader can."""
    found = classify(error)
    assert type(found) is StorageError
    assert "free space" in found.remedy


@pytest.mark.parametrize("code", [6, 16, 27, 53, 70, 117])
def test_a_refused_row_is_final(code: int) -> None:
    """A type or a column that ClickHouse does not accept will not be accepted later."""
    assert type(classify(driver.DatabaseError("mismatch", code=code))) is StorageError


def test_our_own_errors_pass_through() -> None:
    """An error that was classed before keeps its class and remedy."""
    error = ConfigError("wrong", remedy="mend")
    assert classify(error, "again") is error


def test_a_long_message_is_cut() -> None:
    """A statement of a megabyte in the message does not fill the log."""
    assert len(str(classify(driver.DatabaseError("x" * 10_000, code=6)))) < 800

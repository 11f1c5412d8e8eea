"""What a ClickHouse connection needs to know, whoever read it from where."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class ClickHouseTarget:
    """A ClickHouse server, or the embedded engine in a directory.

    Attributes:
        interface: "http" for a server, "chdb" for the embedded engine.
        host: host of the server.
        port: its HTTP port.
        secure: use HTTPS.
        username: user name.
        password: password; kept out of the repr.
        database: the database that our tables live in.
        path: directory of the embedded engine; one process owns it.
        connect_timeout_s: patience for a connection to a server.
        request_timeout_s: patience for one answer of a server.
    """

    interface: Literal["http", "chdb"] = "http"
    host: str = "127.0.0.1"
    port: int = 8123
    secure: bool = False
    username: str = "default"
    password: str = field(default="", repr=False)
    database: str = "tailbudget"
    path: Path = Path("tailbudget-data/clickhouse")
    connect_timeout_s: int = 5
    request_timeout_s: int = 60

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        if self.interface == "chdb":
            return f"the embedded ClickHouse in {self.path}"
        return f"ClickHouse at {self.host}:{self.port}"

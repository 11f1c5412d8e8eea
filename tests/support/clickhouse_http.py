"""A small ClickHouse server for tests: the HTTP interface over the embedded engine.

It speaks as much of the protocol as the driver uses, checks the password, and fails on demand.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import chdb
import cramjam

HANG_UP = "hang up"
"""A fault: the insert is done, and its answer never comes."""

FAULTS = "/tests/faults"
"""Where faults are ordered: a JSON object with a list of `faults` and the `table` that has them."""

INSERTS = "/tests/inserts"
"""Where the inserts that arrived are asked for."""

_CODE = re.compile(r"Code: (\d+)")
_NOT_SETTINGS = {"query", "database", "client_protocol_version", "enable_http_compression"}
_NOT_SETTINGS |= {"session_id", "query_id", "buffer_size", "wait_end_of_query", "compress"}
_NOT_SETTINGS |= {"send_progress_in_http_headers", "http_headers_progress_interval_ms"}


@dataclass(slots=True)
class Server:
    """What the handlers share.

    Attributes:
        path: directory of the embedded engine.
        password: what the user must give.
        faults: answers to the next inserts, first to last: (HTTP status, ClickHouse code), or
            `HANG_UP`.
        table: whose inserts they are answers to; empty: any.
        inserts: statements of the inserts that arrived.
        port: where it listens.
    """

    path: Path
    password: str = "secret"  # noqa: S105
    faults: list[tuple[int, int] | str] = field(default_factory=list)
    table: str = ""
    inserts: list[str] = field(default_factory=list)
    port: int = 0
    _idle: dict[tuple[tuple[str, str], ...], list[Any]] = field(default_factory=dict)

    @contextmanager
    def session(self, given: dict[str, str]) -> Iterator[Any]:
        """Lend a connection with the database and the settings that a request gives.

        One whose request failed is not lent again: it may hold the rest of an answer.
        """
        key = tuple(
            (name, value)
            for name, value in sorted(given.items(), key=lambda item: item[0] == "readonly")
            if not name.startswith("param_") and name not in _NOT_SETTINGS
        )
        idle = self._idle.setdefault((("database", given.get("database", "")), *key), [])
        session = idle.pop() if idle else self._open(given.get("database"), key)
        try:
            yield session
        except BaseException:
            session.close()
            raise
        idle.append(session)

    def close(self) -> None:
        """Close the connections that nobody uses."""
        while self._idle:
            _, sessions = self._idle.popitem()
            for session in sessions:
                session.close()

    def _open(self, database: str | None, settings: tuple[tuple[str, str], ...]) -> Any:
        session = chdb.connect(str(self.path.resolve()))
        try:
            if database:
                session.query(f"USE `{database}`")
            for name, value in settings:
                session.query(f"SET {name} = '{value}'")
        except BaseException:
            session.close()
            raise
        return session


@contextmanager
def serving(path: Path, *, port: int = 0, password: str = "secret") -> Iterator[Server]:  # noqa: S107
    """Serve the engine of a directory that this process has open; port 0 is a free one."""
    server = Server(path, password)

    class Handler(_Handler):
        shared = server

    http = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.port = http.server_address[1]
    thread = Thread(target=http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
        server.close()


def _form(kind: str, body: bytes) -> dict[str, str]:
    """Return the fields of a multipart form."""
    message = message_from_bytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body)
    fields = {}
    for part in message.walk():
        name = part.get_param("name", header="Content-Disposition")
        if isinstance(name, str):
            payload = part.get_payload(decode=True)
            fields[name] = payload.decode() if isinstance(payload, bytes) else ""
    return fields


class _Handler(BaseHTTPRequestHandler):
    shared: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Tests are quiet."""

    def do_GET(self) -> None:
        """Queries come either way."""
        self.do_POST()

    def do_POST(self) -> None:
        """Answer one statement, or a question of the tests."""
        given = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        body = _decode(self._body(), self.headers.get("Content-Encoding", ""))
        if self.path in {FAULTS, INSERTS}:
            self._control(body)
            return
        user, password = self._credentials()
        if password != self.shared.password:
            self._fail(403, 516, f"{user}: Authentication failed")
            return
        kind = self.headers.get("Content-Type", "")
        if kind.startswith("multipart/form-data"):  # parameters that are too long for an address
            given |= _form(kind, body)
            body = b""
        sql = given.get("query", "")
        head, _, rest = body.partition(b"\n")
        if not sql and head.upper().startswith(b"INSERT INTO") and b"FORMAT" in head.upper():
            sql, body = head.decode(), rest
        elif not sql:
            sql, body = body.decode(), b""
        fault: tuple[int, int] | str | None = None
        if sql.upper().startswith("INSERT"):
            self.shared.inserts.append(sql)
            wanted = self.shared.faults and self.shared.table in sql
            fault = self.shared.faults.pop(0) if wanted else None
        if isinstance(fault, tuple):
            self._fail(*fault, "told to fail")
            return
        try:
            answer = self._run(sql, body, given)
        except RuntimeError as error:
            found = _CODE.search(str(error))
            self._fail(500, int(found[1]) if found else 1002, str(error))
            return
        if fault == HANG_UP:
            self.close_connection = True
            return
        self._answer(200, answer, {"X-ClickHouse-Summary": "{}", "X-ClickHouse-Timezone": "UTC"})

    def _run(self, sql: str, body: bytes, given: dict[str, str]) -> bytes:
        values = {
            name.removeprefix("param_"): value
            for name, value in given.items()
            if name.startswith("param_")
        }
        with self.shared.session(given) as session:
            if not body:
                return bytes(session.query(sql, "TabSeparated", params=values).bytes() or b"")
            with tempfile.NamedTemporaryFile() as file:
                file.write(body)
                file.flush()
                into, kind = re.split(r"\s+FORMAT\s+", sql.strip(), flags=re.IGNORECASE)
                session.query(f"{into} FROM INFILE '{file.name}' FORMAT {kind}")
            return b""

    def _control(self, body: bytes) -> None:
        if self.path == FAULTS:
            ordered = json.loads(body)
            self.shared.table = f"`{ordered['table']}`" if ordered["table"] else ""
            self.shared.faults[:] = [
                fault if isinstance(fault, str) else tuple(fault) for fault in ordered["faults"]
            ]
        self._answer(200, json.dumps(self.shared.inserts).encode(), {})

    def _credentials(self) -> tuple[str, str]:
        if "X-ClickHouse-User" in self.headers:
            key = self.headers.get("X-ClickHouse-Key", "")
            return str(self.headers["X-ClickHouse-User"]), str(key)
        basic = self.headers.get("Authorization", "").removeprefix("Basic ")
        user, _, password = base64.b64decode(basic).decode().partition(":")
        return user, password

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks: list[bytes] = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _fail(self, status: int, code: int, text: str) -> None:
        body = f"Code: {code}. DB::Exception: {text}".encode()
        self._answer(status, body, {"X-ClickHouse-Exception-Code": str(code)})

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _decode(body: bytes, encoding: str) -> bytes:
    if encoding == "lz4":
        return bytes(cramjam.lz4.decompress(body))
    if encoding == "zstd":
        return bytes(cramjam.zstd.decompress(body))
    if encoding == "gzip":
        return gzip.decompress(body)
    return zlib.decompress(body) if encoding == "deflate" else body

"""A webhook that can be down, refuse, or never answer."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

HANG = 0
"""Instead of a status: the request is read and never answered."""


class ChatReceiver:
    """Takes messages while it is open, and keeps what it has taken.

    Attributes:
        port: where it listens when it is open.
        answers: (status or `HANG`, headers) of the next requests; 200 when there is none left.
        taken: the bodies that it answered with 200.
        refused: the bodies that it answered otherwise.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.taken: list[dict[str, Any]] = []
        self.refused: list[dict[str, Any]] = []
        self._closing = threading.Event()
        self._server: ThreadingHTTPServer | None = None

    def open(self) -> None:
        """Begin to listen."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                receiver._answer(self, body)

            def log_message(self, *_: object) -> None:
                """Tests are quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        """Be down; requests that hang end."""
        self._closing.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def alerts(self) -> list[tuple[str, str]]:
        """Return the service and the state of each alert that was taken, in order."""
        return [(body["alert"]["service"], body["alert"]["state"]) for body in self.taken]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        status, headers = self.answers.pop(0) if self.answers else (200, {})
        (self.taken if status == 200 else self.refused).append(body)
        if status == HANG:
            self._closing.wait()
            return
        handler.send_response(status)
        for name, value in {**headers, "Content-Length": "0"}.items():
            handler.send_header(name, value)
        handler.end_headers()

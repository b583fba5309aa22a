"""A receiver of webhooks that is really there, on this machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Post(NamedTuple):
    """One request."""

    method: str
    path: str
    alert_id: str | None
    kind: str | None
    body: str


class Receiver(ThreadingHTTPServer):
    """Answers as it is told to, and remembers what it was sent.

    Attributes
    ----------
    answer
        Gives the status of a request, in the thread that answers it.
    got
        All requests, in the order in which they came.
    taken
        Those that were answered with 200.
    most
        So many requests were there at the same time, at the most.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer: Callable[[Post], int] = lambda post: 200
        self.got: list[Post] = []
        self.taken: list[Post] = []
        self.most = 0
        self._there = 0
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook?token=secret"

    def answers(self, *codes: int) -> None:
        """Answer the next requests with these, and all others with 200."""
        left = list(codes)
        self.answer = lambda post: left.pop(0) if left else 200

    def take(self, post: Post) -> int:
        """Answer a request."""
        with self._lock:
            self.got.append(post)
            self._there += 1
            self.most = max(self.most, self._there)
        try:
            code = self.answer(post)
        finally:
            # Before the answer: with it, the sender may begin the next one.
            with self._lock:
                self._there -= 1
        if code == 200:
            with self._lock:
                self.taken.append(post)
        return code


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        receiver = self.server
        assert isinstance(receiver, Receiver)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        headers = self.headers["Idempotency-Key"], self.headers["Content-Type"]
        self.send_response(receiver.take(Post(self.command, self.path, *headers, body)))
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, format: str, *given: object) -> None:
        pass


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver for a while."""
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""Requests that are given up when their time is over.

A time-out of urllib's is that of each step: a receiver that sends a byte now and then would hold a request for as long
as it likes.
"""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTimeError
from contextlib import suppress
from http.client import HTTPConnection, HTTPSConnection
from threading import Lock, Thread, current_thread
from typing import Any


class Attempt(Thread):
    """One request, in a thread of its own, so that it can be given up wherever it has got to."""

    def __init__(self, post: Callable[[], str | None]) -> None:
        super().__init__(name="patternlake-webhook-attempt", daemon=True)
        self._post = post
        self._outcome: Future[str | None] = Future()
        self._lock = Lock()
        self._socket: socket.socket | None = None
        self._given_up = False

    def run(self) -> None:
        """Make the request."""
        try:
            self._outcome.set_result(self._post())
        except BaseException as error:
            self._outcome.set_exception(error)

    def outcome(self, timeout: float) -> str | None:
        """Begin, and tell what came of it within so many seconds."""
        self.start()
        try:
            return self._outcome.result(timeout)
        except NotInTimeError:
            self._give_up()
            return f"timed out after {timeout:g} s"

    def connected(self, connection: socket.socket) -> None:
        """Know the connection, before anything is sent."""
        with self._lock:
            if self._given_up:
                connection.close()
                raise TimeoutError("connected too late")
            self._socket = connection

    def _give_up(self) -> None:
        with self._lock:
            self._given_up = True
            if self._socket is not None:
                # It wakes the thread, wherever it reads. The connection may be closed already.
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)


class _Connection(HTTPConnection):
    """Tells the attempt that makes it."""

    def connect(self) -> None:
        super().connect()
        attempt = current_thread()
        assert isinstance(attempt, Attempt)
        attempt.connected(self.sock)


class _TlsConnection(_Connection, HTTPSConnection):
    pass


class FollowedHttp(urllib.request.HTTPHandler):
    """Has an attempt know its connection."""

    def do_open(self, http_class: Any, req: urllib.request.Request, **given: Any) -> Any:
        """Make the connection that tells."""
        return super().do_open(_Connection, req, **given)


class FollowedHttps(urllib.request.HTTPSHandler):
    """Has an attempt know its connection."""

    def do_open(self, http_class: Any, req: urllib.request.Request, **given: Any) -> Any:
        """Make the connection that tells."""
        return super().do_open(_TlsConnection, req, **given)

"""What receivers get, and what is told of those that do not take it: a webhook and a command that are really there."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from patternlake.jobs.alerts.targets import Command, Letter, Webhook

LETTERS = [Letter("a1", '{"alert_id": "a1", "key": "N14228 ü"}'), Letter("b2", '{"alert_id": "b2"}')]


class Receiver(ThreadingHTTPServer):
    """Answers as it is told to, and remembers what it was sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[int] = []
        self.got: list[tuple[str, str, str | None, str | None, str]] = []
        self.waits = 0.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook?token=secret"


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
        receiver.got.append((self.command, self.path, *headers, body))
        time.sleep(receiver.waits)
        self.send_response(receiver.answers.pop(0) if receiver.answers else 200)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, format: str, *given: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_webhook_gets_each_alert_as_json_under_its_id(receiver: Receiver) -> None:
    assert list(Webhook(receiver.url, 5).deliver(LETTERS)) == [None, None]
    kind = "application/json"
    assert receiver.got == [("POST", "/hook?token=secret", letter.alert_id, kind, letter.body) for letter in LETTERS]
    assert json.loads(receiver.got[0][-1])["key"] == "N14228 ü"


@pytest.mark.parametrize("code", [302, 400, 404, 500, 503])
def test_what_is_not_2xx_is_a_failure_and_redirects_are_not_followed(receiver: Receiver, code: int) -> None:
    receiver.answers = [code, 204]
    first, second = Webhook(receiver.url, 5).deliver(LETTERS)
    assert (first or "").startswith(f"HTTP {code} ")
    assert second is None
    assert [method for method, *_ in receiver.got] == ["POST", "POST"]


def test_a_webhook_that_nobody_answers_is_a_failure_that_says_why(receiver: Receiver) -> None:
    receiver.shutdown()
    receiver.server_close()
    (first, _) = Webhook(receiver.url, 5).deliver(LETTERS)
    assert "refused" in (first or "")


def test_a_webhook_that_answers_too_late_is_a_failure(receiver: Receiver) -> None:
    receiver.waits = 2
    (first,) = Webhook(receiver.url, 0.2).deliver(LETTERS[:1])
    assert "timed out" in (first or "")


def test_messages_do_not_tell_what_may_be_secret() -> None:
    assert Webhook("https://user:word@example.com:8443/T0/B1?token=x", 5).shown == "https://example.com:8443"
    assert Command(["/opt/tell.sh", "--password", "x"], 5).shown == "/opt/tell.sh"


def test_a_command_gets_a_line_of_json_for_each_alert(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    program = f"import sys; open({str(taken)!r}, 'wb').write(sys.stdin.buffer.read()); print('noise')"
    assert list(Command([sys.executable, "-c", program], 60).deliver(LETTERS)) == [None, None]
    assert taken.read_text(encoding="utf-8").splitlines() == [letter.body for letter in LETTERS]


@pytest.mark.parametrize(
    ("program", "timeout", "said"),
    [
        ("import sys; sys.exit('no such team')", 60, "exit code 1: no such team"),
        ("import sys; sys.exit(3)", 60, "exit code 3"),
        ("import time; time.sleep(30)", 0.5, "the command did not end within 0.5 s"),
    ],
)
def test_a_command_that_fails_has_taken_nothing(program: str, timeout: float, said: str) -> None:
    assert list(Command([sys.executable, "-c", program], timeout).deliver(LETTERS)) == [said, said]


def test_a_command_that_is_not_there_is_a_failure_that_names_it() -> None:
    first, _ = Command(["/nowhere/tell.sh"], 5).deliver(LETTERS)
    assert "No such file or directory: '/nowhere/tell.sh'" in (first or "")

"""What receivers get, and what is told of those that do not take it: a webhook and a command that are really there."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import tracemalloc
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, cast

import pytest
from webhook_receiver import Post, Receiver, receiving

from patternlake.jobs.alerts.targets import Command, Letter, Target, Webhook

LETTERS = [Letter("a1", '{"alert_id": "a1", "key": "N14228 ü"}'), Letter("b2", '{"alert_id": "b2"}')]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


def numbered(count: int) -> list[Letter]:
    return [Letter(str(number), "{}") for number in range(count)]


def sent(target: Target, letters: Sequence[Letter] = LETTERS) -> list[str | None]:
    """What is told of letters for which there always is room."""
    return list(target.deliver(letters, lambda: len(letters)))


def test_a_webhook_gets_each_alert_as_json_under_its_id(receiver: Receiver) -> None:
    assert sent(Webhook(receiver.url, 5, 1)) == [None, None]
    kind = "application/json"
    assert receiver.got == [("POST", "/hook?token=secret", letter.alert_id, kind, letter.body) for letter in LETTERS]
    assert json.loads(receiver.got[0].body)["key"] == "N14228 ü"


@pytest.mark.parametrize(
    ("url", "address", "header"),
    [
        ("https://me:s%40cret@example.com:8443/x?a=b#c", "https://example.com:8443/x?a=b", "Basic bWU6c0BjcmV0"),
        ("http://example.com/über?q=ü%20x", "http://example.com/%C3%BCber?q=%C3%BC%20x", None),
        ("http://bücher.example:81/a", "http://xn--bcher-kva.example:81/a", None),
        ("http://[::1]:9/hook", "http://[::1]:9/hook", None),
    ],
)
def test_user_and_password_go_into_a_header_and_an_address_is_ascii(url: str, address: str, header: str | None) -> None:
    asked: list[urllib.request.Request] = []

    class Opener:
        def open(self, request: urllib.request.Request, timeout: float) -> Any:
            asked.append(request)
            return nullcontext()

    hook = Webhook(url, 5, 1)
    hook._opener = cast(Any, Opener())
    assert sent(hook, LETTERS[:1]) == [None]
    assert (asked[0].full_url, asked[0].get_header("Authorization")) == (address, header)


def test_what_is_wrong_with_an_address_does_not_show_it() -> None:
    class Opener:
        def open(self, request: urllib.request.Request, timeout: float) -> Any:
            raise ValueError(f"what is {request.full_url}?")

    hook = Webhook("http://example.com/secret", 5, 1)
    hook._opener = cast(Any, Opener())
    assert sent(hook, LETTERS[:1]) == ["ValueError: the address cannot be asked"]


@pytest.mark.parametrize("code", [302, 400, 404, 500, 503])
def test_what_is_not_2xx_is_a_failure_and_redirects_are_not_followed(receiver: Receiver, code: int) -> None:
    receiver.answers(code, 204)
    first, second = sent(Webhook(receiver.url, 5, 1))
    assert (first or "").startswith(f"HTTP {code} ")
    assert second is None
    assert [post.method for post in receiver.got] == ["POST", "POST"]


def test_a_webhook_that_nobody_answers_is_a_failure_that_says_why(receiver: Receiver) -> None:
    receiver.shutdown()
    receiver.server_close()
    for at_once in (1, 4):
        assert all("refused" in (said or "") for said in sent(Webhook(receiver.url, 5, at_once)))


def test_a_webhook_that_answers_too_late_is_a_failure(receiver: Receiver) -> None:
    over = threading.Event()

    def late(post: Post) -> int:
        over.wait(60)
        return 200

    receiver.answer = late
    (first,) = sent(Webhook(receiver.url, 0.2, 1), LETTERS[:1])
    over.set()
    assert "timed out" in (first or "")


@contextmanager
def saying(*parts: bytes, pause: float) -> Iterator[str]:
    """The address of a receiver that says these, one after another, the last one again and again."""
    over = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65536)
            for part in parts:
                connection.sendall(part)
            while not over.wait(pause):
                connection.sendall(parts[-1])

    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=answer, args=server.accept()[:1], daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        finally:
            over.set()
            server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    "parts",
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        (b"HTTP/1.1 2", b"0"),
        (b"HTTP/1.1 100 Continue\r\n\r\n",),
    ],
)
def test_a_webhook_that_answers_byte_by_byte_does_not_hold_an_attempt_longer(parts: tuple[bytes, ...]) -> None:
    """The pause between the bytes is far below the time-out; without a bound, this would not end."""
    with saying(*parts, pause=0.05) as url:
        assert sent(Webhook(url, 0.5, 2)) == ["timed out after 0.5 s"] * 2


def test_a_webhook_has_taken_an_alert_once_it_says_so_however_long_it_goes_on() -> None:
    with saying(b"HTTP/1.1 200 OK\r\n\r\n", b"x", pause=0.05) as url:
        assert sent(Webhook(url, 20, 1)) == [None, None]


def test_what_a_webhook_says_is_shown_on_one_short_line_without_commands_to_a_terminal() -> None:
    with saying(b"HTTP/1.1 500 \x1b[2J\x9b" + b"x" * 1000 + b"\r\n\r\n", pause=60) as url:
        first, _ = sent(Webhook(url, 20, 1))
    begin = r"HTTP 500 \x1b[2J\x9b"
    assert first == begin + "x" * (299 - len(begin)) + "…"


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_as_many_requests_are_under_way_as_a_webhook_may_get_at_once(receiver: Receiver, at_once: int) -> None:
    """The first ones are not answered before all of them are there."""
    meeting = threading.Barrier(at_once, timeout=60)

    def met(post: Post) -> int:
        if int(post.alert_id or "") < at_once:
            meeting.wait()
        return 200

    receiver.answer = met
    assert sent(Webhook(receiver.url, 60, at_once), numbered(40)) == [None] * 40
    assert receiver.most == at_once
    came = [int(post.alert_id or "") for post in receiver.got]
    assert sorted(came) == list(range(40))
    # Threads may overtake each other on their way, a letter never one that is told of before it begins.
    assert all(abs(place - number) < at_once for place, number in enumerate(came))


def test_outcomes_are_told_in_the_order_of_the_letters_whichever_is_answered_first(receiver: Receiver) -> None:
    """Of each four, the last is answered first."""
    answered = [threading.Event() for _ in range(8)]

    def backwards(post: Post) -> int:
        number = int(post.alert_id or "")
        if number % 4 < 3:
            answered[number + 1].wait(60)
        answered[number].set()
        return 500 + number if number % 2 else 200

    receiver.answer = backwards
    told = [said and said.split()[1] for said in sent(Webhook(receiver.url, 60, 4), numbered(8))]
    assert told == [None, "501", None, "503", None, "505", None, "507"]


def test_what_there_is_no_room_for_is_neither_sent_nor_told_of(receiver: Receiver) -> None:
    rooms = [3, 2, 1]
    told = list(Webhook(receiver.url, 60, 4).deliver(numbered(9), lambda: rooms.pop(0) if rooms else 0))
    assert told == [None] * 3
    assert sorted(post.alert_id or "" for post in receiver.got) == ["0", "1", "2"]


def test_messages_do_not_tell_what_may_be_secret() -> None:
    assert Webhook("https://user:word@example.com:8443/T0/B1?token=x", 5, 1).shown == "https://example.com:8443"
    assert Command(["/opt/tell.sh", "--password", "x"], 5).shown == "/opt/tell.sh"


def test_a_command_gets_a_line_of_json_for_each_alert(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    program = f"import sys; open({str(taken)!r}, 'wb').write(sys.stdin.buffer.read()); print('noise')"
    assert sent(Command([sys.executable, "-c", program], 60)) == [None, None]
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
    assert sent(Command([sys.executable, "-c", program], timeout)) == [said, said]


def test_a_command_that_leaves_a_child_behind_has_taken_all_when_it_ends(tmp_path: Path) -> None:
    """The child holds standard input and standard error; it is not waited for, and goes on."""
    child = "import time; time.sleep(60)"
    pids = tmp_path / "pids"
    program = (
        f"import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', {child!r}]); "
        f"open({str(pids)!r}, 'a').write(f'{{child.pid}} ')"
    )
    assert sent(Command([sys.executable, "-c", program], 30)) == [None, None]
    assert sent(Command([sys.executable, "-c", f"{program}; sys.exit('no such team')"], 30))[0] == (
        "exit code 1: no such team"
    )
    for pid in pids.read_text().split():
        os.kill(int(pid), signal.SIGKILL)  # fails where it is there no more


def test_a_command_need_not_read_what_it_gets() -> None:
    letters = [Letter(str(number), "x" * 100_000) for number in range(20)]
    assert sent(Command([sys.executable, "-c", "pass"], 60), letters) == [None] * 20


def test_of_what_a_command_says_the_end_alone_is_kept() -> None:
    """It says 64 MB; without a bound, all of it would be held."""
    program = "import sys; [sys.stderr.write('x' * 2**20) for _ in range(64)]; sys.exit('\\nno such team')"
    tracemalloc.start()
    assert sent(Command([sys.executable, "-c", program], 120))[0] == "exit code 1: no such team"
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**22


def test_what_a_command_says_is_shown_on_one_short_line_without_commands_to_a_terminal() -> None:
    program = r"import sys; sys.exit('a\x1b[2J\tb\u202e' + 'x' * 1000)"
    first, _ = sent(Command([sys.executable, "-X", "utf8", "-c", program], 60))
    begin = r"exit code 1: a\x1b[2J b\u202e"
    assert first == begin + "x" * (299 - len(begin)) + "…"


def test_a_command_that_is_not_there_is_a_failure_that_names_it() -> None:
    first, _ = sent(Command(["/nowhere/tell.sh"], 5))
    assert "No such file or directory: '/nowhere/tell.sh'" in (first or "")

"""What receivers get, and what is told of those that do not take it: a webhook and a command that are really there."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

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


def test_a_command_that_is_not_there_is_a_failure_that_names_it() -> None:
    first, _ = sent(Command(["/nowhere/tell.sh"], 5))
    assert "No such file or directory: '/nowhere/tell.sh'" in (first or "")

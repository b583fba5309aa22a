"""Alerts are delivered at least once, tried again after pauses that double, and given up in the end. No Spark here."""

from __future__ import annotations

import contextlib
import random
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from itertools import pairwise

import pytest
from webhook_receiver import receiving

from patternlake.delta_tables.tables.alert_deliveries import Attempt
from patternlake.jobs.alerts.deliveries import GIVEN_UP_AFTER, LONGEST_BACK_OFF, Delivery, Waiting
from patternlake.jobs.alerts.targets import Letter, Webhook

NOON = datetime(2024, 1, 1, 12, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)


class DiedError(Exception):
    """Stands for the end of a process."""


class World:
    """A receiver that fails when it is told to, a clock that only sleeping moves, and a table that outlives a run.

    At most `several` letters are under way at the same time; None: all go together.
    """

    portion = 7
    shown = "there"

    def __init__(self, letters: int, *, several: int | None = 1) -> None:
        self.several = several
        self.now = NOON
        self.begun: list[str] = []
        self.received: list[str] = []
        self.attempts: list[Attempt] = []
        self.forgotten: list[Attempt] = []
        self.slept: list[float] = []
        self.letters = [Letter(f"{number:03}", f'{{"n": {number}}}') for number in range(letters)]
        self.failing: set[str] = set()
        self.dies_before_record = False

    def deliver(self, letters: Sequence[Letter], room: Callable[[], int]) -> Iterator[str | None]:
        waiting, under_way = deque(letters), deque[str | None]()
        while True:
            most = len(letters) if self.several is None else min(self.several, room())
            while waiting and len(under_way) < most:
                under_way.append(self.send(waiting.popleft()))
            if not under_way:
                return
            yield under_way.popleft()

    def send(self, letter: Letter) -> str | None:
        self.begun.append(letter.alert_id)
        if letter.alert_id in self.failing:
            return "HTTP 500"
        self.received.append(letter.alert_id)
        return None

    def record(self, attempts: list[Attempt]) -> None:
        if self.dies_before_record:
            self.forgotten += attempts
            raise DiedError
        self.attempts += attempts

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += timedelta(seconds=seconds)

    def waiting(self, most: int) -> Iterator[Waiting]:
        for letter in self.letters:
            own = [each for each in self.attempts if each.alert_id == letter.alert_id]
            rests = len(own) >= most and own[-1].dead_letter
            if not rests and not any(each.delivered for each in own):
                yield Waiting(letter, len(own), own[-1].tried_at if own else None)

    def delivery(self, *, back_off: timedelta = SECOND, most: int = 20) -> Delivery:
        return Delivery(
            self, back_off, most, lambda: list(self.waiting(most)), self.record, lambda: self.now, self.sleep
        )

    def attempts_of(self, alert_id: str) -> list[tuple[int, float, bool, bool]]:
        """Number, seconds since noon, delivered, dead letter."""
        return [
            (each.attempt, (each.tried_at - NOON).total_seconds(), each.delivered, each.dead_letter)
            for each in self.attempts
            if each.alert_id == alert_id
        ]


def test_everything_is_delivered_once_in_its_order() -> None:
    world = World(20)
    done = world.delivery().run(retries=2)
    assert world.received == [letter.alert_id for letter in world.letters]
    assert (done.delivered, done.failed, done.dead, world.slept) == (20, 0, 0, [])
    assert world.delivery().run(retries=2).delivered == 0


def test_what_fails_is_tried_again_after_pauses_that_double() -> None:
    world = World(3)
    world.failing = {"001"}
    done = world.delivery().run(retries=3)
    assert world.received == ["000", "002"]
    assert world.slept == [1, 2, 4]
    assert world.attempts_of("001") == [
        (1, 0, False, False),
        (2, 1, False, False),
        (3, 3, False, False),
        (4, 7, False, False),
    ]
    assert (done.delivered, done.failed, done.error) == (2, 1, "HTTP 500")


def test_a_round_follows_for_what_is_soon_due_though_nothing_failed_in_the_last_one() -> None:
    world = World(3)
    world.failing = {"002"}
    assert world.delivery().run(retries=0).failed == 1
    done = world.delivery().run(retries=1)
    assert [attempt for attempt, *_ in world.attempts_of("002")] == [1, 2]
    assert (done.failed, done.error, world.slept) == (1, "HTTP 500", [1])
    world.failing = set()
    assert (world.delivery().run(retries=1).delivered, world.slept) == (1, [1, 2])


def test_a_later_run_goes_on_where_the_pauses_are() -> None:
    world = World(1)
    world.failing = {"000"}
    world.delivery().run(retries=1)
    world.delivery().run(retries=0)
    assert len(world.attempts) == 2, "the third is due two seconds after the second"
    world.now += 2 * SECOND
    world.failing = set()
    world.delivery().run(retries=0)
    assert world.attempts_of("000") == [(1, 0, False, False), (2, 1, False, False), (3, 3, True, False)]


def test_what_has_failed_often_enough_is_a_dead_letter_and_a_greater_limit_tries_it_again() -> None:
    world = World(1)
    world.failing = {"000"}
    done = world.delivery(most=3).run(retries=9)
    assert world.attempts_of("000") == [(1, 0, False, False), (2, 1, False, False), (3, 3, False, True)]
    assert (done.failed, done.dead) == (0, 1)
    world.now += timedelta(days=1)
    world.failing = set()
    assert world.delivery(most=3).run(retries=9).delivered == 0
    assert world.delivery(most=4).run(retries=9).delivered == 1


def test_a_smaller_limit_makes_a_dead_letter_of_what_has_had_so_many_attempts_at_its_next() -> None:
    world = World(1)
    world.failing = {"000"}
    world.delivery().run(retries=3)
    world.now += timedelta(days=1)
    assert world.delivery(most=2).run(retries=9).dead == 1
    world.now += timedelta(days=1)
    assert world.delivery(most=2).run(retries=9).dead == 0
    assert [(number, dead) for number, _, _, dead in world.attempts_of("000")][-2:] == [(4, False), (5, True)]


def test_a_pause_is_an_hour_at_most_and_a_run_does_not_wait_for_long_ones() -> None:
    world = World(1)
    world.failing = {"000"}
    delivery = world.delivery(back_off=timedelta(seconds=61))
    delivery.run(retries=5)
    assert (len(world.attempts), world.slept) == (1, [])
    assert delivery.due_at(NOON, 1) == NOON + timedelta(seconds=61)
    assert delivery.due_at(NOON, 2) == NOON + timedelta(seconds=122)
    assert delivery.due_at(NOON, 1000) == NOON + LONGEST_BACK_OFF
    assert world.delivery(back_off=timedelta(days=3)).due_at(NOON, 1) == NOON + LONGEST_BACK_OFF


@pytest.mark.parametrize("several", [1, 4, 5, 32])
def test_a_target_that_is_down_is_not_asked_for_everything(several: int) -> None:
    world = World(100, several=several)
    world.failing = {letter.alert_id for letter in world.letters}
    world.delivery().run(retries=0)
    assert len(world.begun) == len(world.attempts) == GIVEN_UP_AFTER


@pytest.mark.parametrize("several", [1, 4, 5, 6])
def test_a_target_that_goes_down_is_asked_for_what_is_under_way_and_no_more(several: int) -> None:
    world = World(100, several=several)
    world.portion = 100
    world.failing = {letter.alert_id for letter in world.letters[40:]}
    world.delivery().run(retries=0)
    assert len(world.begun) == len(world.attempts) == 40 + max(several, GIVEN_UP_AFTER)


def test_a_round_that_has_ended_begins_nothing_though_what_was_under_way_is_taken() -> None:
    """Of eight that are under way, five fail, and those behind them do not."""
    world = World(100, several=8)
    world.portion = 100
    world.failing = {letter.alert_id for letter in world.letters[40:45]}
    world.delivery().run(retries=0)
    assert len(world.begun) == len(world.attempts) == 48


def test_a_target_that_takes_many_at_once_has_all_of_them_written_down() -> None:
    world = World(100, several=None)
    world.failing = {letter.alert_id for letter in world.letters}
    world.delivery().run(retries=0)
    assert len(world.attempts) == world.portion


@pytest.mark.parametrize("at_once", [1, 4, 16])
def test_a_webhook_that_is_down_gets_five_requests(at_once: int) -> None:
    letters, attempts = World(200).letters, list[Attempt]()
    with receiving() as receiver:
        receiver.answer = lambda post: 503
        target = Webhook(receiver.url, 60, at_once)
        Delivery(target, SECOND, 20, lambda: map(Waiting, letters), attempts.extend).run(retries=0)
    assert sorted(post.alert_id or "" for post in receiver.got) == [letter.alert_id for letter in letters[:5]]
    assert [each.alert_id for each in attempts] == [letter.alert_id for letter in letters[:5]]


def test_single_failures_do_not_keep_others_waiting() -> None:
    world = World(60)
    world.failing = {letter.alert_id for letter in world.letters[::3]}
    world.delivery().run(retries=0)
    assert len(world.received) == 40
    assert len(world.attempts) == 60


def test_what_was_delivered_and_not_written_down_is_delivered_again_under_its_id() -> None:
    world = World(10)
    world.dies_before_record = True
    with pytest.raises(DiedError):
        world.delivery().run(retries=0)
    assert world.received == [f"{number:03}" for number in range(world.portion)]
    world.dies_before_record = False
    world.delivery().run(retries=0)
    assert world.received == [f"{number:03}" for number in (*range(world.portion), *range(10))]


@pytest.mark.parametrize("seed", range(200))
def test_whatever_fails_and_dies_all_is_delivered_or_a_dead_letter_in_the_end(seed: int) -> None:
    rng = random.Random(seed)
    world = World(rng.randint(1, 30), several=rng.choice([1, 1, 3, 8, None]))
    broken = {letter.alert_id for letter in world.letters if rng.random() < 0.2}
    most = rng.randint(1, 6)
    for _ in range(400):
        world.failing = broken | {letter.alert_id for letter in world.letters if rng.random() < 0.3}
        if rng.random() < 0.1:
            world.failing = {letter.alert_id for letter in world.letters}
        world.dies_before_record = rng.random() < 0.1
        with contextlib.suppress(DiedError):
            world.delivery(most=most).run(retries=rng.randint(0, 2))
        world.now += timedelta(seconds=rng.choice([0, 1, 60, 7200]))
    assert not list(world.waiting(most))
    assert Counter(world.begun) == Counter(each.alert_id for each in (*world.attempts, *world.forgotten))
    for letter in world.letters:
        own = world.attempts_of(letter.alert_id)
        assert [number for number, *_ in own] == list(range(1, len(own) + 1))
        ends = [(delivered, dead) for _, _, delivered, dead in own]
        assert ends[:-1] == [(False, False)] * (len(own) - 1)
        assert ends[-1] in ((True, False), (False, True))
        assert ends[-1] != (True, False) or letter.alert_id in world.received
        assert len(own) == most or ends[-1] == (True, False)
        # Pauses double: an attempt never comes before it is due.
        for (number, tried, *_), (_, after, *_) in pairwise(own):
            assert after - tried >= min(2 ** (number - 1), 3600)

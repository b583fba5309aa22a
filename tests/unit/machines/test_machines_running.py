"""Machines over events: matches, live rows and counts, as the oracle's, however the events are cut into batches."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from drawn import SMALL
from hypothesis import example, given
from naive import machine_forecasts as chains
from naive import machines as naive
from naive.machine_cases import CASES, TRAINED, Case, Trained, stream
from naive.machine_random import random_events, random_subscription
from unit.machines.running_cases import Run


def expected_matches(subscription: naive.Subscription, events: Sequence[naive.Event]) -> set[object]:
    found = naive.matches(subscription, events)
    return {(match.key, match.completed, frozenset(match.bindings.items())) for match in found}


def expected_live(subscription: naive.Subscription, events: Sequence[naive.Event]) -> set[object]:
    return {(row.key, frozenset(row.bindings.items())) for row in naive.live(subscription, events)}


def agrees(run: Run, number: int, subscription: naive.Subscription, events: Sequence[naive.Event]) -> None:
    assert run.matches[number] == expected_matches(subscription, events)
    assert run.live(number) == expected_live(subscription, events)
    assert run.counts(number) == run.as_ours(number, chains.train(subscription, events))


REFUSED = "in the partition NULL its column joins nothing"
"""Its join variable stands once, which the language refuses."""


@pytest.mark.parametrize("case", [case for case in CASES if case.title != REFUSED], ids=lambda case: case.title)
def test_matches_and_live_rows_are_the_worked_ones(case: Case) -> None:
    run = Run([case.subscription.text])
    run.take(case.events)
    agrees(run, 0, case.subscription, case.events)


@pytest.mark.parametrize("case", TRAINED, ids=lambda case: case.title)
def test_counts_are_the_worked_ones(case: Trained) -> None:
    run = Run([case.subscription.text])
    run.take(case.events)
    agrees(run, 0, case.subscription, case.events)


def batches(rng: random.Random, events: Sequence[naive.Event]) -> list[list[naive.Event]]:
    """The events in order, cut at random places."""
    ordered = sorted(events, key=lambda event: (event.time, event.position))
    cuts = sorted(rng.choices(range(len(ordered) + 1), k=rng.randint(0, 3)))
    return [ordered[low:high] for low, high in zip([0, *cuts], [*cuts, len(ordered)], strict=True)]


@given(SMALL)
@example(random.Random(100034))
@example(random.Random(100204))
@example(random.Random(100319))
def test_random_subscriptions_are_answered_as_by_the_oracle(rng: random.Random) -> None:
    subscription, events = random_subscription(rng), random_events(rng, 9)
    run = Run([subscription.text])
    for batch in batches(rng, events):
        run.take(batch)
    agrees(run, 0, subscription, events)


@given(SMALL)
@example(random.Random(204))
@example(random.Random(847))
@example(random.Random(3433))
def test_subscriptions_that_share_states_are_answered_as_alone(rng: random.Random) -> None:
    wanted, events = rng.randint(2, 5), random_events(rng, 7)
    some: list[naive.Subscription] = []
    while len(some) < wanted:
        one = random_subscription(rng, 4)
        if not some or (one.partition, one.within, one.counted) == (some[0].partition, some[0].within, some[0].counted):
            some.append(one)
    run = Run([one.text for one in some], merge=rng.random() < 0.8)
    for batch in batches(rng, events):
        run.take(batch)
    for number, one in enumerate(some):
        agrees(run, number, one, events)


ALIKE = (
    "a ; b",
    "a ; b ; c",
    "a ; b ; c @(t(c) - t(a) > 1 SEC)",
    "a ; b ; c @(t(c) - t(a) > 2 SEC)",
    "a ; b ; c @(t(c) - t(a) >= 0 SEC)",
    "a ; b @(t(b) - t(a) < 3 SEC)",
    "a ; b @(t(b) - t(a) < 3 SEC) ; c",
    "a ; b @(t(b) - t(a) < 3 SEC) ; d",
    "a , b",
    "a , b , c",
    "a , b , c @(t(c) - t(a) > 1 SEC)",
    "a ; b , c , d @(t(d) - t(b) < 3 SEC)",
    "a ; b , c , d",
    "a ; (b | c)",
    "a ; (b | c) ; d",
    "a ; (b | c) ; d @(t(d) - t(a) < 3 SEC)",
    "a ; (b @(t(b) - t(a) < 3 SEC) | c)",
    "a ; ((b ; d) | c)",
    "a ; ((b ; c) | d)",
    "a ; (b & c)",
    "a ; (b & c) ; d",
    "a ; b ; (c & d)",
    "a ; b ; (c | d)",
    "(a ; b @(t(b) - t(a) < 3 SEC)) | c",
    "(a ; b @(t(b) - t(a) < 3 SEC)) | d",
    "o1 ; b @(t(b) - t(o1) < 3 SEC) DEFINE o1 AS TRUE",
    "(o1 ; b @(t(b) - t(o1) < 3 SEC)) | d DEFINE o1 AS TRUE",
    "a ; (o1 | b) ; c DEFINE o1 AS TRUE",
    "a ; (o1 | (b ; c)) DEFINE o1 AS TRUE",
    "a ; (b | (o2 ; c)) DEFINE o2 AS TRUE",
)
"""Subscriptions that begin alike, and ask different things of how they began."""


def answers_as_alone(texts: Sequence[str], parts: Sequence[Sequence[naive.Event]]) -> None:
    together = Run(texts)
    for part in parts:
        together.take(part)
    for number, text in enumerate(texts):
        alone = Run([text])
        for part in parts:
            alone.take(part)
        assert together.matches[number] == alone.matches[0]
        assert together.live(number) == alone.live(0)
        assert together.counts(number) == alone.counts(0), text


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(("c ; a ; b @(t(b) - t(c) > 1 SEC)", "c ; a ; b"), id="one has a lower bound pending"),
        pytest.param(("a ; (b | c)", "a ; (b | c) ; d"), id="their alternatives lead elsewhere"),
        pytest.param(("a ; (b @(t(b) - t(a) < 5 SEC) | c)", "a ; (b | c)"), id="one tells instances apart by time"),
        pytest.param(("a ; (b @(t(b) - t(a) < 5 SEC) | c)", "a ; b"), id="one is a sequence"),
        pytest.param(
            (
                "(s1 ; b @(t(b) - t(s1) < 5 SEC)) | z DEFINE s1 AS TRUE",
                "s1 ; b @(t(b) - t(s1) < 5 SEC) DEFINE s1 AS TRUE",
                "(a ; c @(t(c) - t(a) < 5 SEC)) | z",
                "a ; c @(t(c) - t(a) < 5 SEC)",
            ),
            id="what is an alternative in one is a whole sequence in another",
        ),
    ],
)
def test_subscriptions_that_begin_alike_count_as_alone(texts: Sequence[str]) -> None:
    answers_as_alone(texts, [stream("a a a b c c a b c a a b z d")])


@given(SMALL)
def test_random_subscriptions_that_begin_alike_are_answered_as_alone(rng: random.Random) -> None:
    answers_as_alone(rng.sample(ALIKE, rng.randint(2, 6)), batches(rng, random_events(rng, 9)))

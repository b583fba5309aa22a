"""Machines over events: matches, live rows and counts, as the oracle's, however the events are cut into batches."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import machine_forecasts as chains
from naive import machines as naive
from naive.machine_cases import CASES, TRAINED, Case, Trained, random_events, random_subscription
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


@given(st.integers(0, 2**32))
def test_random_subscriptions_are_answered_as_by_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    subscription, events = random_subscription(rng), random_events(rng, 9)
    run = Run([subscription.text])
    for batch in batches(rng, events):
        run.take(batch)
    agrees(run, 0, subscription, events)


@given(st.integers(0, 2**32))
def test_subscriptions_that_share_states_are_answered_as_alone(seed: int) -> None:
    rng = random.Random(seed)
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

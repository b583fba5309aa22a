"""What a quiet partition's partial matches come to as time passes, against the oracle (SPEC 6)."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from drawn import SMALL
from hypothesis import given, settings
from naive import machines as naive
from naive.machine_cases import p, seconds, stream, then
from naive.machine_random import random_case
from unit.machines.running_cases import TYPES, Run

from patternlake.udfs.machines import state
from patternlake.udfs.machines.from_config import Group
from patternlake.udfs.machines.graph.ages import NEVER
from patternlake.udfs.machines.passing_time import (
    COLUMNS,
    PARTITION_COLUMNS,
    RANK_COLUMNS,
    bounded_by_now,
    completable,
    standing,
)

SECOND = 1_000_000
Shown = tuple[tuple[Any, ...], frozenset[tuple[str, int]]]


def shown(subscription: naive.Subscription, events: list[naive.Event], now: int) -> list[Shown]:
    """The partition and the smallest bindings of each kind of instance that is left."""
    run = Run([subscription.text])
    run.take(events)
    group = Group(("s",), run.compiled, 0.0)
    found: dict[Any, tuple[Any, Shown]] = {}
    for part, held in run.held.items():
        texts = pa.array([[None if value is None else str(value) for value in part]], pa.list_(pa.string()))
        rows = state.instances(group, 0, held, texts, run.codes, frozenset())
        columns = {name: rows[name] for name in (*COLUMNS, *RANK_COLUMNS, "positions")}
        kept = completable(group, TYPES, columns, now)
        for row in rows.filter(pa.array(kept)).to_pylist():
            if not row["operands"]:
                continue
            names = [run.names[0][operand] for operand in row["operands"]]
            order = [(moment.timestamp(), place) for moment, place in zip(row["times"], row["positions"], strict=True)]
            kind = part, row["state_id"], tuple(row["joins"]), tuple(row["operands"])
            one = order, (part, frozenset(zip(names, row["positions"], strict=True)))
            found[kind] = min(found.get(kind, one), one, key=lambda each: each[0])
    return sorted((each for _, each in found.values()), key=repr)


def expected(subscription: naive.Subscription, events: list[naive.Event], now: int) -> list[Shown]:
    rows = naive.live(subscription, events, now)
    return sorted(((row.key, frozenset(row.bindings.items())) for row in rows), key=repr)


WITHIN_3 = naive.Subscription(then(p("a"), p("b")), "a ; b @(t(b) - t(a) < 3 SEC)", seconds("b - a < 3"))


@pytest.mark.parametrize(("later", "left"), [(2, 1), (3, 0), (4, 0)])
def test_a_deadline_ends_with_time_alone(later: int, left: int) -> None:
    # The a is at second 1; a b has to come before second 4. One microsecond before it still can.
    events = stream("a@1")
    assert len(shown(WITHIN_3, events, (1 + later) * SECOND)) == left
    assert len(shown(WITHIN_3, events, 4 * SECOND - 1)) == 1


@pytest.mark.parametrize("begin", [1000, -1000])
@pytest.mark.parametrize(("sign", "left", "closed"), [("<", 2 * SECOND - 1, 0), (">", NEVER, 2 * SECOND)])
def test_what_is_left_of_a_deadline_is_so_before_1970_too(begin: int, sign: str, left: int, closed: int) -> None:
    run = Run([f"a ; b @(t(b) - t(a) {sign} 3 SEC)"])
    run.take([replace(event, time=event.time + begin * SECOND) for event in stream("a@0 x@1")])
    group, ((_, held),) = Group(("s",), run.compiled, 0.0), run.held.items()
    rows = state.instances(group, 0, held, pa.array([[None]], pa.list_(pa.string())), run.codes, frozenset())
    columns = {name: rows[name] for name in dict.fromkeys((*COLUMNS, *PARTITION_COLUMNS))}
    found = standing(group, TYPES, columns, (begin + 1) * SECOND)
    begun = [bool(operands) for operands in rows["operands"].to_pylist()].index(True)
    # The bound itself still lies outside.
    assert (found["left"][begun].as_py(), found["closed"][begun].as_py()) == (left, closed and closed + 1)


def test_the_longest_window_leaves_more_time_than_there_is() -> None:
    run = Run(["a ; b WITHIN 9223372036854775 MILLISECOND"])
    run.take(stream("a@1700000000"))
    group, ((_, held),) = Group(("s",), run.compiled, 0.0), run.held.items()
    rows = state.instances(group, 0, held, pa.array([[]], pa.list_(pa.string())), run.codes, frozenset())
    columns = {name: rows[name] for name in dict.fromkeys((*COLUMNS, *PARTITION_COLUMNS))}
    left = standing(group, TYPES, columns, 1_700_000_001 * SECOND)["left"]
    begun = [bool(operands) for operands in rows["operands"].to_pylist()].index(True)
    assert left[begun].as_py() > 10_000 * 366 * 86_400 * SECOND


def test_without_a_deadline_nothing_ends() -> None:
    subscription = naive.Subscription(then(p("a"), p("b")), "a ; b")
    assert len(shown(subscription, stream("a@1"), 10**15)) == 1


def test_a_window_of_events_does_not_end_with_time() -> None:
    subscription = naive.Subscription(then(p("a"), p("b")), "a ; b WITHIN 2 EVENTS", within=2, counted=True)
    assert len(shown(subscription, stream("a@1"), 10**15)) == 1


@settings(max_examples=400, deadline=None)
@given(SMALL)
def test_what_is_left_is_what_the_oracle_can_imagine_the_end_of(rng: random.Random) -> None:
    subscription, events = random_case(rng)
    if not events:
        return
    now = max(event.time for event in events) + rng.choice([0, 1, rng.randrange(9 * SECOND)])
    assert shown(subscription, events, now) == expected(subscription, events, now), subscription.text


def test_random_cases_end_by_time_and_count_events() -> None:
    """The cases above are worth something: in some a deadline ends, and in some the window counts events as well."""
    ended = counted = 0
    for seed in range(300):
        rng = random.Random(seed)
        subscription, events = random_case(rng)
        if not events:
            continue
        last = max(event.time for event in events)
        ended += expected(subscription, events, last) != expected(subscription, events, last + 9 * SECOND)
        group = Group(("s",), Run([subscription.text]).compiled, 0.0)
        counted += subscription.counted and bounded_by_now(group)
    assert ended > 10
    assert counted > 3

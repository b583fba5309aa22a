"""The oracle of the machines engine gives the worked answers of SPEC 6 and of the paper, and agrees with itself."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, product

import pytest
from drawn import SMALL
from hypothesis import given, settings
from naive import machine_forecasts as chains
from naive import machines as naive
from naive.machine_cases import (
    CASES,
    FIG_2,
    FIG_2_TEXT,
    FORESEEN,
    TABLE_2,
    TRAINED,
    Case,
    Foreseen,
    Trained,
    p,
    rows,
    seconds,
    stream,
    then,
    words,
)
from naive.machine_random import random_case, random_events, random_subscription

from patternlake.udfs.language import durations
from patternlake.udfs.language.query import operands, tree
from patternlake.udfs.language.query.engines import check
from patternlake.udfs.language.query.parser import parse


def titled(case: Case | Trained | Foreseen) -> str:
    return case.title


@pytest.mark.parametrize("case", CASES, ids=titled)
def test_matches_are_the_worked_ones(case: Case) -> None:
    found = naive.matches(case.subscription, case.events)
    times = {event.position: (event.time, event.position) for event in case.events}
    assert rows(found) == case.matches
    for row in found:
        assert row.completed == max(row.bindings.values(), key=times.__getitem__)


@pytest.mark.parametrize("case", [case for case in CASES if case.live is not None], ids=titled)
def test_live_rows_are_the_worked_ones(case: Case) -> None:
    found = [words(row.bindings) for row in naive.live(case.subscription, case.events)]
    assert sorted(found) == sorted(case.live or ())


def test_three_events_leave_instances_in_n3_n2_and_n1() -> None:
    found = naive.live(TABLE_2.subscription, TABLE_2.events)
    states = {words(row.bindings): chains.name_of(TABLE_2.subscription.root, row.bindings) for row in found}
    assert states == {"f1=1 f2=2 f3=3": "N3", "f1=2 f2=3": "N2", "f1=3": "N1"}


def test_the_instance_in_n3_is_the_one_that_matches() -> None:
    subscription = naive.Subscription(FIG_2, FIG_2_TEXT, seconds("f3 - f1 < 10"))
    assert rows(naive.matches(subscription, stream("F F F S"))) == ("f1=1 f2=2 f3=3 S=4",)
    assert naive.matches(subscription, stream("F@1 F@2 F@11 S@12")) == []


def test_join_values_are_told_apart() -> None:
    case = next(case for case in CASES if case.title == "joins agree")
    found = naive.live(case.subscription, case.events)
    assert [(set(row.joins), row.bindings) for row in found] == [({("v", 1)}, {"p": 1}), ({("v", 2)}, {"p": 2})]


@pytest.mark.parametrize("case", TRAINED, ids=titled)
def test_moves_are_counted_as_worked(case: Trained) -> None:
    found: Counter[tuple[str, str]] = Counter()
    for cell, after in chains.train(case.subscription, case.events).items():
        for target, count in after.items():
            found[cell.state, target.state] += count
    assert found == case.counts


def test_a_deadline_is_told_by_what_is_left_of_it() -> None:
    subscription = naive.Subscription(then(p("a"), p("b")), "a ; b @(t(b) - t(a) < 3 SEC)", seconds("b - a < 3"))
    counts = chains.train(subscription, stream("a x x x"))
    second = 1_000_000
    # At each x so much is left as the a has still time; at the last one, none.
    two, one = (chains.Cell("N1", chains.Left(left * second - 1)) for left in (2, 1))
    assert {cell: dict(moves) for cell, moves in counts.items() if cell.state == "N1"} == {
        two: {two: 1}, one: {one: 1}, chains.Cell("N1", chains.Left(0)): {chains.DEAD: 1}
    }  # fmt: skip


@pytest.mark.parametrize("case", FORESEEN, ids=titled)
def test_forecasts_are_the_worked_ones(case: Foreseen) -> None:
    subscription = case.trained.subscription
    final = chains.name_of(subscription.root, subscription.primitives)
    chain = chains.Chain(chains.train(subscription, case.trained.events), final)
    start = chains.Cell(chains.name_of(subscription.root, case.bound.split()))
    found = [chain.within(start, n) for n in range(1, len(case.within) + 1)]
    assert found == pytest.approx(list(case.within), abs=1e-12)
    exactly = [chain.exactly(start, n) for n in range(1, len(case.within) + 1)]
    assert exactly == pytest.approx([b - a for a, b in pairwise([0, *case.within])], abs=1e-12)


def read(node: tree.Node, names: dict[int, str]) -> object:
    """The shape of a parsed pattern: sequences inside sequences are one."""
    if isinstance(node, tree.Event):
        return names[id(node)]
    parts = [read(child, names) for child in node.children()]
    if isinstance(node, (tree.Conjunction, tree.Disjunction)):
        return ("&" if isinstance(node, tree.Conjunction) else "|", *parts)
    return joined(parts, ["," if isinstance(node, tree.Contiguous) else ";"] * (len(parts) - 1))


def shape(node: naive.Node) -> object:
    """The same of the oracle's tree."""
    if isinstance(node, naive.Primitive):
        return node.name
    parts = [shape(item) for item in node.items]
    if isinstance(node, naive.Seq):
        return joined(parts, ["," if direct else ";" for direct in node.direct])
    return ("&" if isinstance(node, naive.And) else "|", *parts)


def joined(parts: list[object], signs: list[str]) -> list[object]:
    found: list[object] = []
    for sign, part in zip(["", *signs], parts, strict=True):
        found += [sign] * bool(sign) + (part if isinstance(part, list) else [part])
    return found


def conditions(query: tree.Query) -> Iterator[naive.Condition | naive.Either]:
    """Time conditions that name operands as ``t(x)`` or, in the paper's way, as ``t3``."""
    named = operands.number(query)

    def comparison(text: str) -> naive.Condition:
        sides = re.fullmatch(r"t\(?(\w+)\)?\s*-\s*t\(?(\w+)\)?\s*(<=|>=|<>|<|>|=)\s*(.+)", text.strip())
        assert sides is not None, text
        names = [word if word in named.names else named[int(word) - 1].name for word in sides.groups()[:2]]
        amount = durations.read(sides[4])
        assert amount is not None
        return naive.Condition(names[0], names[1], sides[3], amount)

    for node in query.pattern.walk():
        for condition in node.conditions:
            parts = tuple(tuple(map(comparison, some.split(" AND "))) for some in condition.text.split(" OR "))
            yield parts[0][0] if len(parts) == 1 else naive.Either(parts)


def check_text(subscription: naive.Subscription) -> None:
    query = parse(subscription.text)
    check(query, "machines")
    named = operands.number(query)
    assert list(named.names) == list(subscription.primitives)
    assert read(query.pattern, {id(operand.event): operand.name for operand in named}) == shape(subscription.root)
    assert set(conditions(query)) == set(subscription.conditions)
    assert query.partition == subscription.partition
    within = (query.within.amount, query.within.counted) if query.within else (None, False)
    assert within == (subscription.within, subscription.counted)


@pytest.mark.parametrize("case", [*CASES, *TRAINED], ids=titled)
def test_texts_say_what_the_trees_say(case: Case | Trained) -> None:
    check_text(case.subscription)


@settings(max_examples=200)
@given(SMALL)
def test_random_texts_say_what_the_trees_say(rng: random.Random) -> None:
    check_text(random_subscription(rng))


@settings(max_examples=100)
@given(SMALL)
def test_matches_are_all_orders_of_all_events_that_hold(rng: random.Random) -> None:
    subscription, events = random_subscription(rng, 3), random_events(rng, 7)
    for taken in naive.partitions(subscription, events).values():
        partition = naive.Partition(subscription, taken)
        tried = every_assignment(partition)
        wanted = [bound for bound in tried if naive.in_order(subscription.root, bound) and partition.holds(bound)]
        assert sorted(map(words, partition.full)) == sorted(map(words, wanted))


def every_assignment(partition: naive.Partition) -> list[naive.Assignment]:
    """All events for all operands that a match may have bound."""
    found = []
    for chosen in selections(partition.asked.root):
        taken = [[r for r, e in enumerate(partition.events) if partition.takes(one, e)] for one in chosen]
        found += [dict(zip([one.name for one in chosen], ranks, strict=True)) for ranks in product(*taken)]
    return found


def selections(node: naive.Node) -> list[list[naive.Primitive]]:
    """The operands of a match, one alternative of each ``|``."""
    if isinstance(node, naive.Primitive):
        return [[node]]
    parts = [selections(item) for item in node.items]
    if isinstance(node, naive.Or):
        return [chosen for part in parts for chosen in part]
    return [[one for part in chosen for one in part] for chosen in product(*parts)]


@settings(max_examples=30)
@given(SMALL)
def test_live_assignments_are_those_that_some_tried_continuation_completes(rng: random.Random) -> None:
    """Times are tried one by one, in units so small that nothing lies between them."""
    subscription = random_subscription(rng, 3, (1, "MICROSECOND"))
    for taken in naive.partitions(subscription, random_events(rng, 6, 1)).values():
        partition = naive.Partition(subscription, taken)
        live = [words(bound) for bound in partition.live if missing(subscription, bound) <= 2]
        wanted = set()
        for more in continuations(subscription, partition.events):
            longer = naive.Partition(subscription, [*partition.events, *more])
            for bound in longer.full:
                old = {name: rank for name, rank in bound.items() if rank < len(partition.events)}
                if len(old) < len(bound):
                    wanted.add(words(old))
        assert set(live) == {one for one in wanted if one or missing(subscription, {}) <= 2}


def missing(subscription: naive.Subscription, bound: naive.Assignment) -> int:
    return chains.missing(subscription.root, frozenset(bound))


def continuations(subscription: naive.Subscription, events: list[naive.Event]) -> Iterator[list[naive.Event]]:
    """One or two events of the partition that may come next."""
    joins = any(primitive.joins for primitive in subscription.primitives.values())
    pairs = [(x, y) for x in (1, 2) for y in (1, 2)] if joins else [(1, 1)]
    seen = sorted({name for name in "abcd" for one in subscription.primitives.values() if takes(one, name)})
    last, key = events[-1].time, events[-1].key

    def event(at: int, time: int, name: str, pair: tuple[int, int]) -> naive.Event:
        return naive.Event(100 + at, time, name, key, {"x": pair[0], "y": pair[1], "n": 3})

    ahead = 9
    for name, pair, time in product(seen, pairs, range(last, last + ahead)):
        first = event(0, time, name, pair)
        yield [first]
        for other, pair2, time2 in product(seen, pairs, range(time, last + ahead)):
            yield [first, event(1, time2, other, pair2)]


def takes(primitive: naive.Primitive, name: str) -> bool:
    return primitive.takes(naive.Event(0, 0, name, None, {"n": 3}))


@settings(max_examples=100)
@given(SMALL)
def test_whatever_matches_was_live_before_its_last_event(rng: random.Random) -> None:
    subscription, events = random_case(rng)
    for taken in naive.partitions(subscription, events).values():
        before = naive.Partition(subscription, taken[:-1])
        for bound in naive.Partition(subscription, taken).full:
            if max(bound.values()) == len(taken) - 1:
                assert {name: rank for name, rank in bound.items() if rank < len(taken) - 1} in before.live


@settings(max_examples=60)
@given(SMALL)
def test_forecasts_are_probabilities_that_grow(rng: random.Random) -> None:
    subscription, events = random_case(rng)
    counts = chains.train(subscription, events)
    chain = chains.Chain(counts, chains.name_of(subscription.root, subscription.primitives))
    for cell in counts:
        found = [chain.within(cell, n) for n in range(4)]
        assert found[0] == 0
        assert all(-1e-12 <= one <= other + 1e-12 for one, other in pairwise(found))
        assert found[-1] <= 1 + 1e-12


@settings(max_examples=60)
@given(SMALL)
def test_n0_of_the_whole_moves_at_each_event(rng: random.Random) -> None:
    subscription, events = random_case(rng)
    assert chains.train(subscription, events)[chains.Cell("N0")].total() == len(events)

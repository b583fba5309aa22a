"""A partial match lives as long as some continuation can complete it, all conditions judged jointly."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from drawn import RANDOMS
from hypothesis import given
from naive import machines as naive
from naive.machine_cases import ATTRIBUTES
from naive.machine_random import random_events, random_subscription

from patternlake.udfs.errors import UnsupportedOperatorError
from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.extents import MOST_MICROS
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.machines.graph import liveness
from patternlake.udfs.machines.graph.composite_states import START, CompositeState, moves, pending
from patternlake.udfs.machines.graph.liveness import FIRST, NOW, CompletionPath, completion_paths
from patternlake.udfs.machines.query import Subscription, compile_subscription

SECOND = 1_000_000


def compiled(text: str) -> Subscription:
    return compile_subscription(parse(text), Scope(attributes=ATTRIBUTES))


def reached(subscription: Subscription, ranks: dict[int, int]) -> CompositeState | None:
    """The composite state at which operands are bound in the order of their events; None where that cannot be."""
    composite_state, last = START, -1
    for operand, rank in sorted(ranks.items(), key=lambda pair: pair[1]):
        onward = [move for move in moves(subscription.master, composite_state) if move.primitive == operand]
        if not onward or (onward[0].direct and rank > last + 1):
            return None
        composite_state, last = onward[0].target, rank
    return composite_state


def lives(subscription: Subscription, partition: naive.Partition, assignment: naive.Assignment) -> bool:
    numbers = {primitive.name: number for number, primitive in enumerate(subscription.primitives)}
    ranks = {numbers[name]: rank for name, rank in assignment.items()}
    composite_state = reached(subscription, ranks)
    last, first = len(partition.events) - 1, min(ranks.values())
    if composite_state is None or (pending(subscription.master, composite_state) and max(ranks.values()) < last):
        return False
    times = {number: partition.events[rank].time for number, rank in ranks.items()}
    times |= {NOW: partition.events[last].time, FIRST: partition.events[first].time}
    values = dict(partition.joined(assignment))

    def possible(completion_path: CompletionPath) -> bool:
        within = subscription.within
        near = within is None or not within.counted or last + completion_path.missing - first < within.amount
        for variables, columns in completion_path.joined:
            facts = {values[variable] for variable in variables if variable in values}
            facts |= {partition.events[0].column(column) for column in columns}
            near = near and len(facts) <= 1 and None not in facts
        return near and all(
            times[one] - times[other] <= most
            for one, other, most in completion_path.bounds
            if one in times and other in times
        )

    return any(
        possible(completion_path)
        for completion_path in completion_paths(subscription, composite_state, frozenset(ranks))
    )


@given(RANDOMS)
def test_random_matches_live_as_long_as_the_oracle_can_imagine_their_end(rng: random.Random) -> None:
    case = random_subscription(rng)
    asked = compiled(case.text)
    for taken in naive.partitions(case, random_events(rng, 8)).values():
        partition = naive.Partition(case, taken)
        for assignment in partition.fitting:
            if assignment and not naive.done(case.root, assignment):
                assert lives(asked, partition, assignment) == partition.completable(assignment), assignment


def seen(text: str, bound: set[int], composite_state: CompositeState) -> list[tuple[tuple[int, int, int], ...]]:
    return [
        completion_path.bounds
        for completion_path in completion_paths(compiled(text), composite_state, frozenset(bound))
    ]


def test_a_condition_on_a_missing_operand_bounds_now() -> None:
    assert seen("a ; b @(t(b) - t(a) < 5 SEC)", {0}, CompositeState(1)) == [((NOW, 0, 5 * SECOND - 1),)]


def test_conditions_are_judged_jointly() -> None:
    # c comes less than 3 s after a and more than 5 s after b, which comes after a: no times do that.
    (bounds,) = seen("a ; b ; c @(t(c) - t(a) < 3 SEC) @(t(c) - t(b) > 5 SEC)", {0}, CompositeState(1))
    assert (NOW, 0, -2 * SECOND - 2) in bounds
    # A b later than 1 s after a is of no use.
    text = "a ; b ; c @(t(c) - t(a) <= 3 SEC) @(t(c) - t(b) >= 2 SEC)"
    assert (1, 0, SECOND) in seen(text, {0, 1}, CompositeState(2))[0]


def test_each_order_of_siblings_is_a_completion_path() -> None:
    assert seen("a & b @(t(a) - t(b) < 5 SEC)", {0}, CompositeState(0, -1, (CompositeState(1), CompositeState(0)))) == [
        ((NOW, 0, 0),),
        ((NOW, 0, 5 * SECOND - 1),),
    ]


@pytest.mark.parametrize(("within", "bounds"), [("5 SEC", ((NOW, FIRST, 5 * SECOND - 1),)), ("5 EVENTS", ())])
def test_a_window_of_time_bounds_now_and_one_of_events_counts_what_is_missing(
    within: str, bounds: tuple[tuple[int, int, int], ...]
) -> None:
    made = completion_paths(compiled(f"a ; b ; c WITHIN {within}"), CompositeState(1), frozenset({0}))
    assert [(completion_path.bounds, completion_path.missing) for completion_path in made] == [(bounds, 2)]


def test_bounds_further_apart_than_any_two_moments_stay_whole_numbers_of_64_bits() -> None:
    # Six million weeks are 115,000 years. Within them anything comes, and nothing comes after them.
    at_most = " @(t(e) - t(d) < 6000000 WEEK) @(t(d) - t(c) < 6000000 WEEK) @(t(c) - t(y) < 6000000 WEEK)"
    assert seen("y ; x ; c ; d ; e @(t(e) - t(x) > 5 SEC)" + at_most, {0, 1}, CompositeState(2)) == [()]
    at_least = " @(t(b) - t(a) > 6000000 WEEK) @(t(c) - t(b) > 6000000 WEEK) @(t(d) - t(c) > 6000000 WEEK)"
    never = ((NOW, 0, -MOST_MICROS), (0, 0, -MOST_MICROS))
    assert seen("a ; b ; c ; d @(t(d) - t(a) < 5 SEC)" + at_least, {0}, CompositeState(1)) == [never]


def alternatives(count: int, compared: int) -> str:
    pattern = " ; ".join(f"(a{each} | b{each})" for each in range(count))
    return pattern + "".join(f" @(t(a{each}) - t(a{each - 1}) < 5 SEC)" for each in range(1, compared))


def test_only_alternatives_that_conditions_name_make_completion_paths() -> None:
    bound, at = {0, 1}, CompositeState(1)
    assert seen(alternatives(31, compared=0), bound, at) == [()]
    assert seen(alternatives(31, compared=3), bound, at) == [((NOW, 0, 5 * SECOND - 1),), ()]


def test_the_shortest_alternative_tells_how_many_events_are_missing() -> None:
    asked = compiled("a ; ((b ; c) | d | (e ; f)) WITHIN 5 EVENTS")
    (made,) = completion_paths(asked, CompositeState(1), frozenset({0}))
    assert made.missing == 1


def test_siblings_that_are_all_compared_are_tried_in_each_order_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = " ".join(f"@(t({one}) - t({other}) < 5 SEC)" for one, other in combinations("bcde", 2))
    monkeypatch.setattr(liveness, "MOST_COMPLETION_PATHS", 24)
    assert seen(f"a ; (b & c & d & e) {pairs}", {0}, CompositeState(1)) == [()]


def test_too_many_ways_to_end_a_match_are_refused() -> None:
    with pytest.raises(UnsupportedOperatorError, match="more than 4,096 ways to end a match; compare fewer"):
        seen(alternatives(15, compared=15), {0, 1}, CompositeState(1))

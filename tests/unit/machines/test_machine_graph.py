"""The states of subscriptions: what can follow what, and which states of several are one."""

from __future__ import annotations

import random

import pytest
from drawn import RANDOMS
from hypothesis import given
from naive import machines as naive
from naive.machine_cases import ATTRIBUTES
from naive.machine_random import random_subscription

from patternlake.udfs.errors import UnsupportedOperatorError
from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.machines.graph.composite_states import START, CompositeState, complete, moves, state_name
from patternlake.udfs.machines.graph.merged import Graph, graph_of
from patternlake.udfs.machines.query import Subscription, compile_subscription


def compiled(text: str) -> Subscription:
    return compile_subscription(parse(text), Scope(attributes=ATTRIBUTES))


def graph(*texts: str, merge: bool = True) -> Graph:
    return graph_of([compiled(text) for text in texts], merge=merge)


def orders(subscription: Subscription, composite_state: CompositeState = START) -> set[tuple[str, ...]]:
    """All orders in which operands are bound on the way to the end."""
    if complete(subscription.master, composite_state):
        return {()}
    return {
        (subscription.primitives[move.primitive].name, *rest)
        for move in moves(subscription.master, composite_state)
        for rest in orders(subscription, move.target)
    }


@given(RANDOMS)
def test_operands_are_bound_in_the_orders_that_the_oracle_allows(rng: random.Random) -> None:
    case = random_subscription(rng)
    ranked = [(order, {name: rank for rank, name in enumerate(order)}) for order in naive.orders(case.root, {})]
    assert orders(compiled(case.text)) == {order for order, ranks in ranked if naive.in_order(case.root, ranks)}


def test_a_sequence_has_a_state_for_each_operand_and_one_more() -> None:
    made = graph("F AS f1, F AS f2, F AS f3 @(t3 - t1 < 10 SEC), S")
    assert [(link.source, link.target) for link in made.links] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert made.waits == [True, False, False, False, False]
    # The third F is compared with the first, so the states between remember its time.
    assert made.asked == [frozenset(), {0}, {0}, frozenset(), frozenset()]


def test_boundaries_of_terms_wait() -> None:
    made = graph("f1, f2, s1; f3, s2; f4, s3".replace("f", "F AS f").replace("s", "S AS s"))
    assert [state for state, waits in enumerate(made.waits) if waits] == [0, 3, 5]


def test_equal_prefixes_share_their_states() -> None:
    texts = ("a ; b ; c", "a ; b ; d", "a")
    merged, apart = graph(*texts), graph(*texts, merge=False)
    assert (len(apart.waits), len(merged.waits)) == (8, 6)
    assert len({tuple(states.values())[:3] for states in merged.states[:2]}) == 1
    # The a that is a whole subscription does not wait.
    assert merged.final[merged.states[2][CompositeState(1)]] == [2]
    assert merged.states[2][CompositeState(1)] != merged.states[0][CompositeState(1)]


@pytest.mark.parametrize("other", ["a , b", "a ; b @(t(b) - t(a) < 5 SEC)", "a ; b DEFINE b AS x > 1"])
def test_states_that_are_reached_otherwise_are_not_one(other: str) -> None:
    made = graph("a ; b", other)
    assert made.states[0][CompositeState(2)] != made.states[1][CompositeState(2)]


@pytest.mark.parametrize(
    "texts",
    [
        ("a ; b @(t(b) - t(a) < 5 SEC) ; c", "a ; b @(t(b) - t(a) < 5 SEC) ; d"),
        ("a ; b ; c @(t(c) - t(a) > 5 SEC)", "a ; b ; d @(t(d) - t(a) > 5 SEC)"),
        ("a ; b ; (c | d)", "a ; b ; (d | c)"),
    ],
)
def test_states_are_one_where_the_same_is_asked_of_their_instances(texts: tuple[str, str]) -> None:
    one, other = graph(*texts).states
    assert one[CompositeState(1)] == other[CompositeState(1)]


@pytest.mark.parametrize(
    "texts",
    [
        ("a ; b ; c", "a ; b ; c @(t(c) - t(a) > 5 SEC)"),
        ("a ; b ; c @(t(c) - t(a) > 4 SEC)", "a ; b ; c @(t(c) - t(a) > 5 SEC)"),
        ("a ; (b @(t(b) - t(a) < 5 SEC) | c)", "a ; (b | c)"),
        ("a ; b", "a ; (b | c)"),
        ("a ; (b | c)", "a ; (b | c) ; d"),
    ],
)
def test_states_are_not_one_where_their_instances_count_otherwise(texts: tuple[str, str]) -> None:
    made = graph(*texts)
    one, other = (states[CompositeState(1)] for states in made.states)
    assert one != other
    assert made.ids[one] != made.ids[other]


def test_states_are_named_with_those_of_child_machines() -> None:
    made = compiled("s1 ; ((s2 ; s3) & (s4 , s5)) ; s6 ; (s7 | (s8 ; s9))")
    names = {state_name(made.master, composite_state) for composite_state in graph_of([made]).states[0]}
    inner = {"N1(N1, N0)", "N1(N0, N1)", "N1(N2, N0)", "N1(N1, N1)", "N1(N0, N2)", "N1(N2, N1)", "N1(N1, N2)"}
    assert names == {"N0", "N1", *inner, "N2", "N3", "N3(2: N1)", "N4"}


def test_too_many_states_are_refused_at_the_operator() -> None:
    with pytest.raises(UnsupportedOperatorError, match=r"column 4: '&' gives this subscription more than 4,096 states"):
        graph(" & ".join(f"a{number}" for number in range(13)))

"""Plans: their names and texts, their costs, and the choice among them."""

from __future__ import annotations

import math
from itertools import product

import pytest
from naive.kleene_cases import TYPES
from naive.kleene_kernels import compiled

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.kleene.plans.costs import Statistics
from patternlake.udfs.kleene.plans.planning import choose_plan, explain_choice
from patternlake.udfs.kleene.plans.trees import Join, Plan, forced_plan, operands_in, plan_text, restricted
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.language.query.names import quote

FOUR = "G ; M ; D ; I WITHIN 5000 EVENTS"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("left", "(((G M) D) I)"),
        ("right", "(G (M (D I)))"),
        ("bushy", "((G M) (D I))"),
        ("inner", "(G ((M D) I))"),
        ("((G; M); (D; I))", "((G M) (D I))"),
        (" LEFT ", "(((G M) D) I)"),
    ],
)
def test_plans_by_name_and_by_tree(name: str, text: str) -> None:
    pattern = compiled(FOUR, TYPES)
    assert plan_text(pattern, forced_plan(pattern, name)) == text


@pytest.mark.parametrize(
    "names", [("it's", "b"), ("'", "''"), ("(", ")"), ("a b", "c (d)"), ("a ; b", "c, d"), ("`", "\n"), ("left", "a#2")]
)
def test_a_plan_is_read_as_it_is_written_whatever_operands_are_called(names: tuple[str, str]) -> None:
    pattern = compiled(" ; ".join(map(quote, names)), TYPES)
    for plan in (Join(0, 1), Join(1, 0)):
        assert forced_plan(pattern, plan_text(pattern, plan)) == plan


def test_a_plan_without_some_operands_keeps_the_rest() -> None:
    plan = Join(Join(0, 1), Join(2, 3))
    assert restricted(plan, frozenset({1, 2, 3})) == Join(1, Join(2, 3))
    assert restricted(plan, frozenset({3})) == 3
    assert restricted(plan, frozenset()) is None


def trees(operands: tuple[int, ...]) -> list[Plan]:
    if len(operands) == 1:
        return [operands[0]]
    return [
        Join(left, right)
        for cut in range(1, len(operands))
        for left, right in product(trees(operands[:cut]), trees(operands[cut:]))
    ]


@pytest.mark.parametrize(
    "text",
    [
        FOUR,
        "G ; M+ ; D ; I WITHIN 500 EVENTS",
        "G+ ; M ; D ; I WHERE M.x > D.x AND M.x = I.x WITHIN 300 EVENTS",
        "(G | M) ; D & I",
    ],
)
@pytest.mark.parametrize("counts", [(1661, 1350, 1325, 1268), (5, 100000, 20, 3000), (90000, 10, 80000, 10)])
def test_the_choice_is_the_cheapest_of_all_trees(text: str, counts: tuple[int, ...]) -> None:
    pattern = compiled(text, TYPES)
    statistics = Statistics(dict(zip("GMDI", counts, strict=True)), events=1e6)
    choice = choose_plan(pattern, statistics)
    costs = [choose_plan(pattern, statistics, tree).cost for tree in trees(pattern.positive)]
    assert choice.cost == pytest.approx(min(costs))
    assert all(choice.cost <= other.cost * (1 + 1e-9) for other in choice.alternatives)


def test_rare_classes_are_joined_first() -> None:
    pattern = compiled("A ; B ; C WITHIN 1000 EVENTS", TYPES)

    def text(a: float, b: float, c: float) -> str:
        return plan_text(pattern, choose_plan(pattern, Statistics({"A": a, "B": b, "C": c}, events=1e6)).plan)

    assert text(100, 100, 100000) == "((A B) C)"
    assert text(100000, 100, 100) == "(A (B C))"


def test_a_selective_condition_is_joined_first() -> None:
    pattern = compiled("A ; B ; C WHERE B.x < C.x WITHIN 1000 EVENTS", TYPES)
    even = {"A": 1e4, "B": 1e4, "C": 1e4}
    selective = Statistics(even, events=1e6, selectivities={"B.x < C.x": 0.001})
    assert plan_text(pattern, choose_plan(pattern, selective).plan) == "(A (B C))"


def test_a_repeated_operand_goes_left_where_both_are_possible() -> None:
    pattern = compiled("A ; B+ ; C WITHIN 100 EVENTS", TYPES)
    choice = choose_plan(pattern, Statistics({"A": 1e4, "B": 1e4, "C": 1e4}, events=1e6))
    assert plan_text(pattern, choice.plan) == "(A (B C))"


def test_a_forced_plan_is_shown_beside_the_cheapest() -> None:
    pattern = compiled(FOUR, TYPES)
    statistics = Statistics({"G": 10, "M": 10, "D": 1e5, "I": 1e5}, events=1e6)
    forced = choose_plan(pattern, statistics, forced_plan(pattern, "right"))
    assert (forced.name, plan_text(pattern, forced.plan)) == ("forced", "(G (M (D I)))")
    best = choose_plan(pattern, statistics)
    assert (forced.alternatives[0].name, forced.alternatives[0].plan) == ("cheapest", best.plan)
    assert forced.cost > best.cost


def test_a_window_of_time_holds_its_share_of_the_stream() -> None:
    hour = 3_600_000_000

    def rows(duration: int) -> float:
        pattern = compiled("A ; B WITHIN 1 HOUR", TYPES)
        return choose_plan(pattern, Statistics({"A": 1e3, "B": 1e3}, events=1e5, duration=duration)).rows

    assert rows(100 * hour) == pytest.approx(rows(50 * hour) / 2)


def test_estimates_of_a_sequence_follow_the_formula() -> None:
    pattern = compiled("A ; B ; C WITHIN 100 EVENTS", TYPES)
    choice = choose_plan(pattern, Statistics({"A": 1e3, "B": 2e3, "C": 3e3}, events=1e6))
    assert choice.rows == pytest.approx(1e6 * 1e-3 * 2e-3 * 3e-3 * 100**2 / 2)


def test_explanations_show_tree_predicates_and_alternatives() -> None:
    text = "A ; B+ b[] ; !X ; C[2] WHERE b.x > A.x AND b.y < 3 AND X.x > A.x WITHIN 100 EVENTS"
    pattern = compiled(text, TYPES)
    statistics = Statistics({"A": 1e3, "B": 1e3, "C": 1e3, "X": 5}, events=1e5)
    choice = choose_plan(pattern, statistics, forced_plan(pattern, "left"))
    lines = [line.text for line in explain_choice(pattern, choice)]
    assert lines[:8] == [
        "plan ((A b) C) (forced)",
        "  join ((A b) C)",
        "    join (A b) where b.x > A.x",
        "      A",
        "      b+ takes B where b.y < 3",
        "    C[2]",
        "  then !X: none in its gap with X.x > A.x",
        "  last C[2]: its combinations",
    ]
    assert lines[8].startswith("alternative (A (b C)) (")
    nodes = {operands_in(node.plan): node for node in choice.nodes}
    assert nodes[0,].rows == 1e3
    assert nodes[1,].rows == pytest.approx(1e3 / 3)
    costs = [line.cost or 0.0 for line in explain_choice(pattern, choice)[:3]]
    assert costs[0] == costs[1]
    assert costs[1] > costs[2] > 0


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_statistics_that_cannot_be_are_refused(value: float) -> None:
    with pytest.raises(ArgumentError, match="'A' is"):
        Statistics({"A": value})


def sixty_four_steps(events: float, rare: int) -> tuple[KleenePattern, Statistics]:
    """Steps that are equally frequent, but for one of which there are few events."""
    names = [f"n{number}" for number in range(64)]
    counts = {name: 2.0 if number == rare else events / 64 for number, name in enumerate(names)}
    return compiled(" ; ".join(names), TYPES), Statistics(counts, events=events)


def test_sixty_four_steps_are_planned_from_the_rarest_on() -> None:
    pattern, statistics = sixty_four_steps(1e6, rare=0)
    choice = choose_plan(pattern, statistics)
    assert choice.plan == forced_plan(pattern, "left")
    expected = 64 * math.log(1e6) - math.lgamma(64) + 63 * math.log(1 / 64) + math.log(2 / 1e6)
    assert choice.rows == pytest.approx(math.exp(expected))


def test_more_rows_than_a_double_holds_are_planned_alike() -> None:
    """10^16 events of 64 steps have some 10^820 partial matches."""
    for rare, shape in ((0, "left"), (63, "right")):
        pattern, statistics = sixty_four_steps(1e16, rare)
        choice = choose_plan(pattern, statistics)
        assert choice.plan == forced_plan(pattern, shape)
        assert (choice.rows, choice.cost) == (math.inf, math.inf)
        lines = explain_choice(pattern, choice)
        assert all(line.rows is not None and line.rows > 0 for line in lines)
        assert next(line.rows for line in lines if line.text.strip() == f"n{rare}") == 2

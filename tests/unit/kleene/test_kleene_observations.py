"""What runs observe of conditions: by which name it is kept, how it adds up, and what plans make of it."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.kleene import Event, matches
from naive.kleene_cases import TYPES as WORKED_TYPES
from naive.kleene_kernels import compiled, events_of
from naive.kleene_random import TYPES, Pattern, random_events
from naive.observed_shares import DAY, Run, share
from unit.kleene.test_kleene_task import columns, counts, publication

from patternlake.udfs.errors import PatternError
from patternlake.udfs.kleene import request
from patternlake.udfs.kleene.kernels import course, ranges
from patternlake.udfs.kleene.kernels.matching import match_events, observed
from patternlake.udfs.kleene.plans import replanning as plans
from patternlake.udfs.kleene.plans.costs import Statistics
from patternlake.udfs.kleene.plans.judged_conditions import judged_conditions, observed_in, shares_of
from patternlake.udfs.kleene.plans.observations import LEAST_JUDGED, JudgedCondition, Observation, merge_observations
from patternlake.udfs.kleene.plans.planning import choose_plan
from patternlake.udfs.kleene.plans.replanning import Replanning
from patternlake.udfs.kleene.plans.trees import plan_text
from patternlake.udfs.kleene.request import KleeneRequest
from patternlake.udfs.kleene.task import match_partitions
from patternlake.udfs.kleene.work import Work

WIDE = {"x": "double", "s": "string"}


def found_in(text: str, events: list[Event]) -> dict[JudgedCondition, tuple[int, int]]:
    pattern = compiled(text, WORKED_TYPES)
    return observed_in(pattern, observed(pattern, events_of([events], WORKED_TYPES)))


def numbered(text: str) -> list[Event]:
    """``a3 b1``: an event each, `x` being its number."""
    return [Event(n, n * 1000, word[0], {"x": float(word[1:])}) for n, word in enumerate(text.split(), start=1)]


@pytest.mark.parametrize(
    ("text", "predicate", "given_"),
    [
        ("A ; B WHERE A.x < B.x", "A.x < B.x", ""),
        # What a query calls its operands makes no difference.
        ("A AS p ; B AS q WHERE p.x < q.x", "A.x < B.x", ""),
        ("A AS p ; A AS q WHERE p.x < q.x", "A.x < `A 2`.x", ""),
        ("A ; B WHERE A.x > 5", "A.x > 5", ""),
        ("A ; B WHERE A.x > 5 AND A.s = 'u'", "A.x > 5 AND A.s = 'u'", ""),
        ("A AS p ; B WHERE p.x < B.x AND p.x > 5", "A.x < B.x", "A.x > 5"),
        ("big ; B DEFINE big AS x > 5 WHERE big.s = B.s", "big.s = B.s", "big AS x > 5"),
        ("big ; B DEFINE big AS x > 5 WHERE big.s = 'u'", "big.s = 'u'", "big AS x > 5"),
        ("big ; B DEFINE big AS x > 5", "x > 5", ""),
        ("B ; A AS p WHERE [s]", "[s]", "A; B"),
        ("A AS p ; A AS q ; B WHERE [s] AND B.x > 5", "[s]", "A; B AND B.x > 5"),
    ],
)
def test_a_condition_is_known_by_what_it_says_of_events(text: str, predicate: str, given_: str) -> None:
    assert JudgedCondition(predicate, given_) in judged_conditions(compiled(text, WIDE)).values()


def test_other_values_of_a_parameter_make_another_condition() -> None:
    low, high = (
        set(judged_conditions(compiled("A ; B WHERE A.x > least", WIDE, parameters={"least": least})).values())
        for least in ("5", "50")
    )
    assert low == {JudgedCondition("A.x > '5'", "")}
    assert low.isdisjoint(high)


def test_what_no_plan_depends_on_is_not_kept() -> None:
    text = "A ; !X ; B+ ; C WHERE X.x > A.x AND B[i].x > B[i-1].x AND COUNT(B.x) > 2"
    assert judged_conditions(compiled(text, WIDE)) == {}


def test_pairs_are_counted_where_order_and_window_allow_them() -> None:
    # a2 with b3 and b1, a0 with b1 alone; b5 before them and b9 three events behind a0 fit no window.
    found = found_in("a ; b WHERE a.x < b.x WITHIN 4 EVENTS", numbered("b5 a2 b3 a0 b1 c0 c0 b9"))
    assert found == {JudgedCondition("a.x < b.x", ""): (3, 2)}


def test_events_agree_in_pairs_that_a_window_allows() -> None:
    """Pairs of u u v u in windows of three: u u, u v, u v, u u, v u; of two NULLs one pair, which does not agree."""
    given_events = zip("abab", "uuvu", strict=True)
    events = [Event(n, n * 1000, name, {"x": None, "s": s}) for n, (name, s) in enumerate(given_events, 1)]
    nulls = [Event(n, n * 1000, "a", {"x": None, "s": None}) for n in (7, 8)]
    pattern = compiled("a ; b WHERE [s] WITHIN 3 EVENTS", WIDE)
    found = observed_in(pattern, observed(pattern, events_of([events, nulls], WIDE)))
    assert found == {JudgedCondition("[s]", "a; b"): (5 + 1, 2)}


@pytest.mark.parametrize("seed", range(5))
def test_shares_of_agreeing_pairs_are_those_of_all_pairs(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        drawn = [random_events(rng, rng.randint(0, 12)) for _ in range(2)]
        parts = [sorted(part, key=lambda event: (event.time, event.position)) for part in drawn]
        within = rng.choice(["", " WITHIN 3 EVENTS", " WITHIN 4 MILLISECOND"])
        pattern = compiled(f"A ; B WHERE [s]{within}", TYPES)
        pairs = [
            (one.values["s"] is not None and one.values["s"] == other.values["s"])
            for part in parts
            for place, one in enumerate(part)
            for between, other in enumerate(part[place + 1 :], start=1)
            if {one.name, other.name} <= {"A", "B"} and _near(within, between, other.time - one.time)
        ]
        found = observed_in(pattern, observed(pattern, events_of(parts, TYPES)))
        assert found == ({JudgedCondition("[s]", "A; B"): (len(pairs), sum(pairs))} if pairs else {})


def _near(within: str, events: int, time: int) -> bool:
    return not within or (events < 3 if "EVENTS" in within else time < 4000)


def test_filters_are_judged_on_the_events_of_their_operand() -> None:
    found = found_in("a ; b WHERE a.x > 1 AND a.x < 4 AND b.x = 7", numbered("a0 a2 a3 a9 b7 b1"))
    assert found == {JudgedCondition("a.x > 1 AND a.x < 4", ""): (4, 2), JudgedCondition("b.x = 7", ""): (2, 1)}


def test_definitions_are_judged_on_all_events() -> None:
    found = found_in("big ; b DEFINE big AS x > 2 WHERE big.x <> 9", numbered("a0 a9 b3 b1 c4"))
    assert found == {JudgedCondition("x > 2", ""): (5, 3), JudgedCondition("big.x <> 9", "big AS x > 2"): (3, 2)}


@pytest.mark.parametrize("policy", ["skip_till_next", "strict"])
def test_policies_without_plans_tell_of_single_events(policy: str) -> None:
    pattern = compiled("a ; b WHERE a.x > 1 AND a.x < b.x", WORKED_TYPES, policy=policy)
    work = Work()
    match_events(pattern, events_of([numbered("a0 a2 b3")], WORKED_TYPES), policy=policy, work=work)
    assert observed_in(pattern, work) == {JudgedCondition("a.x > 1", ""): (2, 1)}


def test_what_is_observed_before_a_plan_changes_counts_as_well() -> None:
    rng = random.Random(3)
    low = {"a": 0, "b": 100, "c": 0}
    names = [rng.choice("abc") for _ in range(300)]
    events = [Event(n, n * 1000, name, {"x": low[name] + rng.random() * 101}) for n, name in enumerate(names, 1)]
    pattern = compiled("a ; b ; c WHERE a.x < b.x AND b.x < c.x WITHIN 60 EVENTS", WORKED_TYPES)
    believed = Statistics({"a": 100, "b": 100, "c": 100}, selectivities={"a.x < b.x": 0.001, "b.x < c.x": 1.0})
    plan, work = choose_plan(pattern, believed).plan, Work()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "FIRST_EVENTS_AT_ONCE", 50)
        patch.setattr(course, "FIRST_TRIED", 50)
        patch.setattr(plans, "LEAST_ROWS", 1)
        given_events = events_of([events], WORKED_TYPES)
        match_events(pattern, given_events, plan=plan, work=work, replanning=Replanning(believed, 2))
    nodes = {key[1:] for key in work.done if isinstance(key[0], int)}
    assert {(0, 1), (1, 2)} <= nodes  # both plans have left what they did
    judged, held = observed_in(pattern, work)[JudgedCondition("a.x < b.x", "")]
    assert held / judged > 0.99


runs = st.lists(
    st.tuples(st.integers(1, 5_000_000), st.floats(0, 1), st.integers(0, 10 * DAY)).map(
        lambda drawn: Run(drawn[0], round(drawn[0] * drawn[1]), drawn[2])
    ),
    min_size=1,
    max_size=8,
)


def of_run(run: Run) -> Observation:
    return Observation(run.judged, run.held, run.at).limited()


def test_a_judgement_of_yesterday_weighs_half() -> None:
    told = merge_observations([Observation(100, 100, 0), Observation(100, 0, DAY)])
    assert (told.judged, told.held, told.at) == (150, 50, DAY)


@settings(max_examples=300)
@given(runs)
def test_observations_add_up_as_the_oracle_says(found: list[Run]) -> None:
    weight, expected = share(found)
    told = merge_observations(map(of_run, found))
    assert told.judged == pytest.approx(weight)
    assert told.held / told.judged == pytest.approx(expected)
    assert told.at == max(run.at for run in found)


@settings(max_examples=300)
@given(runs, st.randoms(use_true_random=False))
def test_it_makes_no_difference_in_which_order_and_groups_they_are_added(found: list[Run], rng: random.Random) -> None:
    expected = merge_observations(map(of_run, found))
    left = [of_run(run) for run in found]
    while len(left) > 1:
        rng.shuffle(left)
        some = rng.randint(1, len(left))
        left = [merge_observations(left[:some]), *left[some:]]
    assert (left[0].judged, left[0].held, left[0].at) == pytest.approx((expected.judged, expected.held, expected.at))


def test_of_few_judgements_nothing_is_concluded() -> None:
    pattern = compiled("a ; b WHERE a.x < b.x", WORKED_TYPES)
    few, enough = (Observation(judged, judged / 2, 0) for judged in (LEAST_JUDGED - 1, LEAST_JUDGED))
    assert shares_of(pattern, lambda _: few) == {}
    assert shares_of(pattern, lambda _: enough) == {"a.x < b.x": 0.5}
    assert shares_of(pattern, lambda _: None) == {}


def test_a_call_that_is_asked_again_is_the_same_request_though_shares_shift_a_little() -> None:
    events = [Event(n, n * 1000, "AB"[n % 2], {}) for n in range(1, 1001)]
    call = {"stream": "s", "pattern": "A ; B WHERE A.x < B.x WITHIN 2 EVENTS"}

    def asked(held: float) -> KleeneRequest:
        seen = {JudgedCondition("A.x < B.x", ""): Observation(1000, held, 0)}
        return request.check_request(call, publication(), ["s"], counts(events), factor=10, observed=seen.get).request

    assert asked(123) == asked(123.4)
    assert asked(123) != asked(150)


def plan_by(text: str, events: list[Event], seen: Mapping[JudgedCondition, Observation]) -> str:
    call = {"stream": "s", "pattern": text}
    asked = request.check_request(call, publication(), ["s"], counts(events), observed=seen.get).request
    return plan_text(asked.pattern, asked.plan)


def test_what_was_seen_takes_the_place_of_guesses() -> None:
    events = [Event(n, n * 1000, "ABC"[n % 3], {}) for n in range(1, 3001)]
    text = "A ; B ; C WHERE A.x = B.x AND B.x < C.x WITHIN 90 EVENTS"
    # An equality is guessed to hold more rarely than an order.
    assert plan_by(text, events, {}) == "((A B) C)"
    seen = {
        JudgedCondition("A.x = B.x", ""): Observation(1000, 990, 0),
        JudgedCondition("B.x < C.x", ""): Observation(1000, 1, 0),
    }
    assert plan_by(text, events, seen) == "(A (B C))"


def test_a_filter_is_expected_to_hold_as_often_as_it_did() -> None:
    events = [Event(n, n * 1000, "AB"[n % 2], {}) for n in range(1, 1001)]
    call = {"stream": "s", "pattern": "A ; B WHERE A.x > 1 AND A.x < 9 WITHIN 2 EVENTS"}
    seen = {JudgedCondition("A.x > 1 AND A.x < 9", ""): Observation(1000, 20, 0)}
    for known, events_of_a in (({}, 500 / 9), (seen, 10)):
        lines = request.explain(call, publication(), ["s"], counts(events), observed=known.get)
        (line,) = [each for each in lines if each.text.strip().startswith("A where")]
        assert line.rows == pytest.approx(events_of_a)


def test_a_plan_says_which_shares_were_seen() -> None:
    events = [Event(n, n * 1000, "AB"[n % 2], {}) for n in range(1, 1001)]
    call = {"stream": "s", "pattern": "A AS p ; B WHERE p.x < B.x AND p.s = B.s AND p.n = B.n WITHIN 2 EVENTS"}
    seen = {
        JudgedCondition("A.x < B.x", ""): Observation(12_345.6, 4000, 0),
        JudgedCondition("A.s = B.s", ""): Observation(LEAST_JUDGED - 1, 1, 0),
    }
    lines = [line.text for line in request.explain(call, publication(), ["s"], counts(events), observed=seen.get)]
    assert [text for text in lines if text.startswith("seen")] == ["seen: p.x < B.x holds in 0.324 of 12,346"]
    unknown = request.explain(call, publication(), ["s"], counts(events))
    assert [line.text for line in unknown] == lines[:-1]


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_rows_are_the_same_whatever_was_seen(seed: int) -> None:
    rng = random.Random(seed)
    text = Pattern(rng, most=4).text
    events = random_events(rng, rng.randint(0, 9))
    call = {"stream": "s", "pattern": text}
    drawn: dict[JudgedCondition, Observation | None] = {}

    def seen(condition: JudgedCondition) -> Observation | None:
        judged = rng.choice([0.0, 1e-9, 99.0, 100.0, 1e6, 1e12])
        held = judged * rng.choice([0.0, 1e-6, 0.5, 1.0])
        return drawn.setdefault(condition, rng.choice([None, Observation(judged, held, 0)]))

    try:
        found = request.check_request(call, publication(), ["s"], counts(events), whole=True, factor=10, observed=seen)
    except PatternError:
        return
    given_rows = columns(list(enumerate(sorted(events, key=lambda event: (event.time, event.position)))))
    tables = match_partitions(found.request, 0, given_rows, Work())
    bound = [
        {name: tuple(positions) for name, positions in row["bindings"] if positions}
        for table in tables
        for row in table.to_pylist()
    ]
    assert sorted(map(str, bound)) == sorted(map(str, matches(text, events, TYPES))), text

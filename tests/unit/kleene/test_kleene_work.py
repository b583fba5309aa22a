"""What matching says of its work: partial matches at each node and step, however events are dealt out."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.kleene import Event, matches
from naive.kleene_cases import TYPES as WORKED_TYPES
from naive.kleene_cases import stream
from naive.kleene_kernels import compiled, events_of
from naive.kleene_random import TYPES, Pattern, random_events
from unit.kleene.test_kleene_task import columns, counts, portions, publication

from patternlake.udfs.errors import PatternError, PredicateError
from patternlake.udfs.kleene import request
from patternlake.udfs.kleene.kernels import ranges
from patternlake.udfs.kleene.kernels.matching import observed
from patternlake.udfs.kleene.plans.costs import Statistics
from patternlake.udfs.kleene.plans.planning import choose_plan, explain_choice
from patternlake.udfs.kleene.plans.trees import forced_plan
from patternlake.udfs.kleene.task import observe_partitions
from patternlake.udfs.kleene.work import MATCHES, Key, Work, work_of, work_rows


def rows(work: Work) -> dict[Key, int]:
    """What came out; conditions are judged of what a range looks at, which is more than what begins in it."""
    return {key: one.rows for key, one in work.done.items() if one.rows and key[0] not in ("tried", "held")}


def lines_of(text: str, events: list[Event], plan: str) -> dict[str, float | None]:
    """What each line of the plan says was found."""
    pattern = compiled(text, WORKED_TYPES)
    tree = forced_plan(pattern, plan)
    work = observed(pattern, events_of([events], WORKED_TYPES), plan=tree)
    found = explain_choice(pattern, choose_plan(pattern, Statistics({}), tree), work)
    return {line.text.strip(): None if line.done is None else line.done.rows for line in found}


def test_each_line_of_a_plan_says_what_was_found() -> None:
    text = "a ; !x ; b+ ; c WHERE COUNT(b.x) <> 2 AND c.x > a.x"
    found = lines_of(text, stream("a1=1 a2=9 b3=1 b4=1 c5=2 c6=0 a7=0 x8 b9=1 c10=3"), "((a b) c)")
    # c5 and c10 fit a1, c5 to c10 do not fit a2, c10 fits a7; before c10 a1 has b3, b4, b9, and a7 has b9 behind x8.
    assert found["join ((a b) c) where c.x > a.x"] == 3
    assert found["a"] == 3
    assert found["b+"] == 3
    assert found["then b+: what each takes"] == 3
    assert found["then !x: none in its gap"] == 2
    assert found["last COUNT(b.x) <> 2: of whole matches"] == 1
    assert found["plan ((a b) c) (forced)"] == 1
    assert {rows for line, rows in found.items() if line.startswith("alternative")} == {None}


def test_each_operand_of_a_group_that_must_be_absent_says_what_is_left_after_it() -> None:
    """Behind a1 there is b2 with c3, behind a4 b5 with d6, behind a7 a b alone and behind a9 nothing."""
    text = "a ; !(b ; (c | d)) WITHIN 3 EVENTS"
    found = lines_of(text, stream("a1 b2 c3 a4 b5 d6 a7 b8 a9"), "a")
    left = [found[f"then !{name}: none in its gap"] for name in "bcd"]
    assert left == [2, 3, 2], "the c rules out a1, and the d a4"


def test_a_node_of_some_orders_of_the_pattern_adds_them_up() -> None:
    found = lines_of("(a | b) ; c", stream("a1 a2 b3 c4"), "((a b) c)")
    assert (found["join ((a b) c)"], found["join (a b)"], found["c"]) == (3, 3, 2)


def test_combinations_are_counted_and_not_listed() -> None:
    events = stream(" ".join(f"b{number}" for number in range(1, 201)))
    pattern = compiled("b[100]", WORKED_TYPES)
    assert observed(pattern, events_of([events], WORKED_TYPES)).done[MATCHES].rows > 1 << 190


def test_without_being_asked_a_plan_says_nothing_of_work() -> None:
    pattern = compiled("a ; b+", WORKED_TYPES)
    assert {line.done for line in explain_choice(pattern, choose_plan(pattern, Statistics({})))} == {None}


def test_work_goes_through_rows() -> None:
    work = observed(compiled("a ; !x ; b+ ; c", WORKED_TYPES), events_of([stream("a1 b2 c3")], WORKED_TYPES))
    assert work_of(iter([work_rows(work)])) == work
    large = Work()
    large.add(MATCHES, 10**5000 + 1, 0.5)
    assert work_of(iter([work_rows(large)])) == large


@settings(max_examples=150)
@given(st.integers(0, 2**32))
def test_all_matches_of_the_oracle_are_counted_whatever_the_ranges(seed: int) -> None:
    rng = random.Random(seed)
    text = Pattern(rng, most=4).text
    try:
        pattern = compiled(text, TYPES)
    except PredicateError:
        return
    streams = [random_events(rng, rng.randint(0, 8)) for _ in range(rng.choice([1, 2]))]
    events = events_of(streams, TYPES, pattern.names)
    whole = observed(pattern, events)
    assert whole.done[MATCHES].rows == sum(len(matches(text, one, TYPES)) for one in streams)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "FIRST_EVENTS_AT_ONCE", rng.randint(1, 3))
        assert rows(observed(pattern, events)) == rows(whole), text


@pytest.mark.parametrize("seed", range(2))
def test_blocks_do_the_work_of_the_whole_stream(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "TASK_EVENTS", 2)
    monkeypatch.setattr(request, "MARGINS", 1)
    rng = random.Random(seed)
    divided = 0
    while divided < 25:
        text = Pattern(rng, most=3).text
        events = random_events(rng, 12)
        call = {"stream": "s", "pattern": text}
        try:
            checked = request.check_request(call, publication(), ["s"], counts(events))
            single = request.check_request(call, publication(), ["s"], counts(events), whole=True)
        except PatternError:
            continue
        everything = columns(list(enumerate(sorted(events, key=lambda event: (event.time, event.position)))))
        whole = work_of(observe_partitions(single.request, 0, everything))
        question = checked.request
        parts = list(portions(question, events))
        work = work_of(table for number, part in parts for table in observe_partitions(question, number, part))
        assert rows(work) == rows(whole), text
        divided += len(parts) > 1

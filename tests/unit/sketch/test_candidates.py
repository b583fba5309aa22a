"""What is read back for an exact answer: enough for it, and as little as is safe."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from drawn import RANDOMS, SEEDED
from hypothesis import given, settings
from naive import sketch_matching as naive
from naive.sketch_cases import (
    POLICIES,
    compiled,
    events_of,
    hits_of,
    leaves,
    operands_of,
    random_conditions,
    random_events,
    random_pattern,
    rows_of,
)

from patternlake.udfs.sketch.kernels.candidates import Candidates, candidate_ranges
from patternlake.udfs.sketch.kernels.exact import match_events
from patternlake.udfs.sketch.kernels.hits import Matches
from patternlake.udfs.sketch.query import SketchPattern
from patternlake.udfs.sketch.windows import Window


def candidates(
    text: str,
    stream: str,
    policy: str = "skip_till_next",
    *,
    partitioned: bool = False,
    window: Window | None = None,
) -> Candidates:
    """Candidates in a stream of nodes of ten events, one per word whose letters are the names in it."""
    pattern = compiled(text, verify=True)
    nodes = [
        naive.Row(10 * at + 1, 10 * at + 10, 10_000 * at + 1000, 10_000 * at + 10_000, frozenset(word) - {"-"})
        for at, word in enumerate(stream.split())
    ]
    return candidate_ranges(pattern, hits_of(pattern, nodes), policy=policy, partitioned=partitioned, window=window)


def ranges(*arguments: str, **named: bool | Window) -> list[list[int]]:
    found = candidates(*arguments, **named).ranges  # type: ignore[arg-type]
    assert found is not None
    return found.tolist()


def test_a_node_without_partner_is_not_read() -> None:
    assert ranges("A ; B", "B A - B A") == [[11, 20], [31, 40]]


def test_pairs_inside_one_leaf_are_read() -> None:
    assert ranges("A ; B", "- AB -") == [[11, 20]]
    assert ranges("A[3]", "- A -") == [[11, 20]]


def test_neighbouring_nodes_become_one_range() -> None:
    assert ranges("A ; B", "A AB B - B") == [[1, 30], [41, 50]]


def test_strict_needs_the_same_or_an_adjacent_leaf() -> None:
    assert ranges("A ; B", "A - B A B", "strict") == [[31, 50]]


def test_a_run_needs_the_same_or_an_adjacent_leaf() -> None:
    assert ranges("A ; B , C", "A B - C B C") == [[1, 10], [41, 60]]


def test_every_name_of_an_and_must_be_near() -> None:
    assert ranges("A ; B & C", "B A C") == []
    assert ranges("A ; B & C", "A C B") == [[1, 30]]


def test_the_window_limits_what_is_read() -> None:
    assert ranges("A ; B WITHIN 11 EVENTS", "A - B A B") == [[31, 50]]
    assert ranges("A ; B WITHIN 12 EVENTS", "A - B A B") == [[1, 10], [21, 50]]
    assert ranges("A ; B WITHIN 11 MILLISECOND", "A - B A B") == [[31, 50]]


def test_where_times_run_backwards_a_late_event_that_the_search_would_take_is_read() -> None:
    # The nearest B is too far away in time, so there is no match; leaving it out would make one of the next B.
    pattern = compiled("A ; B WITHIN 50 MILLISECOND", verify=True)
    events = [
        naive.Row(position, position, time * 1000, time * 1000, frozenset(name), position)
        for position, (name, time) in enumerate([("A", 0), ("B", 100), ("B", 5)], 1)
    ]
    found = candidate_ranges(pattern, hits_of(pattern, events))
    assert len(match_events(pattern, events_of(pattern, events))) == 0
    assert found.ranges is not None
    assert found.ranges.tolist() == [[1, 3]]


def test_negated_names_are_read_where_a_match_can_pass_over_them() -> None:
    assert ranges("A ; !D ; B", "D A D B D") == [[11, 40]]
    assert ranges("A ; !D ; B", "D A D B D", "strict") == []


def test_bounds_of_the_question_cut_what_is_read() -> None:
    assert ranges("A ; B", "A B A B", window=Window(from_position=15, to_position=35)) == [[21, 35]]
    assert ranges("A ; B", "A B A B", window=Window(from_time=21_000)) == [[21, 40]]
    assert ranges("A ; B", "A B", window=Window(from_position=2, to_position=1)) == []


def test_only_events_of_the_patterns_names_are_needed() -> None:
    for policy, _ in POLICIES:
        assert not candidates("A ; B , C WITHIN 5 EVENTS", "A B C", policy).every_event
    assert not candidates("A ; B WITHIN 5 SEC", "A B", partitioned=True).every_event


@pytest.mark.parametrize(
    ("text", "policy"),
    [("A ; B", "strict"), ("A , B", "skip_till_next"), ("A ; B WITHIN 5 EVENTS", "skip_till_next")],
)
def test_in_a_partition_neighbours_and_counts_need_every_event_in_between(text: str, policy: str) -> None:
    found = candidates(text, "B A - - B - A", policy, partitioned=True)
    assert found.every_event
    assert found.ranges is not None
    assert found.ranges.tolist() == [[11, 50]]


def test_in_a_partition_a_window_of_time_still_limits_what_is_read() -> None:
    assert ranges("A , B WITHIN 11 MILLISECOND", "A B - - A B", partitioned=True) == [[1, 20], [41, 60]]


def test_a_primitive_of_known_names_is_looked_for_like_them() -> None:
    assert ranges("A ; e DEFINE e AS name IN ('B', 'C')", "C A - C") == [[11, 20], [31, 40]]


def test_a_primitive_of_any_name_needs_everything_that_it_may_stand_in() -> None:
    found = candidates("A ; e ; B DEFINE e AS x > 1", "- A - - B -")
    assert found.every_event
    assert found.ranges is not None
    assert found.ranges.tolist() == [[11, 50]]
    assert candidates("A ; e DEFINE e AS x > 1", "- A -").ranges is None
    bounded = candidates("A ; e DEFINE e AS x > 1", "- A -", window=Window(from_position=3, to_position=20))
    assert bounded.ranges is not None
    assert bounded.ranges.tolist() == [[3, 20]]


# -- enough: the answer from candidates is the answer from everything ------------------------------------------------


PREDICATES = ["TRUE", "x > 1", "name = 'A'", "name IN ('B', 'C') AND x < 3", "name = 'D' OR name = 'A'"]


def with_primitive(rng: random.Random, described: naive.Pattern) -> str:
    """The pattern's text with one of its names defined."""
    text = described.text()
    used = {name for slot in described.slots for name in slot}
    clauses = [at for clause in (" WHERE ", " WITHIN ") if (at := text.find(clause)) >= 0]
    place = min([*clauses, len(text)])
    return f"{text[:place]} DEFINE {rng.choice(sorted(used))} AS {rng.choice(PREDICATES)}{text[place:]}"


def rows(matches: Matches) -> list[tuple[object, ...]]:
    return list(
        zip(
            matches.key.tolist(),
            rows_of(matches),
            operands_of(matches),
            matches.last_position.tolist(),
            matches.first_time.tolist(),
            strict=True,
        )
    )


class Case:
    """A stream in leaves with false positives, asked as a whole, for one key, or for every key."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        described = random_pattern(rng)
        if rng.random() < 0.4:
            described = random_conditions(rng, described)
        text = with_primitive(rng, described) if rng.random() < 0.2 else described.text()
        self.pattern: SketchPattern = compiled(text, verify=True)
        n = rng.randint(0, 26)
        names = rng.choice(["ABCDEFGH", "ABC", "ABCDE"])
        self.events = random_events(rng, n, names=names, several=rng.random() < 0.3, ordered=rng.random() < 0.5)
        self.keys = rng.choice([None, None, "one", "every"])
        self.key_of = {event.lo: rng.randrange(3) for event in self.events}
        mine = [self.as_seen(event) for event in self.events]
        noise = rng.choice([0, 0, 0.1, 0.3])
        self.hits = hits_of(self.pattern, leaves(rng, mine, rng.choice([1, 2, 3, 4]), noise=noise))
        positions = [rng.choice([None, rng.randint(1, n + 1)]) for _ in range(2)]
        times = [rng.choice([None, None, rng.randint(0, n) * 1000]) for _ in range(2)]
        self.window = Window(*positions, *times) if rng.random() < 0.4 else None

    def as_seen(self, event: naive.Row) -> naive.Row:
        """One key's question is put to filters of (key, name): events of other keys are not in them."""
        other = self.keys == "one" and self.key_of[event.lo] != 0
        return replace(event, names=frozenset()) if other else event

    def answer(self, events: Sequence[naive.Row], policy: str, after_match: str) -> Matches:
        offsets = None
        if self.keys is not None:
            keys = range(1 if self.keys == "one" else 3)
            parts = [[event for event in events if self.key_of[event.lo] == key] for key in keys]
            offsets = np.cumsum([0, *map(len, parts)]).tolist()
            events = [event for part in parts for event in part]
        given = events_of(self.pattern, events, offsets)
        return match_events(self.pattern, given, policy=policy, after_match=after_match, window=self.window)

    def read_back(self, policy: str) -> list[naive.Row]:
        wanted = candidate_ranges(
            self.pattern, self.hits, policy=policy, partitioned=self.keys is not None, window=self.window
        )
        kept = self.events
        if wanted.ranges is not None:
            kept = [event for event in kept if any(low <= event.lo <= high for low, high in wanted.ranges)]
        if not wanted.every_event:
            kept = [event for event in kept if event.names & set(self.pattern.names)]
        return kept

    def check(self) -> None:
        for policy, after_match in POLICIES:
            expected = rows(self.answer(self.events, policy, after_match))
            assert rows(self.answer(self.read_back(policy), policy, after_match)) == expected


@given(RANDOMS)
@settings(max_examples=400)
def test_candidates_give_the_answer_of_everything(rng: random.Random) -> None:
    Case(rng).check()


@pytest.mark.slow
@given(SEEDED)
@settings(max_examples=4000)
def test_candidates_give_the_answer_of_everything_in_thousands_of_cases(rng: random.Random) -> None:
    Case(rng).check()

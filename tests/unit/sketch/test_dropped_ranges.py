"""What ageing has dropped could have held anything: existence is unknown there, never false."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from drawn import RANDOMS
from hypothesis import example, given, settings
from naive import sketch_matching as naive
from naive.sketch_cases import random_events, random_pattern

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.sketch.gathering import HITS_TYPE, pack
from patternlake.udfs.sketch.request import SketchRequest, SketchState, check_call
from patternlake.udfs.sketch.result import exists

SEGMENT = 4
"""Events of a segment: a leaf is one event, and there are three levels."""


def asked(
    pattern: str, events: int, segments: int, *, until: int | None = None, keep: int | None = None, **arguments: Any
) -> SketchRequest:
    """A question to a sketch whose first segments are dropped, or kept from a level on."""
    stream = {"attributes": {}, "key": None, "tokens": None}
    configuration = {
        "stream": stream, "structure": "leveled", "fanout": 2, "events_per_leaf": 1, "keyed": False, "seed": 0
    }  # fmt: skip
    state = {"plans": [{"sizing": {"levels": [{}, {}, {}]}}], "events": events}
    floors = [{"level": keep, "before_segment": segments, "until": until}] if segments else []
    sketch = SketchState(json.dumps(configuration), json.dumps(state), floors)
    return check_call({"stream": "s", "pattern": pattern, "verify": False, **arguments}, sketch, ["s"])


@pytest.mark.parametrize(("keep", "floor"), [(1, 1), (2, 2), (3, 2), (9, 2)])
def test_of_a_tree_that_is_lower_than_a_rule_asks_the_top_is_kept(keep: int, floor: int) -> None:
    request = asked("a ; b", 3 * SEGMENT, 1, keep=keep)
    assert [request.floor(segment) for segment in (0, 1)] == [floor, 0]
    assert request.tiers() == asked("a ; b", 3 * SEGMENT, 1, keep=floor).tiers()


def occurs(request: SketchRequest, leaves: Sequence[naive.Row]) -> bool | None:
    """What existence says, given what the descent finds on leaves."""
    names = request.pattern.names
    held = [leaf for leaf in leaves if leaf.names & set(names)]
    present = np.array([[name in leaf.names for name in names] for leaf in held], np.bool_).reshape(-1, len(names))
    row = {
        "segment": 0, "level": 0, "confirmed": True, "keys": None, "key": [0] * len(held), "node": [0] * len(held),
        "pos_lo": [leaf.lo for leaf in held], "pos_hi": [leaf.hi for leaf in held],
        "time_lo": [leaf.time_lo for leaf in held], "time_hi": [leaf.time_hi for leaf in held],
        "present": pack(present).ravel().tolist(), "fp": [0.0] * len(held),
    }  # fmt: skip
    return exists(request, pa.array([row], HITS_TYPE)).anywhere


@given(RANDOMS)
@example(random.Random(37932))  # three leaves of the dropped range, just before what is kept, inside WITHIN 4 EVENTS
@settings(max_examples=200)
def test_existence_is_unknown_where_anything_in_the_dropped_range_would_make_a_match(rng: random.Random) -> None:
    described = random_pattern(rng)
    events = random_events(rng, rng.randint(1, 12), names="ABCDE", ordered=rng.random() < 0.5)
    segments = rng.randint(0, len(events) // SEGMENT)
    low = rng.choice([None, rng.randint(1, len(events))])
    high = rng.choice([None, rng.randint(low or 1, len(events))])
    inside = [event for event in events if (low or 1) <= event.lo <= (high or len(events))]
    kept = [event for event in inside if event.lo > segments * SEGMENT]
    anything = [
        replace(event, names=frozenset("ABCD"), time_lo=-(10**15), time_hi=10**15)
        for event in inside
        if event.lo <= segments * SEGMENT
    ]
    for policy in ("strict", "skip_till_next", "skip_till_any"):

        def found(rows: list[naive.Row], policy: str = policy) -> bool:
            return bool(naive.match(described, rows, policy=policy, after_match="next", exclusive=False))

        text = asked(described.text(), len(events), segments, policy=policy, from_position=low, to_position=high)
        expected = True if found(kept) else None if found(anything + kept) else False
        assert occurs(text, kept) is expected


def test_bounds_behind_a_dropped_range_leave_nothing_unknown() -> None:
    for bounds, expected in [
        ({}, None),
        ({"from_position": 9}, False),
        ({"to_position": 2}, None),
        ({"from_time": 100}, None),
        ({"from_time": 101}, False),
    ]:
        text = asked("A ; B", 12, 2, until=100, **bounds)
        assert occurs(text, []) is expected, bounds
    text = asked("A ; B", 12, 2, until=None, from_time=101)
    assert occurs(text, []) is None


@pytest.mark.parametrize(("bounds", "low", "high"), [({}, 1, 8), ({"from_position": 3, "to_position": 6}, 3, 6)])
def test_rows_that_a_dropped_range_could_hold_are_refused(bounds: dict[str, int], low: int, high: int) -> None:
    message = (
        f"positions {low} to {high} of 's', .* ask from_position => {high + 1}, match_seq or match_exists "
        "without verify => false .* truncate => true"
    )
    with pytest.raises(ArgumentError, match=message):
        asked("A ; B", 12, 2, truncate=False, verify=False, **bounds)
    for allowed in ({"truncate": True}, {"truncate": False, "verify": True}, {"truncate": False, "from_position": 9}):
        asked("A ; B", 12, 2, **allowed)


@pytest.mark.parametrize("verify", [None, True])
def test_a_question_is_exact_unless_the_sketch_alone_is_asked_for(verify: bool | None) -> None:
    """NULL stands for the default, and what is dropped is no matter to events."""
    assert asked("A ; B", 12, 2, truncate=False, verify=verify).verify

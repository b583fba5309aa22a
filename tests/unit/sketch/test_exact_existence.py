"""match_exists says what a full scan says, of the stream, of one key and of any, from as little as tells it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from naive import sketch_matching as naive
from naive.sketch_cases import random_conditions, random_events, random_pattern
from unit.sketch.sketch_in_memory import Tree

from patternlake.sql_ext.sketches import exact_existence, exact_sequences
from patternlake.udfs import blocks
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.sketch import result
from patternlake.udfs.sketch.reads import SketchReads

KEYS = ("k", "l", "m")
POLICIES = ["strict", "skip_till_next", "skip_till_any"]


@pytest.fixture(params=[2, 5])
def blocks_of(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Blocks of half a segment, or of four segments."""
    for module in (blocks, exact_sequences, result):
        monkeypatch.setattr(module, "BLOCK_BITS", request.param)
    return int(request.param)


def occurs(tree: Tree, asked: SketchReads) -> bool:
    return exact_existence.occurs_here(tree, asked)


def asked(tree: Tree, pattern: str, **arguments: Any) -> SketchReads:
    return tree.request(**exact_existence.as_sequences({"pattern": pattern, **arguments}))


class Case:
    """A random stream, pattern and bounds, and what a full scan says of it."""

    def __init__(self, rng: random.Random, structure: str, block_bits: int) -> None:
        names = rng.choice(["ABCDE", "ABCD", "ABEFGH"])
        self.events = random_events(rng, rng.randint(1, 90), names=names, ordered=rng.random() < 0.7)
        self.tree = Tree(
            [min(event.names) for event in self.events], structure, keys=KEYS, fpq=rng.choice([1e-9, 0.3]),
            x=[event.x for event in self.events], times=[event.time_lo for event in self.events],
            block_bits=block_bits,
        )  # fmt: skip
        self.tree.cheap_events = rng.random() < 0.2
        pattern = random_pattern(rng, conjunction=rng.random() < 0.3)
        self.pattern = random_conditions(rng, pattern) if rng.random() < 0.3 else pattern
        # Brute force tries each combination of events.
        widest = {1: 90, 2: 90, 3: 40}.get(len(pattern.slots), 12)
        low = rng.randint(1, len(self.events))
        self.bounds: dict[str, Any] = {"from_position": low, "to_position": low + rng.randint(0, widest)}
        if widest >= 90 and rng.random() < 0.5:
            self.bounds = {}

    def occurs(self, policy: str, key: str | None = None) -> bool:
        """Whether brute force finds a match, among all events or those of one key."""
        mine = [
            replace(event, ordinal=number)
            for number, event in enumerate(
                event for place, event in enumerate(self.events) if key is None or KEYS[place % len(KEYS)] == key
            )
        ]
        low, high = self.bounds.get("from_position", 1), self.bounds.get("to_position", len(self.events))
        inside = [event for event in mine if low <= event.lo <= high]
        return bool(naive.match(self.pattern, inside, policy=policy, after_match="next", exclusive=True))

    def text(self) -> str:
        return self.pattern.text()


COUNTS = [15, pytest.param(400, marks=pytest.mark.slow)]
"""Random cases of each kind."""


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("structure", ["leveled", "uniform"])
@pytest.mark.parametrize("policy", POLICIES)
def test_it_says_what_a_full_scan_says(policy: str, structure: str, count: int, blocks_of: int) -> None:
    rng = random.Random(f"{structure} {policy} {blocks_of}")
    answers = set()
    for number in range(count):
        case = Case(rng, structure, blocks_of)
        given = {"policy": policy, **case.bounds}
        whole = occurs(case.tree, asked(case.tree, case.text(), **given))
        assert whole is case.occurs(policy), (number, case.text())
        by_key = {key: case.occurs(policy, key) for key in KEYS}
        for key, expected in by_key.items():
            assert occurs(case.tree, asked(case.tree, case.text(), key=key, **given)) is expected, (
                number,
                case.text(),
                key,
            )
        every = asked(case.tree, replace(case.pattern, partition="key").text(), **given)
        assert occurs(case.tree, every) is any(by_key.values()), (number, case.text())
        answers |= {whole, *by_key.values()}
    assert answers == {True, False}


def test_a_pair_inside_one_leaf_exists_in_its_order_alone() -> None:
    tree = Tree(["x", "x", "A", "B", "x", "x"])
    assert occurs(tree, asked(tree, "A ; B")) is True
    assert occurs(tree, asked(tree, "B ; A")) is False


def test_what_the_tops_deny_reads_no_event() -> None:
    tree = Tree(["B"] * 40 + ["x"] * 400 + ["A"] * 40)
    assert occurs(tree, asked(tree, "A ; B")) is False
    assert tree.blocks_read == []
    tops = 60
    assert tree.read == tops


@pytest.mark.parametrize("blocks_of", [2], indirect=True)
def test_it_stops_at_the_first_events_that_match(blocks_of: int) -> None:
    tree = Tree(["A", "x", "x", "B", "x", "x", "x", "x"] * 100, block_bits=blocks_of)
    assert occurs(tree, asked(tree, "A ; B")) is True
    assert tree.blocks_read == [0]
    # Every second block has an A or a B; what is read doubles until it tells.
    late = Tree(["A", "x", "x", "x", "x", "x", "x", "x"] * 30 + ["x", "C"] * 200, block_bits=blocks_of)
    assert occurs(late, asked(late, "A ; C")) is True
    assert len(late.blocks_read) < 200


def test_more_events_than_a_task_holds_are_refused_with_the_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_sequences, "WHOLE_EVENTS", 10)
    tree = Tree(["B"] * 20 + ["A"] * 20, keys=("k", "l"))
    tree.cheap_events = True
    with pytest.raises(
        ArgumentError,
        match=r"^more than 10 events .*partition the pattern.* from_position, .* from_time .* verify => false",
    ):
        occurs(tree, asked(tree, "A ; B"))
    assert occurs(tree, asked(tree, "A ; B PARTITION BY key")) is False
    assert occurs(tree, asked(tree, "A ; B", key="k")) is False

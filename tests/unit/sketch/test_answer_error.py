"""A whole answer's error: no fewer rows are expected to be false than are, and no smaller chance is given of any."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from naive import sketch_matching as naive
from naive.sketch_cases import POLICIES, compiled, hits_of, leaves, random_events, random_pattern
from naive.sketch_tree import filter_of, plain
from numpy.typing import NDArray

from patternlake.udfs.sketch.answer_error import (
    Resting,
    bounds,
    false_claims,
    most_false,
    names_of,
    rows_by_claim,
)
from patternlake.udfs.sketch.kernels.hashing import encode_token, hash_tokens
from patternlake.udfs.sketch.kernels.matching import node_rows, search
from patternlake.udfs.sketch.kernels.probe import false_positive_rate, probe
from patternlake.udfs.sketch.query import SketchPattern
from patternlake.udfs.sketch.request import SketchRequest, parse_request, request_text


def false_rows(
    pattern: naive.Pattern, claimed: Sequence[naive.Row], truth: Sequence[naive.Row], policy: str, after: str
) -> int:
    """How many rows of the answer on claimed nodes rest on a node that holds none of a step's names."""
    held = {node.lo: node.names for node in truth}
    found = naive.match(pattern, claimed, policy=policy, after_match=after, exclusive=False)
    return sum(
        any(not held[claimed[node].lo] & set(slot) for (node, _), slot in zip(match, pattern.slots, strict=True))
        for match in found
    )


def resting(pattern: SketchPattern, nodes: Sequence[naive.Row], policy: str, after: str) -> Resting:
    hits = hits_of(pattern, nodes)
    rows = node_rows(pattern, hits, np.array([0, len(hits)]))
    total, _, steps = search(rows, pattern.layout(policy), policy, after, 1_000_000, False)
    return Resting(total, tuple(rows_by_claim(pattern, hits, steps)), False)


@pytest.mark.parametrize(
    ("counts", "false", "rows", "most"),
    [
        ([(1, 2, 3, 1)], [2.25], 7, 3 + 2 + 0.25),  # those of 3 and 2 rows, and a quarter of another
        ([(1, 2, 3, 1)], [9.0], 7, 7),  # more than there are
        ([(2, 1), (1, 1, 1)], [2.0, 1.5], 3, 3),  # 3 + 1.5, but no more than all rows
        ([(1, 1), (2,)], [0.0, 0.5], 2, 1),
        ([(1, 1)], [math.inf], 2, 2),
    ],
)
def test_the_claims_that_most_rows_rest_on_are_taken_for_false(
    counts: list[tuple[int, ...]], false: list[float], rows: int, most: float
) -> None:
    given = Resting(rows, tuple(np.array(one, np.int64) for one in counts), False)
    assert bounds(given, false, math.log(0.5))[0] == most


def test_how_many_claims_are_taken_for_false() -> None:
    assert most_false(0.25, in_part=False, unseen=False) == 0.25 + 2 * 0.5
    assert most_false(0.25, in_part=True, unseen=False) == 0.25 + 2 * 0.5 + 1
    assert most_false(0.25, in_part=False, unseen=True) == math.inf
    assert most_false(0.0, in_part=True, unseen=False) == 0


def test_the_chance_is_that_of_any_filter_erring_for_any_name() -> None:
    given = Resting(2, (np.array([2]), np.array([1, 1])), False)
    assert bounds(given, [0.5, 0.5], math.log(0.9))[1] == pytest.approx(1 - 0.9 * 0.9)
    assert bounds(given, [9.0, 9.0], -math.inf) == (2, 1)
    assert bounds(given, [0.0, math.inf], math.log(0.9)) == (2, 1)
    assert bounds(Resting(0, (np.array([], np.int64),), False), [0.5], math.log(0.9)) == (0, 0)


def test_a_claim_counts_once_for_each_row_that_rests_on_it() -> None:
    pattern = compiled("A ; B | C")
    nodes = [
        naive.Row(at, at, at, at, frozenset(names)) for at, names in enumerate(["A", "A", "BC", "A", "C"], start=1)
    ]
    # Rows (1, 3), (2, 3), (4, 5): the node 3 claims B and C, and may be either.
    found = resting(pattern, nodes, "skip_till_next", "next")
    assert found.rows == 3
    assert [sorted(counts.tolist()) for counts in found.by_claim] == [[1, 1, 1], [2], [1, 2]]


def test_what_is_denied_makes_no_row() -> None:
    nodes = [naive.Row(at, at, at, at, frozenset(names)) for at, names in enumerate("AXB", start=1)]
    assert len(resting(compiled("A ; !D ; B"), nodes, "skip_till_next", "next").by_claim) == 2


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.4])
@pytest.mark.parametrize(("policy", "after"), POLICIES)
def test_no_more_rows_are_false_than_are_expected_and_none_more_often(policy: str, after: str, rate: float) -> None:
    rng = random.Random(f"{policy} {after} {rate}")
    draws = 40
    for number in range(10):
        pattern = random_pattern(rng)
        text = pattern.text()
        names = rng.choice(["ABCDE", "ABEEE", "AEEEE"])
        truth = leaves(rng, random_events(rng, rng.randint(6, 18), names=names), rng.choice([1, 2, 3]))
        none = len(truth) * math.log1p(-rate)
        held = frozenset().union(*(node.names for node in truth))
        # Half of the questions are about a part of a stream that has all names somewhere.
        part = number % 2 == 1
        wrong, said, chances = [], [], []
        for _ in range(draws):
            noise = [frozenset(name for name in "ABCD" if rng.random() < rate) for _ in truth]
            claimed = [replace(node, names=node.names | more) for node, more in zip(truth, noise, strict=True)]
            found = resting(compiled(text), claimed, policy, after)
            false = [
                most_false(len(truth) * rate, in_part=part, unseen=not part and name not in held)
                for name in names_of(compiled(text))
            ]
            expected, chance = bounds(found, false, none)
            wrong.append(false_rows(pattern, claimed, truth, policy, after))
            said.append(expected)
            chances.append(chance)
        # Three standard errors of a mean of so many draws.
        room = 3 * float(np.std(np.array(said) - wrong)) / math.sqrt(draws)
        assert np.mean(wrong) <= np.mean(said) + room + 1e-9, text
        often = np.mean(np.array(wrong) > 0)
        assert often <= max(chances) + 3 * math.sqrt(0.25 / draws), text


def asked(pattern: str, structure: str, **arguments: object) -> SketchRequest:
    """A question to a sketch of leaves of one event, four in a segment."""
    stream = {"attributes": {}, "key": None, "tokens": None}
    configuration = {
        "stream": stream, "structure": structure, "fanout": 2, "events_per_leaf": 1, "keyed": False, "seed": 0
    }  # fmt: skip
    state = {"plans": [{"sizing": {"levels": [{}, {}, {}]}}], "events": 8}
    floors = [{"level": 1, "before_segment": 1}]
    sketch = {"state": json.dumps(state), "configuration": json.dumps(configuration), "floors": floors}
    return parse_request(request_text({"stream": "s", "pattern": pattern, **arguments}, sketch, ["s"]))


def stored(
    segment: int, level: int, positions: Sequence[tuple[int, int]], topmost: Sequence[bool]
) -> dict[str, object]:
    """A row of the table of nodes."""
    low, high = [one for one, _ in positions], [one for _, one in positions]
    return {
        "segment": segment, "level": level, "m": 8, "k": 2, "ones": [4] * len(positions), "topmost": list(topmost),
        "pos_lo": low, "pos_hi": high, "time_lo": low, "time_hi": high,
    }  # fmt: skip


def test_the_nodes_that_answer_are_reckoned_with_and_no_others() -> None:
    # Half of the bits and two hashes: each node errs in a quarter of all cases. Segment 0 is aged to level 1.
    rows = pa.Table.from_pylist(
        [
            stored(0, 1, [(1, 2), (3, 4)], [False, False]),
            stored(0, 2, [(1, 4)], [True]),
            stored(1, 0, [(5, 5), (6, 6), (7, 7), (8, 8)], [False] * 4),
            stored(1, 1, [(5, 6), (7, 8)], [False] * 2),
        ]
    )
    found = false_claims(asked("A ; B", "leveled", truncate=True), rows).to_pydict()
    assert found == {
        "segment": [0, 1],
        "expected": pytest.approx([0.5, 1.0]),
        "none": pytest.approx([2 * math.log(0.75), 4 * math.log(0.75)]),
    }
    inside = false_claims(asked("A ; B", "leveled", from_position=4, to_position=6), rows)
    assert inside["expected"].to_pylist() == pytest.approx([0.25, 0.5])


def test_uniform_answers_with_nodes_that_have_no_parent() -> None:
    rows = pa.Table.from_pylist([stored(0, 0, [(1, 1), (2, 2), (3, 3)], [True, False, False])])
    assert false_claims(asked("A", "uniform"), rows)["expected"].to_pylist() == pytest.approx([0.25])


def test_real_filters_err_no_more_often_than_is_expected() -> None:
    """Leaves of real filters, small ones that err often, of a name that is nowhere and of one that is rare."""
    wrong: dict[str, list[int]] = {"Z": [], "R": []}
    expected = []
    for seed in range(60):
        bits, sets = filters(seed, leaves_=50, m=64, k=3, tokens=12)
        rates = false_positive_rate(np.unpackbits(bits, axis=1).sum(axis=1), 64, 3)
        expected.append(float(rates.sum()))
        for name, counts in wrong.items():
            present = probe(bits, 3, hash_tokens([encode_token(0, name)], seed))[:, 0]
            counts.append(sum(claim and name not in held for claim, held in zip(present, sets, strict=True)))
    for counts in wrong.values():
        assert np.mean(counts) <= np.mean(expected) * 1.05
        assert np.mean(counts) > 0


def filters(seed: int, *, leaves_: int, m: int, k: int, tokens: int) -> tuple[NDArray[np.uint8], list[set[str]]]:
    """uint8[leaves, m / 8] and what each leaf holds; ``R`` is in a tenth of them."""
    rng = random.Random(seed)
    sets = []
    for _ in range(leaves_):
        held = {f"t{rng.randrange(500)}" for _ in range(tokens)}
        sets.append(held | {"R"} if rng.random() < 0.1 else held)
    filled = [filter_of(frozenset(plain(0, name) for name in held), seed, m, k) for held in sets]
    return np.array([list(value.to_bytes(m // 8, "little")) for value in filled], np.uint8), sets

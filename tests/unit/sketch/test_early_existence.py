"""What the tops tell saves reading: match_exists stops there or at the first leaves, match_seq leaves segments out."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from naive import sketch_matching as naive
from naive.sketch_cases import POLICIES, compiled, random_pattern
from unit.sketch.sketch_in_memory import LEAF, Tree

from patternlake.sql_ext.sketches.sketch_descent import descend, nodes_below, tops_hit
from patternlake.sql_ext.sketches.sketch_existence import anywhere
from patternlake.udfs.sketch.reads import SketchReads
from patternlake.udfs.sketch.result import answer, candidates, exists
from patternlake.udfs.sketch.segment_order import taking_part


def all_nodes_that_may_hold(tree: Tree, request: SketchReads) -> pa.Array:
    return nodes_below(tree, request, tops_hit(tree, request))


def both(tree: Tree, request: SketchReads) -> tuple[bool | None, bool | None, int, int]:
    """What is said early and from all nodes, and how many nodes each has read."""
    tree.read = 0
    early = anywhere(tree, request)
    first, tree.read = tree.read, 0
    whole = exists(request.request, all_nodes_that_may_hold(tree, request)).anywhere
    return early, whole, first, tree.read


@pytest.mark.parametrize("structure", ["leveled", "uniform"])
@pytest.mark.parametrize("policy", ["strict", "skip_till_next", "skip_till_any"])
def test_what_is_said_early_is_what_all_nodes_say_from_fewer_of_them(structure: str, policy: str) -> None:
    rng = random.Random(f"{structure} {policy}")
    early_read = whole_read = 0
    answers = set()
    for number in range(60):
        names = [rng.choice(rng.choice(["ABCD", "EF", "EFGH"])) for _ in range(rng.randint(1, 200))]
        tree = Tree(names, structure, keys=("k", "l"), fpq=rng.choice([1e-9, 0.3]))
        low = rng.randint(1, len(names))
        bounds = rng.choice([{}, {"from_position": low, "to_position": low + rng.randint(0, 60)}, {"key": "k"}])
        pattern = random_pattern(rng, window="key" not in bounds)
        early, whole, first, all_nodes = both(tree, tree.request(pattern.text(), policy=policy, **bounds, verify=False))
        really = occurs(pattern, names, policy, **bounds)
        if early is not whole:
            # Where leaves err, tops may know better, which deny a name that is not there.
            assert (early, whole, really, tree.sizing.fpq) == (False, True, False, 0.3), (number, pattern.text())
        assert early or not really, (number, pattern.text())
        early_read, whole_read = early_read + first, whole_read + all_nodes
        answers.add(early)
    assert answers == {True, False}
    assert early_read < whole_read


def test_leaves_below_a_top_that_denies_the_name_are_not_asked() -> None:
    """Though their segment lies in one bucket with others: leaves err often, and would claim what the top denies."""
    names = [f"n{number}" for number in range(800)]
    names[200] = "R"
    alone, together = (Tree(names, fpq=0.3, together=each) for each in (1, 100))
    hits = []
    for tree in (alone, together):
        found = descend(tree, tree.request("R", verify=False, after_match="next"))
        hits.append(found.to_pylist())
    assert 25 in [hit["segment"] for hit in hits[0]], "where the R is"
    assert hits[1] == hits[0]


@pytest.mark.parametrize("last", [1 << 36, (1 << 63) - 1])
def test_bounds_far_behind_the_last_event_read_no_more_than_there_is(last: int) -> None:
    tree = Tree("ABC", x=[1.0, 2.0, 3.0])
    pattern = "early ; C DEFINE early AS x < 3"
    reads = tree.request(pattern, from_position=1, to_position=last)
    assert candidates(reads.request, descend(tree, reads)).blocks == (0,)


def occurs(
    pattern: naive.Pattern,
    names: Sequence[str],
    policy: str,
    from_position: int = 1,
    to_position: int | None = None,
    key: str | None = None,
) -> bool:
    """Whether the pattern, without NOT, is on leaves that hold what they really hold; with NOT, False: not told."""
    if any(pattern.gaps):
        return False
    leaves = true_leaves(names, from_position, to_position, key)
    return bool(naive.match(pattern, leaves, policy=policy, after_match="next", exclusive=False))


def true_leaves(
    names: Sequence[str], from_position: int = 1, to_position: int | None = None, key: str | None = None
) -> list[naive.Row]:
    leaves = []
    for at in range(0, len(names), LEAF):
        part = list(enumerate(names))[at : at + LEAF]
        held = frozenset(name for number, name in part if key is None or "kl"[number % 2] == key)
        low, high = part[0][0] + 1, part[-1][0] + 1
        if high >= from_position and low <= (to_position or len(names)):
            leaves.append(naive.Row(low, high, part[0][0] * 1000, part[-1][0] * 1000, held))
    return leaves


def test_an_order_that_the_tops_deny_reads_tops_alone() -> None:
    # B is in the first segments, A in the last ones: of A ; B no leaf is read.
    tree = Tree(["B"] * 40 + ["x"] * 400 + ["A"] * 40)
    early, whole, first, all_nodes = both(tree, tree.request("A ; B", verify=False))
    tops = 60
    assert (early, whole, first) == (False, False, tops)
    assert all_nodes > tops


def test_true_is_said_by_leaves_of_the_first_segments_that_have_it() -> None:
    tree = Tree(["A", "x", "B", "x", "x", "x", "x", "x"] * 100)
    early, whole, first, all_nodes = both(tree, tree.request("A ; B", verify=False))
    assert (early, whole) == (True, True)
    # 100 tops, and the 6 nodes below each of the first eight.
    assert (first, all_nodes) == (100 + 8 * 6, 100 + 100 * 6)


@pytest.mark.parametrize("structure", ["leveled", "uniform"])
@pytest.mark.parametrize(("policy", "after_match"), POLICIES)
def test_rows_are_those_of_all_nodes_from_the_segments_that_can_take_part(
    structure: str, policy: str, after_match: str
) -> None:
    rng = random.Random(f"{structure} {policy} {after_match}")
    some_read = all_read = rows = 0
    for number in range(60):
        # Names come and go, so that some segments are behind the last place of a name and before the first of another.
        parts = [rng.choice(["ABCD", "AB", "CD", "E"]) for _ in range(rng.randint(1, 8))]
        names = [rng.choice(part) for part in parts for _ in range(rng.randint(1, 25))]
        tree = Tree(names, structure, keys=("k", "l"))
        low = rng.randint(1, len(names))
        bounds = rng.choice([{}, {"from_position": low, "to_position": low + rng.randint(0, 60)}, {"key": "k"}])
        text = random_pattern(rng, window="key" not in bounds).text()
        request = tree.request(text, policy=policy, after_match=after_match, **bounds, verify=False)
        tree.read = 0
        early = answer(request.request, descend(tree, request))
        some_read, tree.read = some_read + tree.read, 0
        assert early.equals(answer(request.request, all_nodes_that_may_hold(tree, request))), (number, text)
        all_read, rows = all_read + tree.read, rows + early.num_rows
    assert rows
    assert some_read < all_read


def test_segments_before_the_first_and_behind_the_last_operand_are_left_out() -> None:
    # 30 segments of B alone, one with the only A, ten of x, one with B, 30 with nothing but x.
    tree = Tree(["B"] * 240 + ["A"] * 8 + ["x"] * 80 + ["B"] * 8 + ["x"] * 240)
    tree.read = 0
    request = tree.request("A ; B", verify=False)
    rows = answer(request.request, descend(tree, request))
    assert rows["first_position"].to_pylist() == [241]
    # The tops, and the 6 nodes below those of A and of the last B.
    assert tree.read == 72 + 2 * 6


def test_a_true_row_is_never_left_out_where_filters_err_often() -> None:
    rng = random.Random(5)
    rows = 0
    for number in range(60):
        names = [rng.choice(rng.choice(["ABCD", "EF", "EFGH"])) for _ in range(rng.randint(1, 40))]
        tree = Tree(names, fpq=0.3)
        pattern = random_pattern(rng, negation=False, conjunction=False, window=False)
        request = tree.request(pattern.text(), policy="skip_till_any", verify=False)
        table = answer(request.request, descend(tree, request))
        found = set(zip(*(table[name].to_pylist() for name in ("first_position", "last_position")), strict=True))
        leaves = true_leaves(names)
        matches = naive.match(pattern, leaves, policy="skip_till_any", after_match="next", exclusive=False)
        spans = {
            (min(leaves[row].lo for row, _ in chosen), max(leaves[row].hi for row, _ in chosen)) for chosen in matches
        }
        assert spans <= found, (number, pattern.text())
        rows += len(spans)
    assert rows


@pytest.mark.parametrize(
    ("text", "claims", "kept"),
    [
        ("A ; B", ["A", "", "B"], [True, False, True]),
        ("A ; B", ["B", "A", "B", "A"], [False, True, True, False]),
        ("A ; B", ["B", "A"], [False, False]),
        ("A ; B", ["", "AB", ""], [False, True, False]),
        ("A ; B ; C", ["C", "AC", "B", "A", "BC", "B"], [False, True, True, True, True, False]),
        ("A & B ; C", ["B", "A", "C"], [True, True, True]),
        ("A & B ; C", ["B", "C", "A"], [False, False, False]),
        ("A | C ; B", ["C", "B", "A"], [True, True, False]),
        ("A ; !D ; B", ["A", "D", "B"], [True, True, True]),
        ("A , B", ["A", "B", "B"], [True, True, True]),
    ],
)
def test_segments_that_can_take_part(text: str, claims: list[str], kept: list[bool]) -> None:
    pattern = compiled(text)
    held = np.array([[name in one for name in pattern.names] for one in claims], np.bool_)
    assert taking_part(pattern, held).tolist() == kept

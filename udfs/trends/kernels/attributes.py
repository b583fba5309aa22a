"""Attribute vertices with their edges, as tables keep them and analysts read them.

Source: Mei et al. 2021, sections 3 and 4.3, and SPEC section 5. Within a group (one pane and key, or one window and
key) the right values of a step cut the line of left values into disjoint ranges; a from-edge leads from the range of a
later event's left value to the event, a to-edge from an earlier event to at most two runs of ranges.

Departures from the paper: a cut lies just before or just after a value, so ranges say which of their ends they hold,
and no precision δ is needed. A step with several comparisons is shown by one: its first equality, else its first
comparison; the values of all of them stand in the event vertices. Ranges of several panes are re-cut at the union of
their bounds, which is the same as cutting for their joined vertices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.sort_keys import order_keys
from patternlake.udfs.trends.kernels.leaves import places
from patternlake.udfs.trends.kernels.vertices import Vertices
from patternlake.udfs.trends.query import TrendQuery


@dataclass(frozen=True)
class AttributeGraph:
    """The attribute vertices and edges of one step.

    Attributes
    ----------
    group, number
        int64[a]: group of each attribute vertex, and its number there, from 0 in the order of values.
    low, high
        Columns of a values: the ends of its range; NULL where it is open without end.
    holds_low, holds_high
        bool[a]: the range holds that end. A single value has both ends equal and held.
    from_group, from_number, from_vertex
        int64[f]: from-edges: attribute vertex (group, number), and row of `Vertices` that it leads to.
    to_vertex, to_group, to_first, to_last
        int64[t]: to-edges: row of `Vertices`, and the run of attribute vertices that it leads to, both ends inclusive.
    """

    group: IntArray
    number: IntArray
    low: Column
    high: Column
    holds_low: BoolArray
    holds_high: BoolArray
    from_group: IntArray
    from_number: IntArray
    from_vertex: IntArray
    to_vertex: IntArray
    to_group: IntArray
    to_first: IntArray
    to_last: IntArray


def attribute_graph(
    query: TrendQuery, step: int, vertices: Vertices, group: IntArray, *, ranges: bool = True, edges: bool = True
) -> AttributeGraph | None:
    """Attribute vertices and edges of one step.

    Parameters
    ----------
    query
        The compiled query.
    step
        Its number in ``query.steps``.
    vertices
        Event vertices.
    group
        int64[v]: what is cut together; codes of 0 or more.
    ranges, edges
        Whether attribute vertices, and whether edges are wanted; without, there are none of them.

    Returns
    -------
    AttributeGraph or None
        None for a step without a comparison: every later event is relevant.
    """
    numbers = query.steps[step].comparisons
    if not numbers:
        return None
    equal = [number for number in numbers if query.comparisons[number].operator == "="]
    number = (equal or list(numbers))[0]
    operator = query.comparisons[number].operator
    left, right = vertices.left[number], vertices.right[number]
    left_key, right_key = order_keys(left, right)
    later, earlier = np.flatnonzero(left.known), np.flatnonzero(right.known)
    # The values that cut: of equality those of both sides, so that each value is a vertex.
    sources = [(group[earlier], right_key[earlier], right.values[earlier])]
    if operator == "=":
        sources.append((group[later], left_key[later], left.values[later]))
    cut_group, cut_key, cut_value = (np.concatenate(parts) for parts in zip(*sources, strict=True))
    order = np.lexsort((cut_key, cut_group))
    cut_group, cut_key, cut_value = cut_group[order], cut_key[order], cut_value[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (cut_group[1:] != cut_group[:-1]) | (cut_key[1:] != cut_key[:-1])
    cut_group, cut_key, cut_value = cut_group[new], cut_key[new], cut_value[new]
    groups = np.unique(np.concatenate([cut_group, group[later]]))
    begin = np.searchsorted(cut_group, groups, "left")
    cuts = np.searchsorted(cut_group, groups, "right") - begin
    per_group = {"=": cuts, "<>": 2 * cuts + 1}.get(operator, cuts + 1)
    shown = per_group if ranges else np.zeros_like(per_group)
    total = int(shown.sum())
    of = np.repeat(np.arange(len(groups)), shown)
    at = np.arange(total) - np.repeat(np.cumsum(shown) - shown, shown)
    low_cut, high_cut, holds_low, holds_high = _ends(operator, at)
    first, last = low_cut >= 0, high_cut < cuts[of]

    def bound(cut: IntArray, known: BoolArray) -> Column:
        values = np.zeros(total, cut_value.dtype) if cut_value.dtype != object else np.full(total, "", object)
        values[known] = cut_value[(begin[of] + cut)[known]]
        return Column(values, known, left.type)

    if not edges:
        later, earlier = later[:0], earlier[:0]
    rank = _Ranks(cut_group, cut_key)
    below, upto = rank.of(group[later], left_key[later])
    to_vertex, to_group, to_first, to_last = _to_edges(
        operator, earlier, group, rank.of(group[earlier], right_key[earlier]), groups, per_group
    )
    return AttributeGraph(
        group=groups[of],
        number=at,
        low=bound(low_cut, first),
        high=bound(high_cut, last),
        holds_low=holds_low & first,
        holds_high=holds_high & last,
        from_group=group[later],
        from_number={"=": below, "<>": below + upto, ">": below, "<=": below}.get(operator, upto),
        from_vertex=later,
        to_vertex=to_vertex,
        to_group=to_group,
        to_first=to_first,
        to_last=to_last,
    )


class _Ranks:
    """Places among sorted (group, key) pairs."""

    def __init__(self, group: IntArray, key: IntArray) -> None:
        self.group, self.key = group, key

    def of(self, group: IntArray, key: IntArray) -> tuple[IntArray, IntArray]:
        """How many cuts of its group lie below each key, and how many at or below it."""
        begin = np.searchsorted(self.group, group, "left")
        return places(self.key, begin, np.searchsorted(self.group, group, "right"), key)


def _ends(operator: str, at: IntArray) -> tuple[IntArray, IntArray, BoolArray, BoolArray]:
    """The cuts between which range number `at` of its group lies, and whether it holds them."""
    if operator == "=":
        return at, at, np.ones(len(at), np.bool_), np.ones(len(at), np.bool_)
    if operator == "<>":
        single = at % 2 == 1
        return np.where(single, at // 2, at // 2 - 1), at // 2, single, single
    after = np.full(len(at), operator in (">", "<="))
    return at - 1, at, ~after, after


def _to_edges(
    operator: str, earlier: IntArray, group: IntArray, ranks: tuple[IntArray, IntArray], groups: IntArray,
    per_group: IntArray,
) -> tuple[IntArray, IntArray, IntArray, IntArray]:  # fmt: skip
    """Row, group, first and last range of each to-edge."""
    below = ranks[0]
    end = per_group[np.searchsorted(groups, group[earlier])] - 1
    if operator == "=":
        runs = [(below, below)]
    elif operator == "<>":
        runs = [(np.zeros_like(below), 2 * below), (2 * below + 2, end)]
    elif operator in (">", ">="):
        runs = [(below + 1, end)]
    else:
        runs = [(np.zeros_like(below), below)]
    first = np.concatenate([run[0] for run in runs])
    last = np.concatenate([run[1] for run in runs])
    rows = np.concatenate([earlier for _ in runs])
    return rows, group[rows], first, last

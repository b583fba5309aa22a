"""Patterns answered on nodes of the sketch: the relaxed policies.

Source: thesis 4.2-4.4 and SPEC section 2. The order of events inside a node is unknown, so a node never serves two
consecutive operands of a sequence, and matches that need it to are not seen. With that read into it, the promise is:
without NOT, existence is never lost; under ``skip_till_any``, and under ``strict`` with ``next`` and no AND, every true
row is there; under ``skip_till_next`` with ``next``, every true start is there with no later end. (There WITHIN a time
asks for this that times rise with positions: the nearest place is kept even if a later one has less time.)

Departures from the thesis: ``skip_till_any`` takes every operator; a match carries its own bound of being false.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.limits import too_many
from patternlake.udfs.policies import check_arguments
from patternlake.udfs.sketch.kernels.chains import is_chain, matches_of_chain
from patternlake.udfs.sketch.kernels.combinations import all_matches
from patternlake.udfs.sketch.kernels.greedy import matches_per_start
from patternlake.udfs.sketch.kernels.hits import Hits, Matches
from patternlake.udfs.sketch.kernels.search import Rows, greatest, least
from patternlake.udfs.sketch.query import Alternative, Layout, SketchPattern

Flag = tuple[Hashable, BoolArray]


def match_nodes_by_key(
    pattern: SketchPattern,
    hits: Hits,
    key_offsets: IntArray,
    *,
    policy: str = "skip_till_next",
    after_match: str = "past_last",
    max_matches: int = 1_000_000,
    truncate: bool = False,
) -> Matches:
    """Match a pattern on the nodes of one stream, for each of many keys.

    Parameters
    ----------
    pattern
        Compiled without verify (no DEFINE, no WHERE).
    hits
        Nodes sorted by (key, position); `present` and `fp` have a column for each of ``pattern.names``.
    key_offsets
        int64[keys + 1]: the nodes of key k are ``key_offsets[k]:key_offsets[k + 1]``; ``[0, len(hits)]`` without keys.
    policy
        ``strict``, ``skip_till_next`` or ``skip_till_any``.
    after_match
        ``past_last`` or ``next``; ignored under ``skip_till_any``.
    max_matches, truncate
        More rows than `max_matches`, of all keys together, are an error, or cut to the first by (key, first position,
        nodes in stream order).

    Returns
    -------
    Matches
        One row per match, one step per operand (an AND: per name), in text order.

    Raises
    ------
    ArgumentError
        An argument has no such value, or there are too many matches; the message says how many.
    """
    check_arguments(policy, after_match, max_matches)
    rows = node_rows(pattern, hits, np.ascontiguousarray(key_offsets, np.int64))
    total, key, found = search(rows, pattern.layout(policy), policy, after_match, max_matches, truncate)
    return _matches(pattern, hits, key, found, total)


def search(
    rows: Rows, layout: Layout, policy: str, after_match: str, max_matches: int, truncate: bool
) -> tuple[int, IntArray, IntArray]:
    """Run the kernel of a policy.

    Returns
    -------
    (total, int64[r], int64[r, slots])
        How many matches there are; key and row of each slot of those within the limit.

    Raises
    ------
    ArgumentError
        More than `max_matches`, and not `truncate`.
    """
    if policy == "skip_till_any":
        total, key, found = all_matches(rows, layout, max_matches, truncate)
    else:
        past_last = after_match == "past_last"
        key, found = (
            matches_of_chain(rows, past_last) if is_chain(layout) else matches_per_start(rows, layout, past_last)
        )
        total = len(key)
        key, found = key[:max_matches], found[:max_matches]
    if total > max_matches and not truncate:
        raise too_many(total, max_matches)
    return int(total), key, found


def node_rows(pattern: SketchPattern, hits: Hits, offsets: IntArray) -> Rows:
    """The nodes as rows of the kernels."""
    slots, gaps = _node_flags(pattern, hits)
    flags, slot, gap = flag_columns(slots, gaps)
    span_lo, span_hi = (hits.pos_lo, hits.pos_hi) if pattern.counted else (hits.time_lo, hits.time_hi)
    return Rows(
        offsets=offsets,
        lo=np.ascontiguousarray(hits.pos_lo, np.int64),
        hi=np.ascontiguousarray(hits.pos_hi, np.int64),
        span_lo=np.ascontiguousarray(span_lo, np.int64),
        span_hi=np.ascontiguousarray(span_hi, np.int64),
        within=np.int64(pattern.within.amount if pattern.within else -1),
        flags=flags,
        slot=slot,
        gap=gap,
        exclusive=False,
    )


def _node_flags(pattern: SketchPattern, hits: Hits) -> tuple[list[list[Flag]], list[list[Flag]]]:
    """For each alternative of each slot, and each negated name of each gap, the nodes that hold it."""

    def flag(choice: Alternative) -> Flag:
        return choice.name, hits.present[:, pattern.names.index(choice.name)]

    return [[flag(c) for c in slot.alternatives] for slot in pattern.slots], [
        [flag(c) for c in g] for g in pattern.gaps
    ]


def flag_columns(
    slots: Sequence[Sequence[Flag]], gaps: Sequence[Sequence[Flag]]
) -> tuple[BoolArray, IntArray, IntArray]:
    """What each row holds, a column per distinct slot or gap.

    Parameters
    ----------
    slots, gaps
        For each alternative of a slot, or negated name of a gap, the rows that may be it (bool[n]), with an identity
        that is equal for equal flags.

    Returns
    -------
    (bool[n, c], int64[slots], int64[gaps])
        Flags, the column of each slot, the column of each gap (-1: it forbids nothing).
    """
    known: dict[tuple[Hashable, ...], int] = {}
    columns: list[BoolArray] = []

    def column(flags: Sequence[Flag]) -> int:
        key = tuple(identity for identity, _ in flags)
        if key not in known:
            known[key] = len(columns)
            columns.append(np.logical_or.reduce([held for _, held in flags]))
        return known[key]

    slot = np.array([column(flags) for flags in slots], np.int64)
    gap = np.array([column(flags) if flags else -1 for flags in gaps], np.int64)
    return np.ascontiguousarray(np.stack(columns, axis=1), np.bool_), slot, gap


def first_choices(slots: Sequence[Sequence[Flag]], found: IntArray) -> IntArray:
    """For each step, the first alternative in text order that its row may be: int64[r, slots]."""
    choice = np.zeros(found.shape, np.int64)
    for place, flags in enumerate(slots):
        undecided = np.ones(len(found), np.bool_)
        for index, (_, held) in enumerate(flags[:-1]):
            undecided &= ~held[found[:, place]]
            choice[undecided, place] = index + 1
    return choice


def labels_of(pattern: SketchPattern, choice: IntArray) -> NDArray[np.int32]:
    """The index into ``SketchPattern.labels`` of each step: int32[r, slots]."""
    sizes = [len(slot.alternatives) for slot in pattern.slots]
    return (choice + (np.cumsum(sizes) - sizes)).astype(np.int32)


def span_of_rows(pattern: SketchPattern, found: IntArray) -> tuple[IntArray, IntArray]:
    """First and last row of each match: int64[r] each. An AND at an end may begin or end with any of its names."""
    return least(found[:, : pattern.blocks[1]]), greatest(found[:, pattern.blocks[-2] :])


def _matches(pattern: SketchPattern, hits: Hits, key: IntArray, found: IntArray, total: int) -> Matches:
    """Rows of the answer from the rows of the search."""
    column = {name: place for place, name in enumerate(pattern.names)}
    first, last = span_of_rows(pattern, found)
    certain = np.ones(len(found), np.float64)
    for place, slot in enumerate(pattern.slots):
        rows = found[:, place]
        for name in {choice.name for choice in slot.alternatives}:
            probed = hits.present[rows, column[name]]
            certain *= np.where(probed, 1.0 - hits.fp[rows, column[name]], 1.0)
    return Matches(
        key=key,
        operand=labels_of(pattern, first_choices(_node_flags(pattern, hits)[0], found)),
        step_lo=hits.pos_lo[found],
        step_hi=hits.pos_hi[found],
        first_position=hits.pos_lo[first],
        last_position=hits.pos_hi[last],
        first_time=hits.time_lo[first],
        last_time=hits.time_hi[last],
        level=hits.level[found].max(axis=1, initial=0).astype(np.int8),
        fp_bound=1.0 - certain,
        total=total,
        truncated=len(key) < total,
    )

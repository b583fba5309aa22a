"""The scan of ``skip_till_next`` and ``strict`` itself: comparisons of two values are judged inside.

Source: SPEC section 3; see `scanning` for how an event finds its operand.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.kleene.kernels import runs

ENDLESS = 1 << 62
"""Stands for "as many as there are", and for "no such event"."""


class Scan(NamedTuple):
    """A linearization and its events, as the kernel takes them.

    Attributes
    ----------
    least, most
        int64[k]: how many events each operand takes.
    mask
        bool[k, m]: which events it takes.
    following
        int64[k, m + 1]: the next such event from each one on, else `ENDLESS`.
    left, right
        int64[c]: operands of both sides of each comparison; equal where it compares neighbours.
    operator
        int64[c]: see `runs.OPERATORS`.
    left_key, right_key
        int64[c, m].
    left_known, right_known
        bool[c, m].
    reach, stop
        int64[m]: `Stream.reach`, and one behind the last event of the part.
    ordinal
        int64[m].
    strict
        Whether events follow one another directly.
    apart
        Whether a match begins behind the last event of the one before it in its part.
    """

    least: IntArray
    most: IntArray
    mask: BoolArray
    following: IntArray
    left: IntArray
    right: IntArray
    operator: IntArray
    left_key: IntArray
    right_key: IntArray
    left_known: BoolArray
    right_known: BoolArray
    reach: IntArray
    stop: IntArray
    ordinal: IntArray
    strict: bool
    apart: bool


@njit(cache=True)
def following_of(mask: BoolArray) -> IntArray:
    """`Scan.following`."""
    operands, m = mask.shape
    following = np.full((operands, m + 1), ENDLESS, np.int64)
    for operand in range(operands):
        for event in range(m - 1, -1, -1):
            following[operand, event] = event if mask[operand, event] else following[operand, event + 1]
    return following


@njit(cache=True)
def qualifies(scan: Scan, kept: IntArray, begin: IntArray, count: IntArray, place: int, event: int) -> bool:
    """Whether an operand may take an event: comparisons hold against everything kept."""
    if not scan.mask[place, event]:
        return False
    for number in range(len(scan.left)):
        left, right = scan.left[number], scan.right[number]
        if place not in (left, right):
            continue
        other = right if place == left else left
        low, high = begin[other], begin[other] + count[other]
        if left == right:
            low = max(low, high - 1)
        for at in range(low, high):
            a, b = (event, kept[at]) if place == left else (kept[at], event)
            if not (scan.left_known[number, a] and scan.right_known[number, b]):
                return False
            first, second = scan.left_key[number, a], scan.right_key[number, b]
            sign = scan.operator[number]
            if sign == runs.EQUAL:
                holds = first == second
            elif sign == runs.UNEQUAL:
                holds = first != second
            elif sign == runs.LESS:
                holds = first < second
            elif sign == runs.LESS_EQUAL:
                holds = first <= second
            elif sign == runs.GREATER:
                holds = first > second
            else:
                holds = first >= second
            if not holds:
                return False
    return True


@njit(cache=True)
def scanned(scan: Scan, most: int) -> tuple[IntArray, IntArray, IntArray]:
    """The match of each start: offsets, events, and the operand's place of each; no offsets beyond `most` events."""
    operands, m = scan.mask.shape
    offsets = np.zeros(1025, np.int64)
    events, places = np.empty(1024, np.int64), np.empty(1024, np.int64)
    found = 0
    kept = np.empty(1024, np.int64)
    begin, count = np.zeros(operands, np.int64), np.zeros(operands, np.int64)
    resume = 0
    for start in range(m):
        if scan.apart and start < resume:
            continue
        begin[:] = 0
        count[:] = 0
        size, at, event = 0, 0, start
        limit = min(scan.reach[start], scan.stop[start])
        while event < limit:
            matching_operand = -1
            nearest = ENDLESS
            for place in range(at, operands):
                if count[place] < scan.most[place]:
                    nearest = min(nearest, scan.following[place, event + 1])
                    if qualifies(scan, kept, begin, count, place, event):
                        matching_operand = place
                if count[place] < scan.least[place]:
                    break
            if matching_operand < 0:
                if scan.strict or size == 0:
                    break
                event = nearest
                continue
            if matching_operand != at or count[matching_operand] == 0:
                begin[matching_operand] = size
            at = matching_operand
            if size == len(kept):
                kept = np.concatenate((kept, np.empty(size, np.int64)))
            kept[size] = event
            size += 1
            count[at] += 1
            if at == operands - 1 and count[at] == scan.most[at]:
                break
            if scan.strict and (event + 1 >= limit or scan.ordinal[event + 1] != scan.ordinal[event] + 1):
                break
            event += 1
        whole = size > 0
        for place in range(operands):
            whole = whole and count[place] >= scan.least[place]
        if not whole:
            continue
        resume = kept[size - 1] + 1
        used = offsets[found]
        if used + size > most:
            return np.empty(0, np.int64), events[:0].copy(), places[:0].copy()
        while used + size > len(events):
            events = np.concatenate((events, np.empty(len(events), np.int64)))
            places = np.concatenate((places, np.empty(len(places), np.int64)))
        if found + 2 > len(offsets):
            offsets = np.concatenate((offsets, np.empty(len(offsets), np.int64)))
        events[used : used + size] = kept[:size]
        for place in range(operands):
            if count[place]:
                places[used + begin[place] : used + begin[place] + count[place]] = place
        found += 1
        offsets[found] = used + size
    return offsets[: found + 1].copy(), events[: offsets[found]].copy(), places[: offsets[found]].copy()

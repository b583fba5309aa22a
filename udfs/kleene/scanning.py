"""``skip_till_next`` and ``strict``: one scan from each event that can start a match.

Source: SPEC section 3. The scan holds one operand open. An event is taken by the last operand in order that can take it:
one that qualifies against everything kept, with every operand before it full enough; an open ``+``, ``*`` or ``[n]``
takes more. Under ``strict`` each event of the partition must be taken. Comparisons of two values are judged inside the
scan; a line with a condition of another form is scanned event by event with the evaluator, which is slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numba import njit

from patternlake.udfs.kleene import answers, runs
from patternlake.udfs.kleene.answers import Rows
from patternlake.udfs.kleene.collecting import Collected
from patternlake.udfs.kleene.comparisons import Comparison, comparison
from patternlake.udfs.kleene.events import BoolArray, IntArray, Stream
from patternlake.udfs.kleene.gaps import free_of_negated
from patternlake.udfs.kleene.joins import Joiner
from patternlake.udfs.kleene.layout import Layout, Slot
from patternlake.udfs.kleene.orders import Line
from patternlake.udfs.kleene.pattern import Condition, KleenePattern
from patternlake.udfs.language.references import Reference

ENDLESS = 1 << 62
"""Stands for "as many as there are", and for "no such event"."""


class Scan(NamedTuple):
    """A line and its events, as the kernel takes them.

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


def per_start(pattern: KleenePattern, stream: Stream, *, strict: bool, past_last: bool) -> Rows:
    """The matches, one at most for each first event.

    Parameters
    ----------
    pattern
        Without ``&``.
    stream
        Its events.
    strict
        True: ``strict``, False: ``skip_till_next``.
    past_last
        True: a match begins behind the last event of the match before it, in its partition.
    """
    parts: list[Rows] = []
    lines: list[IntArray] = []
    for number, line in enumerate(pattern.lines):
        rows = _of_line(pattern, line, stream, strict)
        parts.append(rows)
        lines.append(np.full(len(rows.events), number, np.int64))
    rows = answers.stacked([answers.no_rows(), *parts])
    if not len(rows):
        return rows
    line_of = np.concatenate(lines)
    first = rows.events[rows.offsets[:-1]]
    # Of one start the least events count, then the first line.
    order, _ = answers.sort_rows(np.argsort(first, kind="stable"), first, rows.offsets, rows.events, line_of)
    best = order[np.append(True, first[order][1:] != first[order][:-1])]
    rows = rows.take(best)
    rows = Rows(rows.offsets, stream.source[rows.events], rows.operands)
    first, last = rows.events[rows.offsets[:-1]], rows.events[rows.offsets[1:] - 1]
    order = np.argsort(first, kind="stable")
    return rows.take(order[_apart(first[order], last[order])] if past_last else order)


@njit(cache=True)
def _apart(first: IntArray, last: IntArray) -> BoolArray:
    """Which matches begin behind the last event of the one kept before."""
    kept = np.zeros(len(first), np.bool_)
    resume = -1
    for row in range(len(first)):
        if first[row] > resume:
            kept[row] = True
            resume = last[row]
    return kept


def _of_line(pattern: KleenePattern, line: Line, stream: Stream, strict: bool) -> Rows:
    """The matches of a line, whose gaps are free."""
    taken = [pattern.operands[number] for number in line.operands]
    conditions = [part for part in pattern.conditions if set(part.operands) <= set(line.operands)]
    judged = [part for part in conditions if part.negated is None]
    compared = [_comparison(part, stream) for part in judged]
    mask = np.zeros((len(taken), len(stream)), np.bool_)
    for place, number in enumerate(line.operands):
        mask[place, stream.members[number]] = True
    scan = _scan(line, stream, mask, [made for made in compared if made is not None], strict)
    scan = scan._replace(
        least=np.array([operand.least for operand in taken], np.int64),
        most=np.array([ENDLESS if operand.most is None else operand.most for operand in taken], np.int64),
    )
    layout = _layout(line, pattern, conditions)
    joiner = Joiner(stream, layout, 0, 0, 0)
    rest = [part for part, made in zip(judged, compared, strict=True) if made is None]
    offsets, events, places = _slowly(scan, joiner, line, rest) if rest else _scanned(scan)
    rows = Rows(offsets, events, np.array(line.operands, np.int64)[places])
    if line.gaps and len(rows):
        rows = rows.take(np.flatnonzero(free_of_negated(joiner, _collected(layout, stream, rows))))
    return rows


def _comparison(condition: Condition, stream: Stream) -> tuple[int, int, Comparison] | None:
    """(operand on the left, operand on the right, comparison) of a condition that is one."""
    if condition.before is not None:
        if condition.operands != (condition.before,):
            return None
        made = comparison(condition.predicate, lambda reference: reference.index != "i-1", stream)
        return None if made is None else (condition.before, condition.before, made)
    if len(condition.operands) != 2:
        return None
    made = comparison(condition.predicate, lambda reference: reference.operand == condition.names[0], stream)
    return None if made is None else (*condition.operands, made)


def _scan(
    line: Line, stream: Stream, mask: BoolArray, made: Sequence[tuple[int, int, Comparison]], strict: bool
) -> Scan:
    m = len(stream)
    place = {number: at for at, number in enumerate(line.operands)}

    def stack(arrays: Sequence[IntArray] | Sequence[BoolArray], dtype: type) -> IntArray:
        return np.stack(arrays) if arrays else np.zeros((0, m), dtype)

    nothing = np.zeros(0, np.int64)
    return Scan(
        least=nothing,
        most=nothing,
        mask=mask,
        following=_following(mask),
        left=np.array([place[left] for left, _, _ in made], np.int64),
        right=np.array([place[right] for _, right, _ in made], np.int64),
        operator=np.array([runs.OPERATORS[part.operator] for _, _, part in made], np.int64),
        left_key=stack([part.left for _, _, part in made], np.int64),
        right_key=stack([part.right for _, _, part in made], np.int64),
        left_known=stack([part.left_known for _, _, part in made], np.bool_).astype(np.bool_),
        right_known=stack([part.right_known for _, _, part in made], np.bool_).astype(np.bool_),
        reach=stream.reach,
        stop=stream.offsets[stream.part + 1],
        ordinal=np.ascontiguousarray(stream.ordinal),
        strict=strict,
    )


def _layout(line: Line, pattern: KleenePattern, conditions: list[Condition]) -> Layout:
    """A slot for each operand."""
    slots = tuple(Slot(n, "group" if pattern.operands[n].repeated else "one", 1) for n in line.operands)
    of_operand = {number: (slot,) for slot, number in enumerate(line.operands)}
    negations = tuple(part for part in conditions if part.negated is not None)
    return Layout(line, slots, of_operand, (), frozenset(), (), (), (), (), negations)


def _collected(layout: Layout, stream: Stream, rows: Rows) -> Collected:
    """Rows as matches by slot."""
    k = len(rows)
    match = np.repeat(np.arange(k), np.diff(rows.offsets))
    ones: dict[int, IntArray] = {}
    lists: dict[int, tuple[IntArray, IntArray]] = {}
    for number, slot in enumerate(layout.slots):
        own = np.flatnonzero(rows.operands == slot.operand)
        if slot.kind == "one":
            ones[number] = rows.events[own]
        else:
            lists[number] = (np.searchsorted(match[own], np.arange(k + 1)).astype(np.int64), rows.events[own])
    return Collected(stream.part[rows.events[rows.offsets[:-1]]], ones, lists)


@njit(cache=True)
def _following(mask: BoolArray) -> IntArray:
    operands, m = mask.shape
    following = np.full((operands, m + 1), ENDLESS, np.int64)
    for operand in range(operands):
        for event in range(m - 1, -1, -1):
            following[operand, event] = event if mask[operand, event] else following[operand, event + 1]
    return following


@njit(cache=True)
def _qualifies(scan: Scan, kept: IntArray, begin: IntArray, count: IntArray, place: int, event: int) -> bool:
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
def _scanned(scan: Scan) -> tuple[IntArray, IntArray, IntArray]:
    """The match of each start: offsets, events, and the operand's place of each."""
    operands, m = scan.mask.shape
    offsets = np.zeros(1025, np.int64)
    events, places = np.empty(1024, np.int64), np.empty(1024, np.int64)
    found = 0
    kept = np.empty(1024, np.int64)
    begin, count = np.zeros(operands, np.int64), np.zeros(operands, np.int64)
    for start in range(m):
        begin[:] = 0
        count[:] = 0
        size, at, event = 0, 0, start
        limit = min(scan.reach[start], scan.stop[start])
        while event < limit:
            taker = -1
            nearest = ENDLESS
            for place in range(at, operands):
                if count[place] < scan.most[place]:
                    nearest = min(nearest, scan.following[place, event + 1])
                    if _qualifies(scan, kept, begin, count, place, event):
                        taker = place
                if count[place] < scan.least[place]:
                    break
            if taker < 0:
                if scan.strict or size == 0:
                    break
                event = nearest
                continue
            if taker != at or count[taker] == 0:
                begin[taker] = size
            at = taker
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
        used = offsets[found]
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


def _slowly(scan: Scan, joiner: Joiner, line: Line, rest: Sequence[Condition]) -> tuple[IntArray, IntArray, IntArray]:
    """As `_scanned`, with conditions that only the evaluator can judge."""
    place_of = {number: place for place, number in enumerate(line.operands)}
    operands = len(line.operands)
    offsets: list[int] = [0]
    events: list[int] = []
    places: list[int] = []
    nothing = np.zeros(0, np.int64)

    def judged(kept: list[list[int]], place: int, event: int) -> bool:
        for condition in rest:
            own = [place_of[number] for number in condition.operands]
            others = [kept[other] for other in own if other != place]
            if place not in own or not all(others):
                continue
            before = condition.before is not None and place_of[condition.before]
            pairs: list[list[tuple[int, int]]] = []
            for other in own:
                if condition.before is not None and other == before:
                    run = [*kept[other], event] if other == place else kept[other]
                    both = list(zip(run[:-1], run[1:], strict=True))
                    pairs.append(both[-1:] if other == place else both)
                else:
                    pairs.append([(one, one) for one in ([event] if other == place else kept[other])])
            chosen = list(product(*pairs))
            if not chosen:
                continue
            table = np.array(chosen, np.int64)
            at = dict(zip(condition.names, range(len(own)), strict=True))
            event_of: dict[Reference, IntArray] = {
                reference: table[:, at[reference.operand or ""], 0 if reference.index == "i-1" else 1]
                for reference in condition.predicate.references
            }
            if not joiner.judged(condition.predicate, event_of, len(table)).all():
                return False
        return True

    for start in range(scan.mask.shape[1]):
        kept: list[list[int]] = [[] for _ in range(operands)]
        at = 0
        event, limit = start, min(int(scan.reach[start]), int(scan.stop[start]))
        while event < limit:
            flat = np.array([one for run in kept for one in run], np.int64) if start < event else nothing
            count = np.array([len(run) for run in kept], np.int64)
            begin = np.cumsum(count) - count
            taker = -1
            for place in range(at, operands):
                may = count[place] < scan.most[place] and _qualifies(scan, flat, begin, count, place, event)
                if may and judged(kept, place, event):
                    taker = place
                if count[place] < scan.least[place]:
                    break
            if taker < 0:
                if scan.strict or event == start:
                    break
                event += 1
                continue
            at = taker
            kept[at].append(event)
            if at == operands - 1 and len(kept[at]) == scan.most[at]:
                break
            if scan.strict and (event + 1 >= limit or scan.ordinal[event + 1] != scan.ordinal[event] + 1):
                break
            event += 1
        if any(kept) and all(len(run) >= least for run, least in zip(kept, scan.least.tolist(), strict=True)):
            for place, run in enumerate(kept):
                events += run
                places += [place] * len(run)
            offsets.append(len(events))
    return np.array(offsets, np.int64), np.array(events, np.int64), np.array(places, np.int64)

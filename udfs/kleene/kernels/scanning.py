"""``skip_till_next`` and ``strict``: one scan from each event that can start a match.

Source: SPEC section 3. The scan holds one operand open. An event is taken by the last operand in order that can take
it: one that qualifies against everything kept, with every operand before it full enough; an open ``+``, ``*`` or
``[n]`` takes more. Under ``strict`` each event of the partition must be taken. Each way of the pattern's alternatives
is scanned by itself, and of one start the first way that gives a match counts. Comparisons of two values are judged
inside the scan; conditions of other forms by the evaluator, for many scans at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.kleene.events import Stream
from patternlake.udfs.kleene.kernels import aggregates, bindings, judged_scans, runs
from patternlake.udfs.kleene.kernels.bindings import Rows
from patternlake.udfs.kleene.kernels.collecting import Collected
from patternlake.udfs.kleene.kernels.comparisons import Comparison, comparison
from patternlake.udfs.kleene.kernels.gaps import free_of_negated
from patternlake.udfs.kleene.kernels.joins import Joiner
from patternlake.udfs.kleene.kernels.scans import ENDLESS, Scan, following_of, scanned
from patternlake.udfs.kleene.layout import Layout, Slot
from patternlake.udfs.kleene.linearizations import Linearization
from patternlake.udfs.kleene.query import Condition, KleenePattern


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
    ways = pattern.ways
    # Where nothing else decides which matches count, the scan itself leaves out the starts inside a match.
    filtered = bool(pattern.linearizations[0].gaps or pattern.aggregate_conditions)
    apart = past_last and len(ways) == 1 and not filtered and not pattern.along
    for linearization, left_out in ways:
        parts.append(_of_way(pattern, linearization, left_out, stream, strict, apart))
    rows = bindings.stacked([bindings.no_rows(), *parts])
    if not len(rows):
        return rows
    way_of = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    first = rows.events[rows.offsets[:-1]]
    order = np.lexsort((way_of, first))
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


def _of_way(
    pattern: KleenePattern,
    linearization: Linearization,
    left_out: frozenset[int],
    stream: Stream,
    strict: bool,
    apart: bool,
) -> Rows:
    """The matches of a linearization without some operands, whose gaps are free and whose aggregates are as asked."""
    numbers = linearization.operands
    conditions = [part for part in pattern.conditions if set(part.operands) <= set(linearization.operands)]
    judged = [part for part in conditions if part.negated is None]
    compared = [_comparison(part, stream) for part in judged]
    mask = np.zeros((len(numbers), len(stream)), np.bool_)
    for place, number in enumerate(numbers):
        mask[place, stream.members[number]] = True
    scan = _scan(linearization, stream, mask, [made for made in compared if made is not None], strict)
    scan = scan._replace(
        apart=apart,
        least=np.array([0 if number in left_out else max(1, pattern.operands[number].least) for number in numbers]),
        most=np.array([0 if number in left_out else pattern.operands[number].most or ENDLESS for number in numbers]),
    )
    layout = _layout(linearization, pattern, conditions)
    joiner = Joiner(stream, layout, 0, 0, 0)
    rest = [part for part, made in zip(judged, compared, strict=True) if made is None]
    most = bindings.MOST_BOUND
    if rest:
        offsets, events, places = judged_scans.scanned(scan, joiner, linearization, rest, most)
    else:
        offsets, events, places = scanned(scan, most)
    if not len(offsets):
        raise bindings.too_long()
    rows = Rows(offsets, events, np.array(linearization.operands, np.int8)[places])
    if linearization.gaps and len(rows):
        rows = rows.take(np.flatnonzero(free_of_negated(joiner, _collected(layout, stream, rows))))
    if pattern.aggregate_conditions and len(rows):
        rows = rows.take(np.flatnonzero(aggregates.holding(pattern, stream, layout, _collected(layout, stream, rows))))
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
    linearization: Linearization,
    stream: Stream,
    mask: BoolArray,
    made: Sequence[tuple[int, int, Comparison]],
    strict: bool,
) -> Scan:
    m = len(stream)
    place = {number: at for at, number in enumerate(linearization.operands)}

    def stack(arrays: Sequence[IntArray] | Sequence[BoolArray], dtype: type) -> IntArray:
        return np.stack(arrays) if arrays else np.zeros((0, m), dtype)

    nothing = np.zeros(0, np.int64)
    return Scan(
        least=nothing,
        most=nothing,
        mask=mask,
        following=following_of(mask),
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
        apart=False,
    )


def _layout(linearization: Linearization, pattern: KleenePattern, conditions: list[Condition]) -> Layout:
    """A slot for each operand."""
    slots = tuple(Slot(n, "group" if pattern.operands[n].repeated else "one", 1) for n in linearization.operands)
    of_operand = {number: (slot,) for slot, number in enumerate(linearization.operands)}
    negations = tuple(part for part in conditions if part.negated is not None)
    return Layout(linearization, slots, of_operand, (), frozenset(), (), (), (), (), negations, {})


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

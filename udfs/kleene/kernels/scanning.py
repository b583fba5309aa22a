"""``skip_till_next`` and ``strict``: one scan from each event that can start a match.

Source: SPEC section 3. What a scan has taken says which operands may take the next event (`steps`), and of those that
it suits the furthest in the order takes it: one that qualifies against everything kept, with every operand before it
full enough. Under ``strict`` each event of the partition must be taken. Each way of the pattern is scanned by itself,
and of one start the first way that gives a match counts. Comparisons of two values are judged inside the scan;
conditions of other forms by the evaluator, for many scans at once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numba import njit

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.kleene.aggregate_conditions import SteeringCondition
from patternlake.udfs.kleene.events import Stream
from patternlake.udfs.kleene.kernels import aggregates, bindings, judged_scans
from patternlake.udfs.kleene.kernels.awaiting import first_awaited
from patternlake.udfs.kleene.kernels.bindings import Rows
from patternlake.udfs.kleene.kernels.collecting import Collected
from patternlake.udfs.kleene.kernels.comparisons import Comparison, comparison, comparisons_of
from patternlake.udfs.kleene.kernels.gaps import free_of_negated
from patternlake.udfs.kleene.kernels.joins import Joiner
from patternlake.udfs.kleene.kernels.judged_scans import JudgedCondition
from patternlake.udfs.kleene.kernels.scans import Scan, following_of, scanned
from patternlake.udfs.kleene.kernels.steps import Program, program_of
from patternlake.udfs.kleene.layout import Layout, Slot
from patternlake.udfs.kleene.query import Condition, KleenePattern
from patternlake.udfs.kleene.ways import EVENT, Way
from patternlake.udfs.policies import operand_after


def per_start(pattern: KleenePattern, stream: Stream, *, strict: bool, after_match: str) -> Rows:
    """The matches, of one way for each first event.

    Parameters
    ----------
    pattern
        The pattern.
    stream
        Its events.
    strict
        True: ``strict``, False: ``skip_till_next``.
    after_match
        Where a match begins in its partition: ``next``, ``past_last`` (behind the last event of the one before it),
        ``first b`` or ``last b`` (at that event of it).

    Raises
    ------
    ArgumentError
        A match has no event of the operand that `after_match` names, or begins with it.
    """
    assert pattern.ways, "the pattern is compiled for skip_till_any"
    parts: list[Rows] = []
    # Where nothing else decides which matches count, the scan itself leaves out the starts inside a match.
    filtered = bool(pattern.linearizations[0].gaps or pattern.aggregate_conditions)
    alone = len(pattern.ways) == 1 and not pattern.every
    apart = after_match == "past_last" and alone and not filtered and not pattern.along
    rank_of = rank_ways(pattern)
    for way in pattern.ways:
        parts.append(_of_way(pattern, way, stream, strict, apart))
    rows = bindings.stacked([bindings.no_rows(), *parts])
    if not len(rows):
        return rows
    rank = np.repeat(np.array(rank_of, np.int64), [len(part) for part in parts])
    first = rows.events[rows.offsets[:-1]]
    order = np.lexsort((rank, first))
    begins = np.append(True, first[order][1:] != first[order][:-1])
    # Of each start the first way with a match counts.
    best = rank[order][np.flatnonzero(begins)[np.cumsum(begins) - 1]]
    rows = rows.take(order[rank[order] == best])
    rows = Rows(rows.offsets, stream.source[rows.events], rows.operands)
    if pattern.every:
        rows = bindings.first_rows([rows], stream.events, len(rows))
    rows = rows.take(np.argsort(rows.events[rows.offsets[:-1]], kind="stable"))
    if after_match == "next":
        return rows
    first, resume = rows.events[rows.offsets[:-1]], _resumed(pattern, rows, after_match)
    kept = _apart(first, resume)
    wrong = np.flatnonzero(kept & (resume <= first))
    if len(wrong):
        position = int(stream.events.positions[first[wrong[0]]])
        raise _cannot_resume(after_match, position, begins=resume[wrong[0]] >= 0)
    return rows.take(np.flatnonzero(kept))


def rank_ways(pattern: KleenePattern) -> list[int]:
    """Which of the ways that are tried one after another each way belongs to."""
    # Where every choice of how many is asked for, those ways are one that differ in what takes none.
    return [at if not pattern.every else pattern.linearizations.index(way.order) for at, way in enumerate(pattern.ways)]


def _resumed(pattern: KleenePattern, rows: Rows, after_match: str) -> IntArray:
    """int64[k]: the event at which the search goes on behind each match; -1 where it has no such event."""
    named = operand_after(after_match)
    if named is None:
        return rows.events[rows.offsets[1:] - 1] + 1
    word, name = named
    number = next(number for number in pattern.positive if pattern.operands[number].name == name)
    at = np.flatnonzero(rows.operands == number)
    match = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))[at]
    resume = np.full(len(rows), -1, np.int64)
    # Of several assignments to one place the last one stays.
    at, match = (at[::-1], match[::-1]) if word == "first" else (at, match)
    resume[match] = rows.events[at]
    return resume


def _cannot_resume(after_match: str, position: int, *, begins: bool) -> ArgumentError:
    named = operand_after(after_match)
    name = named[1] if named is not None else ""
    what = "begins with" if begins else "has no event of"
    why = f"after_match => {after_match!r}: the match that begins at position {position} {what} {name}"
    return ArgumentError(
        f"{why}, so that there is no later event of it to go on at; name another operand, or write "
        "'past_last' or 'next'"
    )


@njit(cache=True)
def _apart(first: IntArray, resume: IntArray) -> BoolArray:
    """Which matches begin where the search goes on behind those kept before, or later; those of one start together."""
    kept = np.zeros(len(first), np.bool_)
    start, least = -1, 0
    for row in range(len(first)):
        if first[row] >= least or first[row] == start:
            kept[row] = True
            start = first[row]
            least = max(least, resume[row])
    return kept


def reached(pattern: KleenePattern, way: Way, stream: Stream, *, strict: bool) -> tuple[Rows, IntArray]:
    """What each start has taken in a way when nothing goes on and it is not complete, whatever must be absent; where
    every place to stop is asked for, of each of these. Events are given by their number in the stream.

    Returns
    -------
    (Rows, int64[r])
        And the operand that each awaits.
    """
    return _taken(pattern, way, stream, strict, apart=False, begun=True)


def taken_from(
    pattern: KleenePattern, way: Way, stream: Stream, starts: BoolArray, *, strict: bool
) -> tuple[Rows, IntArray]:
    """What each of some starts takes in a way, whatever must be absent, complete or not; an event that the way cannot
    begin with takes nothing. Events are given by their number in the stream.

    Returns
    -------
    (Rows, int64[r])
        And the operand that each awaits; -1 for a complete one.
    """
    scanner = _Scanner(pattern, way, stream, strict, apart=False, begun=True)
    # What awaits nothing but what may be left out has begun, too.
    awaits = first_awaited(scanner.steps.root, optional=True)
    scans = [scanner.scan._replace(starts=starts, awaits=awaits, begun=begun) for begun in (False, True)]
    rows, awaited = zip(*map(scanner.taken, scans), strict=True)
    return bindings.stacked(rows), np.concatenate(awaited)


def _of_way(pattern: KleenePattern, way: Way, stream: Stream, strict: bool, apart: bool) -> Rows:
    """The matches of a way whose gaps are free and whose aggregates are as asked."""
    rows, _ = _taken(pattern, way, stream, strict, apart=apart, begun=False)
    return keep_holding(pattern, way, layout_of_way(way, conditions_of(pattern, way.operands)), stream, rows)


def keep_holding(pattern: KleenePattern, way: Way, layout: Layout, stream: Stream, rows: Rows) -> Rows:
    """Those of some rows of a way whose gaps are free and whose aggregates are as asked; events by number in the
    stream.
    """
    if way.order.gaps and len(rows):
        joiner = Joiner(stream, layout, 0, 0, 0)
        rows = rows.take(np.flatnonzero(free_of_negated(joiner, collected_rows(layout, stream, rows))))
    if pattern.aggregate_conditions and len(rows):
        held = aggregates.holding(pattern, stream, layout, collected_rows(layout, stream, rows))
        rows = rows.take(np.flatnonzero(held))
    return rows


def _taken(
    pattern: KleenePattern, way: Way, stream: Stream, strict: bool, *, apart: bool, begun: bool
) -> tuple[Rows, IntArray]:
    """What the scans of a way take, and the operand that each awaits; -1 for a match."""
    scanner = _Scanner(pattern, way, stream, strict, apart=apart, begun=begun)
    return scanner.taken(scanner.scan)


class _Scanner:
    """Scans the events of a stream in one way.

    Attributes
    ----------
    steps
        The way.
    scan
        It and its events as the kernels take them.
    """

    def __init__(
        self, pattern: KleenePattern, way: Way, stream: Stream, strict: bool, *, apart: bool, begun: bool
    ) -> None:
        self.numbers = way.operands
        judged = [part for part in conditions_of(pattern, self.numbers) if part.negated is None]
        self.steps = StepsOfWay(way, every=pattern.every)
        compared = [comparison_of(part, stream) for part in judged]
        mask = np.zeros((len(self.numbers), len(stream)), np.bool_)
        for place, number in enumerate(self.numbers):
            mask[place, stream.members[number]] = True
        known = [made for made in compared if made is not None]
        self.scan = scan_of(self.steps, stream, mask, known, strict, apart, begun)
        self.rest = [self.steps.judged(part) for part, made in zip(judged, compared, strict=True) if made is None]
        self.rest += [
            self.steps.steering(part) for part in pattern.steering if set(part.operands.values()) <= set(self.numbers)
        ]
        self.stream = stream

    def taken(self, scan: Scan) -> tuple[Rows, IntArray]:
        """What a scan takes, and the operand that each start awaits; -1 for a match."""
        most, program = bindings.MOST_BOUND, self.steps.program
        offsets, events, places, awaited = (
            judged_scans.scanned(scan, self.stream, self.rest, most)
            if self.rest or program.every
            else scanned(scan, most)
        )
        if not len(offsets):
            raise bindings.too_long()
        # What awaits nothing, -1, stays so.
        of_step = np.append(program.place, -1)[awaited]
        missing = np.append(np.array(self.numbers, np.int64), -1)[of_step]
        return Rows(offsets, events, np.array(self.numbers, np.int8)[places]), missing


def conditions_of(pattern: KleenePattern, numbers: Collection[int]) -> list[Condition]:
    """The conditions over these operands, and over what is negated beside them."""
    return [part for part in pattern.conditions if set(part.operands) <= set(numbers)]


class StepsOfWay:
    """The program of a way, and what conditions over its operands are over its steps.

    Attributes
    ----------
    program
        The program.
    step_of
        The step of each operand.
    root
        The steps themselves.
    needed
        The places of the operands that have an event in each match.
    """

    def __init__(self, way: Way, *, every: bool) -> None:
        self.root = way.root
        place_of = {number: place for place, number in enumerate(way.operands)}
        self.program: Program = program_of(way.root, place_of, every=every)
        steps = enumerate(way.root.walk())
        self.step_of = {step.operand: at for at, step in steps if step.kind == EVENT}
        self.needed = [place_of[step.operand] for step in way.root.needed()]

    def scope(self, operands: Sequence[int]) -> int:
        """The innermost group that is repeated and holds all of some operands, or -1."""
        chains = [self.groups(self.step_of[operand]) for operand in operands]
        shared = [group for group in chains[0] if all(group in chain for chain in chains)]
        return shared[0] if shared else -1

    def groups(self, step: int) -> list[int]:
        """The groups around a step, the innermost first."""
        found = []
        while (step := int(self.program.rounds_of[step])) >= 0:
            found.append(step)
        return found

    def judged(self, condition: Condition) -> JudgedCondition:
        """A condition for the evaluator."""
        number_of = dict(zip(condition.names, condition.operands, strict=True))
        return JudgedCondition(
            predicate=condition.predicate,
            step_of={r: self.step_of[number_of[r.operand or ""]] for r in condition.predicate.references},
            earlier=-1 if condition.before is None else self.step_of[condition.before],
            scope=self.scope(condition.operands),
            aggregates={},
            steers={self.step_of[operand]: frozenset() for operand in condition.operands},
        )

    def steering(self, condition: SteeringCondition) -> JudgedCondition:
        """A condition that steers, for the evaluator."""
        return JudgedCondition(
            predicate=condition.predicate,
            step_of={reference: self.step_of[operand] for reference, operand in condition.operands.items()},
            earlier=-1 if condition.before is None else self.step_of[condition.before],
            scope=self.scope(list(condition.operands.values())),
            aggregates={
                reference: (one, self.step_of.get(operand, -1))
                for reference, (one, operand) in condition.aggregates.items()
            },
            steers={
                self.step_of[operand]: frozenset(self.step_of.get(one, -1) for one in beside)
                for operand, beside in condition.steers.items()
            },
        )


def comparison_of(condition: Condition, stream: Stream) -> tuple[int, int, Comparison] | None:
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


def scan_of(
    steps: StepsOfWay,
    stream: Stream,
    mask: BoolArray,
    made: Sequence[tuple[int, int, Comparison]],
    strict: bool,
    apart: bool,
    begun: bool,
) -> Scan:
    """A way and its events as the kernels take them; `made` has the operands of each comparison and the comparison."""
    m = len(stream)
    program, following, stop = steps.program, following_of(mask), stream.offsets[stream.part + 1]

    own: list[list[tuple[int, int, int, bool]]] = [[] for _ in mask]
    for number, (left, right, _) in enumerate(made):
        scope = -1 if left == right else steps.scope((left, right))
        own[program.place[steps.step_of[left]]].append((number, steps.step_of[right], scope, True))
        if left != right:
            own[program.place[steps.step_of[right]]].append((number, steps.step_of[left], scope, False))
    ends = _endings(steps, stream)
    return Scan(
        program=program,
        mask=mask,
        starts=np.ones(m, np.bool_) if begun else _possible_starts(steps, following, np.minimum(stream.reach, stop)),
        following=following,
        ends=ends,
        compared=np.cumsum([0, *map(len, own)]),
        comparing=np.array([row for rows in own for row in rows], np.int64).reshape(-1, 4),
        neighbours=np.array([left == right for left, right, _ in made], np.bool_),
        comparisons=comparisons_of([part for _, _, part in made], m),
        reach=stream.reach,
        stop=stop,
        ordinal=np.ascontiguousarray(stream.ordinal),
        strict=strict,
        apart=apart,
        begun=begun,
        awaits=first_awaited(steps.root),
    )


def _possible_starts(steps: StepsOfWay, following: IntArray, limit: IntArray) -> BoolArray:
    """`Scan.starts`: where one needed operand has no event, a scan would go on to the end of the window for nothing."""
    possible = np.ones(len(limit), np.bool_)
    for place in steps.needed:
        possible &= following[place, :-1] < limit
    return possible


def _endings(steps: StepsOfWay, stream: Stream) -> IntArray:
    """`Scan.ends`."""
    shape = (len(steps.step_of), len(stream) if steps.program.has_until else 0)
    ends = np.zeros(shape, np.int64)
    if steps.program.has_until:
        for number, step in steps.step_of.items():
            if number in stream.endings:
                # Not only those of the same [attr]: what ends a repetition is no part of the match.
                rows = np.sort(stream.source[stream.endings[number]])
                place = steps.program.place[step]
                ends[place] = np.searchsorted(rows, stream.source, side="right")
    return ends


def layout_of_way(way: Way, conditions: list[Condition]) -> Layout:
    """A slot for each operand that takes events."""
    single = way.single
    slots = tuple(Slot(number, "one" if number in single else "group", 1, None) for number in way.operands)
    of_operand = {number: (slot,) for slot, number in enumerate(way.operands)}
    negations = tuple(part for part in conditions if part.negated is not None)
    no_pairs, no_operands = frozenset[tuple[int, int]](), frozenset[int]()
    named = way.order, way.order, slots, of_operand, (), no_pairs, no_pairs, ()
    return Layout(*named, (), (), (), (), negations, (), {}, no_operands)


def collected_rows(layout: Layout, stream: Stream, rows: Rows) -> Collected:
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

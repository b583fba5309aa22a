"""Near misses: what has begun and is not complete, with what it awaits (``partial => true``).

Source: SPEC section 3. Under ``skip_till_next`` and ``strict`` a start takes event by event and never goes back. What
it has taken when nothing goes on says how far it came, in each way of the pattern. A start that came to the end and was
ruled out there, by an absence or by an aggregate, is no near miss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.errors import ArgumentError, UnsupportedOperatorError
from patternlake.udfs.events import Events
from patternlake.udfs.kleene.events import Stream, stream_of
from patternlake.udfs.kleene.finality import Moment, is_followed, window_over
from patternlake.udfs.kleene.kernels import bindings, scanning
from patternlake.udfs.kleene.kernels.bindings import Matches, Rows
from patternlake.udfs.kleene.kernels.gaps import free_of_negated
from patternlake.udfs.kleene.kernels.joins import Joiner
from patternlake.udfs.kleene.kernels.keeping import Keeper
from patternlake.udfs.kleene.kernels.scanning import collected_rows, conditions_of, layout_of_way
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.ways import EVENT, THEN, Step, Way
from patternlake.udfs.language.query import tree

WHOLE = -1
"""Stands for the operand that a whole match awaits."""
NEVER = np.iinfo(np.int64).max
"""Stands for the deadline of what can be completed for ever."""


@dataclass(frozen=True)
class Begun:
    """Whole matches and near misses, in one order.

    Attributes
    ----------
    matches
        r rows.
    missing
        int64[r]: number of the operand that each awaits; `WHOLE` for a whole match.
    """

    matches: Matches
    missing: IntArray

    def deadlines(self, pattern: KleenePattern) -> IntArray:
        """int64[r]: microseconds from which on it is too late; `NEVER` without a window in time, or for a match."""
        within = pattern.within
        if within is None or within.counted:
            return np.full(len(self.missing), NEVER)
        return np.where(self.missing == WHOLE, NEVER, self.matches.first_time + within.amount)

    def final(
        self, pattern: KleenePattern, events: Events, moment: Moment | None, sure: BoolArray, *, strict: bool
    ) -> BoolArray:
        """bool[r]: the matches that are, by `sure`, and the near misses that nothing can complete any more.

        Parameters
        ----------
        pattern, events, moment
            As of `finality.final`.
        sure
            bool[r]: which of the rows would be final as whole matches.
        strict
            Whether the next event of the partition must be taken.
        """
        if moment is None:
            return sure
        first, last = self.matches.first_events, self.matches.last_events
        over = window_over(pattern, events, moment)[first]
        if strict:
            over |= is_followed(events, moment.settled(events), last)
        return np.where(self.missing == WHOLE, sure, over)


def with_near_misses(
    pattern: KleenePattern,
    events: Events,
    found: Matches,
    match: Callable[[KleenePattern], Matches],
    *,
    strict: bool,
    begins: BoolArray | None = None,
    after_match: str,
    max_matches: int,
    truncate: bool,
) -> Begun:
    """Add to the matches of a pattern what began and is not complete.

    Parameters
    ----------
    pattern, events
        What was looked for, and where.
    found
        All its matches.
    match
        Finds the matches of another pattern by the same policy, one at most for each start.
    strict
        Whether the policy is ``strict``.
    begins
        bool[n]: the starts that are wanted; None: all.
    after_match, max_matches, truncate
        As asked.

    Raises
    ------
    ArgumentError
        There are more rows than are asked for.
    """
    done = np.zeros(len(events), np.bool_) if begins is None else ~begins
    done[found.first_events] = True
    if after_match != "next":
        done |= _mark_passed(found, events, after_match)
    # What rules out a whole match leaves nothing that is awaited.
    if pattern.gaps or pattern.aggregate_conditions:
        done[match(replace(_without_absences(pattern), aggregate_conditions=())).first_events] = True
    stream = stream_of(pattern, events)
    # Of each start the way that came furthest, of several the first one.
    furthest, missing = np.zeros(len(events), np.int64), np.full(len(events), WHOLE)
    way_of = np.full(len(events), WHOLE)
    reached: list[Rows] = []
    for number, way in enumerate(pattern.ways):
        rows = scanning.reached(pattern, way, stream, strict=strict)
        rows = rows.take(np.flatnonzero(~done[_starts(rows, stream)]))
        counts = _counts(rows, len(pattern.operands))
        awaited = np.full(len(rows), WHOLE)
        for operand in reversed(way.operands):
            # One that need not have an event is never awaited.
            awaited[counts[:, operand] < pattern.operands[operand].least] = operand
        kept = np.flatnonzero(awaited != WHOLE)
        rows, counts, awaited = rows.take(kept), counts[kept], awaited[kept]
        kept = np.flatnonzero(_may_be_completed(pattern, way, stream, rows, counts > 0, awaited))
        rows, counts, awaited = rows.take(kept), counts[kept], awaited[kept]
        written = sorted(way.order.operands)
        came = len(written) - np.argmax(counts[:, written[::-1]] > 0, axis=1)
        start = _starts(rows, stream)
        further = np.flatnonzero(came > furthest[start])
        for one, values in ((furthest, came), (missing, awaited), (way_of, np.full(len(rows), number))):
            one[start[further]] = values[further]
        reached.append(rows)
    keeper = Keeper(events, max_matches, truncate)
    keeper.add(Rows(found.event_offsets, found.events, found.bound_operands))
    for number, rows in enumerate(reached):
        own = rows.take(np.flatnonzero(way_of[_starts(rows, stream)] == number))
        keeper.add(Rows(own.offsets, stream.source[own.events], own.operands))
    names = [pattern.operands[number].name for number in pattern.positive]
    rows, total = keeper.result()
    made = bindings.answer(names, pattern.positive, rows, events, total)
    return Begun(made, missing[made.first_events])


def _starts(rows: Rows, stream: Stream) -> IntArray:
    """int64[r]: the row of `Events` that each begins with; events are numbers in the stream."""
    return stream.source[rows.events[rows.offsets[:-1]]]


def _counts(rows: Rows, operands: int) -> IntArray:
    """int64[r, operands]: how many events each operand has."""
    row = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))
    return np.bincount(row * operands + rows.operands, minlength=len(rows) * operands).reshape(len(rows), operands)


def _may_be_completed(
    pattern: KleenePattern, way: Way, stream: Stream, rows: Rows, has: BoolArray, awaited: IntArray
) -> BoolArray:
    """bool[r]: the rows that nothing rules out that has come.

    What must be absent behind operands that are complete counts to the end of the window, as long as what follows it
    has not come; of other absences nothing is known yet.

    Parameters
    ----------
    pattern, way, stream, rows
        What a way has reached.
    has
        bool[r, operands]: which operands have events.
    awaited
        int64[r]: the operand that each row awaits.
    """
    free = np.ones(len(rows), np.bool_)
    if not way.order.gaps or not len(rows):
        return free
    kinds, kind = np.unique(np.column_stack((has, awaited)), axis=0, return_inverse=True)
    for number, (*marks, missing) in enumerate(kinds.tolist()):
        inside = frozenset(np.flatnonzero(marks).tolist())
        gaps = [
            replace(gap, left=gap.left & inside, right=gap.right & inside)
            for gap in way.order.gaps
            if (gap.left & inside and missing not in gap.left if gap.left else gap.right & inside or not gap.right)
            and (gap.right & inside or not gap.ahead)
        ]
        if not gaps:
            continue
        operands = tuple(one for one in way.order.operands if one in inside)
        order = replace(way.order, operands=operands, gaps=tuple(gaps))
        # No operand is sure to have one event here.
        root = Step(THEN, tuple(Step(EVENT, operand=one, most=None) for one in operands))
        layout = layout_of_way(Way(order, frozenset(), root), conditions_of(pattern, inside))
        own = np.flatnonzero(kind.reshape(-1) == number)
        collected = collected_rows(layout, stream, rows.take(own))
        free[own] = free_of_negated(Joiner(stream, layout, 0, 0, 0), collected)
    return free


def check_partial(pattern: KleenePattern, policy: str) -> None:
    """Refuse what near misses are not told of.

    Raises
    ------
    ArgumentError
        The policy is ``skip_till_any``, or repeated operands take every choice.
    UnsupportedOperatorError
        A group is repeated; the place is that operator.
    """
    if policy == "skip_till_any":
        raise ArgumentError(
            "partial => true tells how far each start came, and skip_till_any has no one way on from a start; ask with "
            "policy => 'skip_till_next' or 'strict'"
        )
    if pattern.every:
        raise ArgumentError(
            "partial => true tells how far each start came, and repetition => 'all' stops it at every place; ask with "
            "repetition => 'maximal'"
        )
    for node in pattern.query.pattern.walk():
        if isinstance(node, tree.Repetition) and not isinstance(node.item, tree.Event):
            message = "partial => true takes no repetition of a group; write its rounds out, or repeat names"
            raise UnsupportedOperatorError(message, pattern.query.text, node.sign.start, node.sign.end)


def _without_absences(pattern: KleenePattern) -> KleenePattern:
    ways = tuple(replace(way, order=replace(way.order, gaps=())) for way in pattern.ways)
    return replace(pattern, ways=ways, linearizations=tuple(dict.fromkeys(way.order for way in ways)))


def _mark_passed(found: Matches, events: Events, after_match: str) -> BoolArray:
    """bool[n]: the events that the search goes on behind."""
    first, last = found.first_events, found.last_events
    which, _, name = after_match.partition(" ")
    if name:
        own = found.operands.index(name)
        width = len(found.operands)
        low, high = (found.offsets[own + at :: width] for at in (0, 1))
        low = low[: len(first)]
        last = found.bound[low if which == "first" else high - 1] - 1
    depth = np.zeros(len(events) + 1, np.int64)
    np.add.at(depth, first, 1)
    np.add.at(depth, np.maximum(last, first) + 1, -1)
    return np.asarray(np.cumsum(depth)[:-1] > 0)

"""Near misses: what has begun and is not complete, with what it awaits (``partial => true``).

Source: SPEC section 3. Under ``skip_till_next`` and ``strict`` a start takes event by event and never goes back. What
it has taken when nothing goes on says how far it came, in each way of the pattern, and with ``repetition => 'all'`` for
each place where its repetitions may stop. Under ``skip_till_any`` it may choose (`beginnings`). Of all the furthest is
told. A start that came to the end and was ruled out there, by an absence or by an aggregate, is no near miss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.events import Events
from patternlake.udfs.kleene.beginnings import WHOLE, beginnings_of, choose_furthest, gaps_at
from patternlake.udfs.kleene.events import Stream, stream_of
from patternlake.udfs.kleene.finality import Moment, mark_passed, window_over
from patternlake.udfs.kleene.kernels import bindings, scanning
from patternlake.udfs.kleene.kernels.bindings import Matches, Rows
from patternlake.udfs.kleene.kernels.gaps import free_of_negated
from patternlake.udfs.kleene.kernels.joins import Joiner
from patternlake.udfs.kleene.kernels.keeping import Keeper
from patternlake.udfs.kleene.kernels.scanning import collected_rows, conditions_of, layout_of_way
from patternlake.udfs.kleene.open_ways import OpenWays, awaits_next, is_followed
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.ways import EVENT, THEN, Step, Way

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
        self, pattern: KleenePattern, events: Events, moment: Moment | None, sure: BoolArray, *, policy: str
    ) -> BoolArray:
        """bool[r]: the matches that are, by `sure`, and the near misses that nothing can complete any more.

        Parameters
        ----------
        pattern, events, moment
            As of `finality.final`.
        sure
            bool[r]: which of the rows would be final as whole matches.
        policy
            As of `finality.final`.
        """
        if moment is None:
            return sure
        first = self.matches.first_events
        over = window_over(pattern, events, moment)[first]
        settled = moment.settled(events)
        if policy == "skip_till_any":
            # An operand behind the first may take another event.
            at = np.flatnonzero(np.diff(self.matches.event_offsets) == 1)
            if len(pattern.linearizations) == 1:
                (order,) = pattern.linearizations
                next_ = awaits_next(pattern, order, self.matches.bound_operands[at], self.missing[at])
                over[at] |= next_ & is_followed(events, settled, first[at])
        else:
            ways = OpenWays(pattern, events, settled, strict=policy == "strict")
            asked = np.zeros(len(events), np.bool_)
            asked[first[self.missing != WHOLE]] = True
            over |= ~np.logical_or.reduce([ways.going_on(way, asked) for way in pattern.ways])[first]
        return np.where(self.missing == WHOLE, sure, over)


def with_near_misses(
    pattern: KleenePattern,
    events: Events,
    found: Matches,
    match: Callable[[KleenePattern], Matches],
    *,
    policy: str,
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
        All its matches; under ``skip_till_any`` the first ones, one more than are asked for, where they are cut.
    match
        Finds the matches of another pattern by the same policy.
    policy
        ``skip_till_any``, ``skip_till_next`` or ``strict``.
    begins
        bool[n]: the starts that are wanted; None: all.
    after_match, max_matches, truncate
        As asked.

    Raises
    ------
    ArgumentError
        There are more rows than are asked for.
    """
    stream = stream_of(pattern, events)
    if policy == "skip_till_any":
        wanted = np.ones(len(events), np.bool_) if begins is None else begins
        rows, awaited = choose_furthest(pattern, stream, wanted)
        begun = _Reached(rows, awaited)
    else:
        done = np.zeros(len(events), np.bool_) if begins is None else ~begins
        done[found.first_events] = True
        if after_match != "next":
            done |= mark_passed(found, events, after_match)
        # What rules out a whole match leaves nothing that is awaited.
        if pattern.gaps or pattern.aggregate_conditions:
            done[match(replace(_without_absences(pattern), aggregate_conditions=())).first_events] = True
        begun = _furthest(pattern, events, stream, done, strict=policy == "strict")
    keeper = Keeper(events, max_matches, truncate)
    keeper.count(found.total)
    keeper.keep(found.rows)
    keeper.add(begun.rows)
    names = [pattern.operands[number].name for number in pattern.positive]
    rows, total = keeper.result()
    made = bindings.answer(names, pattern.positive, rows, events, total)
    missing = np.full(len(events), WHOLE)
    missing[begun.starts] = begun.awaited
    return Begun(made, missing[made.first_events])


@dataclass(frozen=True)
class _Reached:
    """What starts have taken that are not complete.

    Attributes
    ----------
    rows
        r rows, of events by row of `Events`.
    awaited
        int64[r]: the operand that each awaits.
    """

    rows: Rows
    awaited: IntArray

    @property
    def starts(self) -> IntArray:
        """int64[r]: the event that each begins with."""
        return self.rows.events[self.rows.offsets[:-1]]


def _furthest(pattern: KleenePattern, events: Events, stream: Stream, done: BoolArray, *, strict: bool) -> _Reached:
    """Of each start that is not `done` how far it came: in the way in which the last operand that has an event stands
    furthest in the text; of several in the one that is tried first; there with the most events; then with the operand
    awaited that stands furthest; then the first in the order of the answer.
    """
    parts: list[Rows] = [bindings.no_rows()]
    columns: list[tuple[IntArray, IntArray, IntArray]] = []
    for number, way in zip(scanning.rank_ways(pattern), pattern.ways, strict=True):
        rows, awaited = scanning.reached(pattern, way, stream, strict=strict)
        kept = np.flatnonzero(~done[_starts(rows, stream)])
        rows, awaited = rows.take(kept), awaited[kept]
        counts = _counts(rows, len(pattern.operands))
        kept = np.flatnonzero(_may_be_completed(pattern, way, stream, rows, counts > 0, awaited))
        rows, awaited = rows.take(kept), awaited[kept]
        written = sorted(way.order.operands)
        came = len(written) - np.argmax(counts[kept][:, written[::-1]] > 0, axis=1)
        parts.append(Rows(rows.offsets, stream.source[rows.events], rows.operands))
        columns.append((came, np.full(len(rows), number), awaited))
    rows = bindings.stacked(parts)
    came, rank, awaited = (np.concatenate([column[at] for column in columns]) for at in range(3))
    first = rows.events[rows.offsets[:-1]]
    places = np.arange(len(rows), dtype=np.int64)
    in_order, _ = bindings.sort_rows(
        places, events.keys[first], rows.offsets, events.positions[rows.events], rows.operands
    )
    # Sorting is stable, so that what is equal otherwise stays in the order of the answer.
    keys: list[IntArray] = [-awaited, -np.diff(rows.offsets), rank, -came, first]
    order = in_order[np.lexsort([key[in_order] for key in keys])]
    chosen = order[np.append(True, np.diff(first[order]) != 0)[: len(order)]]
    return _Reached(rows.take(chosen), awaited[chosen])


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
    """bool[r]: the rows that nothing rules out that has come, by `gaps_at`.

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
        gaps = gaps_at(way.order, inside, missing)
        if not gaps:
            continue
        operands = tuple(one for one in way.order.operands if one in inside)
        order = replace(way.order, operands=operands, gaps=gaps)
        # No operand is sure to have one event here.
        root = Step(THEN, tuple(Step(EVENT, operand=one, most=None) for one in operands))
        layout = layout_of_way(Way(order, root), conditions_of(pattern, inside))
        own = np.flatnonzero(kind.reshape(-1) == number)
        collected = collected_rows(layout, stream, rows.take(own))
        free[own] = free_of_negated(Joiner(stream, layout, 0, 0, 0), collected)
    return free


def check_partial(pattern: KleenePattern, policy: str) -> None:
    """Refuse a pattern that near misses are not told of.

    Raises
    ------
    UnsupportedOperatorError
        As of `beginnings.beginnings_of`, under ``skip_till_any``.
    """
    if policy == "skip_till_any":
        beginnings_of(pattern)


def _without_absences(pattern: KleenePattern) -> KleenePattern:
    ways = tuple(replace(way, order=replace(way.order, gaps=())) for way in pattern.ways)
    return replace(pattern, ways=ways, linearizations=tuple(dict.fromkeys(way.order for way in ways)))

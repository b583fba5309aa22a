"""Near misses: what has begun and is not complete, with what it awaits (``partial => true``).

Source: SPEC section 3. Under ``skip_till_next`` and ``strict`` a start takes event by event and never goes back. What
it reached is what the same pattern without the operands behind gives: the longest such part of a pattern that has a
match says how far the start came. A start that came to the end and was ruled out there, by an absence or by an
aggregate, is no near miss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.errors import ArgumentError, UnsupportedOperatorError
from patternlake.udfs.events import Events
from patternlake.udfs.kleene.finality import Moment, followed, window_over
from patternlake.udfs.kleene.kernels import bindings
from patternlake.udfs.kleene.kernels.bindings import Matches, Rows
from patternlake.udfs.kleene.kernels.keeping import Keeper
from patternlake.udfs.kleene.linearizations import restricted_to
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.ways import EVENT, Step, Way
from patternlake.udfs.language.query import tree

MOST_PARTS = 1_000
"""Greatest number of parts of a pattern that a start may have reached."""

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
            over |= followed(events, moment.settled(events), last)
        return np.where(self.missing == WHOLE, sure, over)


def with_near_misses(
    pattern: KleenePattern,
    events: Events,
    found: Matches,
    match: Callable[[KleenePattern], Matches],
    *,
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
    after_match, max_matches, truncate
        As asked.

    Raises
    ------
    ArgumentError
        The pattern has more than `MOST_PARTS` parts, or there are more rows than are asked for.
    """
    done = np.zeros(len(events), np.bool_)
    done[found.first_events] = True
    if after_match != "next":
        done |= _mark_passed(found, events, after_match)
    # What rules out a whole match leaves nothing that is awaited.
    if pattern.gaps or pattern.aggregate_conditions:
        done[match(replace(_without_absences(pattern), aggregate_conditions=())).first_events] = True
    keeper = Keeper(events, max_matches, truncate)
    keeper.add(Rows(found.event_offsets, found.events, found.bound_operands))
    missing = np.full(len(events), WHOLE)
    ended: dict[int, BoolArray] = {}
    for part in _parts(pattern):
        reached = match(part.pattern)
        came = reached.first_events
        if part.pattern.gaps:
            came = match(_without_absences(part.pattern)).first_events
        over = ended.setdefault(part.way, np.zeros(len(events), np.bool_))
        reached = reached.take(np.flatnonzero(~(done | over)[reached.first_events]))
        # A start that came so far and was ruled out there has not come less far in the same way.
        over[came] = True
        done[reached.first_events] = True
        awaited = part.awaited(reached)
        kept = np.flatnonzero(awaited != WHOLE)
        missing[reached.first_events[kept]] = awaited[kept]
        keeper.add(Rows(reached.event_offsets, reached.events, reached.bound_operands).take(kept))
    names = [pattern.operands[number].name for number in pattern.positive]
    rows, total = keeper.result()
    made = bindings.answer(names, pattern.positive, rows, events, total)
    return Begun(made, missing[made.first_events])


def check_partial(pattern: KleenePattern, policy: str) -> None:
    """Refuse what near misses are not told of.

    Raises
    ------
    ArgumentError
        The policy is ``skip_till_any``, or repeated operands take every choice.
    UnsupportedOperatorError
        A group is repeated, or operands stand in any order; the place is that operator.
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
        message = None
        if isinstance(node, tree.Repetition) and not isinstance(node.item, tree.Event):
            message = "takes no repetition of a group; write its rounds out, or repeat names"
        elif isinstance(node, tree.Conjunction | tree.SomeOf) and len(pattern.positive) > 1:
            message = "takes no '&' and no OF, whose sides go on by themselves; write the orders with ';' and '|'"
        if message is not None:
            place = node.sign
            raise UnsupportedOperatorError(f"partial => true {message}", pattern.query.text, place.start, place.end)


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


@dataclass(frozen=True)
class _Part:
    """A part of a pattern that a start may have reached.

    Attributes
    ----------
    pattern
        The pattern of it.
    full
        The whole pattern.
    ends
        Operands behind which nothing of the part stands, in text order.
    following
        The operand that comes next; `WHOLE` where nothing does.
    way
        Number of the way that it is of.
    """

    pattern: KleenePattern
    full: KleenePattern
    ends: tuple[int, ...]
    following: int
    way: int

    def awaited(self, reached: Matches) -> IntArray:
        """int64[r]: the operand that each row awaits."""
        found = np.full(len(reached), self.following)
        counts = np.diff(reached.offsets).reshape(len(reached), len(reached.operands))
        for number in reversed(self.ends):
            own = counts[:, reached.operands.index(self.full.operands[number].name)]
            found[own < self.full.operands[number].least] = number
        return found


def _parts(pattern: KleenePattern) -> list[_Part]:
    """What a start may have reached, the furthest first."""
    found: list[tuple[int, _Part]] = []
    for number, way in enumerate(pattern.ways):
        written = sorted(way.order.operands)
        for inside in _begun(way):
            furthest = max(written.index(one) for one in inside)
            found += [(furthest, part) for part in _stages(pattern, number, inside)]
            if len(found) > MOST_PARTS:
                raise _too_many_parts()
    return [part for _, part in sorted(found, key=lambda one: -one[0])]


def _too_many_parts() -> ArgumentError:
    return ArgumentError(
        f"the pattern can have begun in more than {MOST_PARTS:,} ways, too many for partial => true; ask for fewer "
        "alternatives, or for fewer sides of '&'"
    )


def _begun(way: Way) -> list[frozenset[int]]:
    """The sets of operands of which each has all before it, but the empty one; the greater ones first."""
    own = frozenset(way.operands)
    sets = {frozenset[int]()}
    for number in (one for one in way.order.operands if one in own):
        before = {one for one, other in way.order.before if other == number and one in own}
        sets |= {inside | {number} for inside in sets if before <= inside}
        if len(sets) > MOST_PARTS:
            raise _too_many_parts()
    return sorted(sets - {frozenset()}, key=lambda inside: (-len(inside), sorted(inside)))


def _stages(pattern: KleenePattern, number: int, inside: frozenset[int]) -> Iterator[_Part]:
    """Some operands of a way, of which the last one has as many events as it needs, or has begun with fewer."""
    yield _part(pattern, number, inside, complete=True)
    if any(pattern.operands[one].least > 1 for one in inside):
        yield _part(pattern, number, inside, complete=False)


def _part(pattern: KleenePattern, number: int, inside: frozenset[int], *, complete: bool) -> _Part:
    operands, way = pattern.operands, pattern.ways[number]
    optional = frozenset(one for one in way.order.operands if not operands[one].least)
    repeated = frozenset(one for one in inside if operands[one].repeated)
    ends = tuple(sorted(one for one in inside if not any(a == one and b in inside for a, b in way.order.before)))
    needed = [
        one
        for one in way.operands
        if one not in inside | optional
        and not any(b == one and a not in inside | optional for a, b in way.order.before)
    ]
    root = _restricted(way.root, inside, frozenset() if complete else frozenset(ends))
    assert root is not None
    order = restricted_to(way.order, inside, repeated, optional)
    if not complete:
        # Nothing is behind an operand that is still to take events.
        order = replace(order, gaps=tuple(gap for gap in order.gaps if not gap.left.intersection(ends)))
    reached = Way(order, frozenset(), root)
    part = replace(pattern, ways=(reached,), linearizations=(reached.order,), aggregate_conditions=())
    return _Part(part, pattern, ends, min(needed, default=WHOLE), number)


def _restricted(step: Step, inside: frozenset[int], short: frozenset[int]) -> Step | None:
    """The steps of some operands, of which some have begun with fewer events than they need."""
    if step.kind == EVENT:
        if step.operand not in inside:
            return None
        few = step.operand in short and step.least > 1
        return replace(step, least=1, most=step.least - 1) if few else step
    parts = tuple(part for one in step.parts if (part := _restricted(one, inside, short)) is not None)
    if len(parts) < 2:
        return parts[0] if parts else None
    return replace(step, parts=parts, least=len(parts))

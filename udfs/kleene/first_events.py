"""A partition that has more matches than are held at once: they are found by ranges of their first events.

WITHIN bounds what a range needs: the events up to a window behind its last one, and, as a first ``+`` takes all that
can be added, those from a window before its first one on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.kleene.events import BoolArray, Events
from patternlake.udfs.kleene.kernels.bindings import MOST_BOUND, Matches
from patternlake.udfs.kleene.request import KleeneRequest
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.limits import TooManyMatchesError

Match = Callable[[Events, BoolArray | None], Matches]


def can_be_divided(request: KleeneRequest) -> bool:
    """Whether matches that begin with some events are found without the others.

    Under ``past_last`` each start asks what came of those before it, and an ``[n]`` that a match begins in takes any n
    events, so that one of its sets of events begins many matches.
    """
    pattern = request.pattern
    return pattern.within is not None and not request.resumes and not pattern.choice_first


def too_many_at_once(request: KleeneRequest) -> str:
    """What is said of matches that are not written."""
    return (
        f"more matches than can be held at once, {request.max_matches:,}, or matches that bind more than "
        f"{MOST_BOUND:,} events together"
    )


def by_first_events(
    request: KleeneRequest, events: Events, begins: BoolArray | None, match: Match
) -> Iterator[Matches]:
    """Find the matches of one partition a range of first events at a time, half of it where those are too many.

    Parameters
    ----------
    request
        Of a pattern that `can_be_divided`.
    events
        Those of the partition.
    begins
        bool[n]: only matches whose first event is one of these are wanted; None: all.
    match
        Finds the matches of some events that begin with some of them; raises `TooManyMatchesError`.

    Yields
    ------
    Matches
        Their rows of events are those of `events`.

    Raises
    ------
    ArgumentError
        One event alone begins too many.
    """
    wanted = np.ones(len(events), np.bool_) if begins is None else begins
    waiting = [(0, len(events))]
    while waiting:
        low, high = waiting.pop()
        first, last = _around(request, events, low, high)
        inside = np.arange(first, last)
        try:
            found = match(_slice(events, first, last), wanted[first:last] & (low <= inside) & (inside < high))
        except TooManyMatchesError:
            if high - low <= 1:
                raise ArgumentError(
                    f"the event at position {int(events.positions[low])} alone begins {too_many_at_once(request)}; "
                    "narrow the pattern with conditions or a shorter WITHIN"
                ) from None
            middle = (low + high) // 2
            waiting += [(middle, high), (low, middle)]
            continue
        yield replace(found, events=found.events + first, bound=found.bound + first)


def _around(request: KleeneRequest, events: Events, low: int, high: int) -> tuple[int, int]:
    """The events that matches of first events `low` to `high` (exclusive) need: from one, up to another (exclusive)."""
    within = request.pattern.within
    assert within is not None
    span = events.times
    if within.counted:
        span = np.arange(len(events), dtype=np.int64) if events.ordinals is None else events.ordinals
    first = np.searchsorted(span, span[low] - within.amount, side="left")
    last = np.searchsorted(span, span[high - 1] + within.amount, side="right")
    return int(first), int(last)


def _slice(events: Events, first: int, last: int) -> Events:
    """Neighbouring events."""
    return replace(
        events,
        keys=events.keys[first:last],
        times=events.times[first:last],
        positions=events.positions[first:last],
        names=events.names[first:last],
        columns={name: _part_of(column, first, last) for name, column in events.columns.items()},
        ordinals=None if events.ordinals is None else events.ordinals[first:last],
    )


def _part_of(column: Column, first: int, last: int) -> Column:
    known = column.known[first:last] if column.known.ndim else column.known
    arrow = None if column.arrow is None else column.arrow.slice(first, last - first)
    return Column(column.values[first:last], known, column.type, arrow)

"""A partition that has more matches than are held at once: they are found by ranges of their first events.

WITHIN bounds what a range needs: the events up to a window behind its last one, and, as a first ``+`` takes all that
can be added, those from a window before its first one on. Where one event alone begins too many, its matches are found
by ranges of the events that operands take which take one in every match: each match lies in one such piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.events import Events
from patternlake.udfs.kleene.events import candidates
from patternlake.udfs.kleene.kernels.bindings import MOST_BOUND, Matches
from patternlake.udfs.kleene.request import KleeneRequest
from patternlake.udfs.limits import TooManyMatchesError

Match = Callable[[Events, BoolArray | None, Mapping[int, BoolArray] | None], Matches]


def can_be_divided(request: KleeneRequest) -> bool:
    """Whether matches that begin with some events are found without the others.

    Under ``past_last`` each start asks what came of those before it, and an ``[n]`` that a match begins in takes any n
    events, so that one of its sets of events begins many matches. A deadline in time bounds no window of events.
    """
    pattern = request.pattern
    if pattern.within is None or request.resumes or pattern.choice_first:
        return False
    return not pattern.within.counted or not pattern.beyond_window


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
        Finds the matches of some events that begin with some of them, and in which operands take some of them, as
        `match_events` has it; raises `TooManyMatchesError`.

    Yields
    ------
    Matches
        Their rows of events are those of `events`.

    Raises
    ------
    ArgumentError
        One event alone begins too many, and so it does where every operand that can be held to one event is.
    """
    wanted = np.ones(len(events), np.bool_) if begins is None else begins
    waiting = [(0, len(events))]
    while waiting:
        low, high = waiting.pop()
        first, last = _around(request, events, low, high)
        inside = np.arange(first, last)
        around, begin = events.take(slice(first, last)), wanted[first:last] & (low <= inside) & (inside < high)
        try:
            pieces: Iterable[Matches] = [match(around, begin, None)]
        except TooManyMatchesError:
            if high - low > 1:
                middle = (low + high) // 2
                waiting += [(middle, high), (low, middle)]
                continue
            pieces = _by_what_is_taken(request, around, begin, match)
        for found in pieces:
            yield replace(found, rows=replace(found.rows, events=found.rows.events + first), source=events)


def _by_what_is_taken(request: KleeneRequest, events: Events, begin: BoolArray, match: Match) -> Iterator[Matches]:
    """The matches that begin with one event, a range of what its operands take at a time.

    The range of the operand with most events is cut in two, until the matches of each piece can be held.
    """
    pattern, first = request.pattern, int(np.flatnonzero(begin)[0])
    taken = {number: candidates(pattern, number, events) for number in sorted(pattern.always_one)}
    waiting = [{number: rows[rows >= first] for number, rows in taken.items()}]
    while waiting:
        piece = waiting.pop()
        try:
            found = match(events, begin, {number: _mark(rows, len(events)) for number, rows in piece.items()})
        except TooManyMatchesError:
            widest = max(piece, key=lambda number: len(piece[number]), default=None)
            if widest is None or len(piece[widest]) <= 1:
                raise ArgumentError(
                    f"the event at position {int(events.positions[first])} alone begins {too_many_at_once(request)}, "
                    "also where each operand that takes one event in every match is held to one; narrow the pattern "
                    "with conditions or a shorter WITHIN"
                ) from None
            middle = len(piece[widest]) // 2
            waiting += [{**piece, widest: rows} for rows in (piece[widest][middle:], piece[widest][:middle])]
            continue
        if len(found):
            yield found


def _mark(rows: IntArray, count: int) -> BoolArray:
    found = np.zeros(count, np.bool_)
    found[rows] = True
    return found


def _around(request: KleeneRequest, events: Events, low: int, high: int) -> tuple[int, int]:
    """The events that matches of first events `low` to `high` (exclusive) need: from one, up to another (exclusive)."""
    within = request.pattern.within
    assert within is not None
    span = events.times
    if within.counted:
        span = np.arange(len(events), dtype=np.int64) if events.ordinals is None else events.ordinals
    amount = within.amount + request.pattern.beyond_window
    first = np.searchsorted(span, span[low] - amount, side="left")
    last = np.searchsorted(span, span[high - 1] + amount, side="right")
    return int(first), int(last)

"""When a match is final: which matches must be said to be (SPEC 3, ROWS part 3), and which must not be.

What may still come has a time at or behind the watermark and stands behind all events up to it, which are **settled**.
A match must be said to be final once all of its events are settled and

- where the pattern may end in a repetition that has room, or the start may still get a match in a way that is tried
  earlier: the window of its first event is over;
- where it rests on an absence with nothing behind it: its deadline has come, or the window is over; of ``A , !X`` also
  when the event directly behind A is settled.

Said of all rows of a pattern alike, so that an engine may know better of some. Which must not be said to be final is
tried: whatever comes, a final match stays (`may_go`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from naive.kleene_absence import FAR, bounded, deadline, forbidden_orders
from naive.kleene_asked import Asked, Event, Kept, Row, numbers_of
from naive.kleene_orders import Absence

from patternlake.udfs.language.query import tree


def settled(asked: Asked, watermark: int) -> int:
    """How many events are settled: they are the first ones."""
    return sum(event.time <= watermark for event in asked.events)


def window_over(asked: Asked, first: int, watermark: int) -> bool:
    """Whether no later event lies in the window of an event."""
    if asked.within is None:
        return False
    if asked.within.counted:
        return first + asked.within.amount <= settled(asked, watermark)
    return asked.events[first].time + asked.within.amount <= watermark


def open_end(node: tree.Node) -> bool:
    """Whether a match may end in a repetition that may take more."""
    if isinstance(node, tree.Repetition):
        return node.maximum is None or node.maximum > node.minimum or open_end(node.item)
    if isinstance(node, tree.Sequence | tree.Contiguous):
        for child in reversed(node.children()):
            if open_end(child):
                return True
            if needed(child):
                return False
        return False
    return not isinstance(node, tree.Negation) and any(map(open_end, node.children()))


def needed(node: tree.Node) -> bool:
    """Whether a part takes an event in every match."""
    if isinstance(node, tree.Event):
        return True
    if isinstance(node, tree.Negation):
        return False
    if isinstance(node, tree.Repetition):
        return node.minimum > 0 and needed(node.item)
    below = [needed(child) for child in node.children()]
    return all(below) if isinstance(node, tree.Disjunction | tree.SomeOf) else any(below)


def is_final(asked: Asked, kept: Kept, absences: Sequence[Absence], watermark: int, may_change: bool) -> bool:
    numbers = numbers_of(kept)
    over = window_over(asked, numbers[0], watermark)
    if numbers[-1] >= settled(asked, watermark) or (may_change and not over):
        return False
    return all(absence_over(asked, kept, absence, watermark) for absence in absences if not absence.right)


def absence_over(asked: Asked, kept: Kept, absence: Absence, watermark: int) -> bool:
    """Whether nothing that comes can be what a negation forbids behind all else."""
    left = [taken.number for name in absence.left for taken in kept.get(name, ())]
    if absence.left and not left:
        return True
    if absence.directly == "after" and max(left) + 1 < settled(asked, watermark):
        return True
    for order in forbidden_orders(asked, absence):
        if bounded(asked, absence, order, kept, FAR):
            moment = deadline(asked, absence, order, kept)
            over = moment is not None and moment <= watermark
        else:
            over = window_over(asked, numbers_of(kept)[0], watermark)
        if not over:
            return False
    return True


def may_go(
    rng: random.Random,
    rows_of: Callable[[Sequence[Event]], list[Row]],
    events: Sequence[Event],
    watermark: int,
    come: Callable[[random.Random, int], list[Event]],
    tries: int,
) -> list[Row]:
    """Rows that some events that may still come take away; `come` gives some events, of any position and time."""
    now = rows_of(events)
    gone: list[Row] = []
    last = max((event.position for event in events), default=0)
    for _ in range(tries):
        more, time = [], watermark
        for at, event in enumerate(come(rng, rng.randint(1, 3)), 1):
            time += rng.choice([0, 0, 1, 1, 2, 4]) * 1000
            more.append(Event(last + at, time, event.name, event.values))
        then = rows_of([*events, *more])
        gone += [row for row in now if row not in then and row not in gone]
    return gone

"""How much of its deadline a partial match has left: the age that its state has, and which states have one.

Source: SPEC section 6: a forecast of a state under a deadline depends on how much of it is left. Muthusamy et al. 2010
(section 5.2) take the state alone for all that matters of the past; under a time condition it is not.

What of the past matters of an instance is the time until no continuation completes it any more, the same in events of
its partition where WITHIN counts events, and the time until the last lower bound (``>``) on what has come is reached.
Each is cut into slices: 64 of what there can be at most, and the last of these into 64 again, since it is near its end
that a deadline decides. On a stream of one event a second that is each second of deadlines up to a minute, and each of
the last minute of those up to an hour. The slices together are one number, the **age**; 0 where nothing is pending.

Departure from SPEC's wording: the age is measured in time where the deadline is, not in steps, so that it is right on
irregular streams, and for several conditions on several operands at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patternlake.udfs.language.time_gaps import UNBOUNDED
from patternlake.udfs.machines.compiling import routine
from patternlake.udfs.machines.graph import Graph, Link
from patternlake.udfs.machines.liveness import FIRST, NOW
from patternlake.udfs.machines.subscription import Subscription

SLICES = 64
LEAST_LEFT = 2 * SLICES - 1
"""Number of the slice next to the deadline; 1 is the first one."""
NEVER = -1
"""Stands for a deadline or lower bound that does not exist."""


@routine
def age_of(left: int, most: int, events_left: int, most_events: int, closed: int, most_closed: int) -> int:
    """The age of an instance.

    Parameters
    ----------
    left, most
        Microseconds until it cannot be completed any more, and how many there can be at most; `NEVER`: no deadline.
    events_left, most_events
        The same in events of its partition.
    closed, most_closed
        Microseconds until the last lower bound is reached, at most; 0 or less: it is.
    """
    age = 0
    for which in range(3):
        rest, all_ = (closed, most_closed) if which == 0 else (events_left, most_events) if which == 1 else (left, most)
        part = 0
        if (which > 0 and rest >= 0) or rest > 0:
            coarse = max(0, all_) // SLICES + 1
            slice_ = min(rest // coarse, SLICES - 1)
            part = SLICES - slice_ if slice_ > 0 else LEAST_LEFT - rest // (coarse // SLICES + 1)
        age = age * 2 * SLICES + part
    return age


OPEN = (2 * SLICES) ** 2
"""Ages below this one are of instances whose lower bounds are reached."""


@routine
def ends_sooner(age: int, other: int) -> bool:
    """Whether an instance of one age ends before one of the other does, or at its end; both deadlines are compared."""
    radix = 2 * SLICES
    return age % radix >= other % radix and age // radix % radix >= other // radix % radix


@dataclass(frozen=True)
class Ages:
    """What there is to ages in a graph, by state or link.

    Attributes
    ----------
    timed
        Its instances have ages: a deadline or a lower bound is pending.
    by_instance
        Each of its instances counts moves of its own: they have ages, or go back to some that have, or alternatives.
    most, most_events, most_closed
        As `age_of` takes them.
    opens
        (operand, microseconds): lower bounds on what comes after operands.
    fresh
        By link: the age at its event, of an instance whose deadlines all run from it.
    """

    timed: tuple[bool, ...]
    by_instance: tuple[bool, ...]
    most: tuple[int, ...]
    most_events: tuple[int, ...]
    most_closed: tuple[int, ...]
    opens: tuple[tuple[tuple[int, int], ...], ...]
    fresh: tuple[int, ...]


def ages_of(graph: Graph, subscriptions: Sequence[Subscription]) -> Ages:
    """The ages of a graph of some subscriptions."""
    states = range(len(graph.waits))
    within = subscriptions[0].within
    window = within.amount if within is not None and within.counted else 0
    live = [state > 0 and not graph.final[state] for state in states]
    most = [max((bound[2] for one in graph.outlooks[state] for bound in one.bounds if bound[0] == NOW), default=NEVER)
            if live[state] else NEVER for state in states]  # fmt: skip
    most_events = [max((window - 1 - one.missing for one in graph.outlooks[state]), default=NEVER)
                   if live[state] and window else NEVER for state in states]  # fmt: skip
    opens = _opens(graph)
    most_closed = [max((low for _, low in opens[state]), default=0) for state in states]
    timed = [
        live[state] and (most[state] >= 0 or most_events[state] >= 0 or bool(opens[state])) for state in states
    ]  # fmt: skip
    by_instance = list(timed)
    for number, subscription in enumerate(subscriptions):
        if any(item.children for item in subscription.master.items):
            for state in graph.states[number].values():
                by_instance[state] = by_instance[state] or live[state]
    for link in graph.links:
        lasts_one_event = live[link.target] and not graph.waits[link.target]
        if lasts_one_event and timed[link.source]:
            by_instance[link.target] = True
        if lasts_one_event and by_instance[link.source] and not graph.waits[link.source]:
            by_instance[link.target] = True
    fresh = [_fresh(graph, link, most, most_events, opens, most_closed) if timed[link.target] else 0
             for link in graph.links]  # fmt: skip
    return Ages(
        tuple(timed), tuple(by_instance), tuple(most), tuple(most_events), tuple(most_closed), tuple(opens),
        tuple(fresh),
    )  # fmt: skip


def _fresh(
    graph: Graph, link: Link, most: Sequence[int], most_events: Sequence[int],
    opens: Sequence[tuple[tuple[int, int], ...]], most_closed: Sequence[int],
) -> int:  # fmt: skip
    """The age at a link's event of an instance whose deadlines all run from it."""
    state = link.target
    ends = [
        [limit for one, other, limit in outlook.bounds if one == NOW and other in (link.operand, FIRST)]
        for outlook in graph.outlooks[state]
    ]
    left = max(min(some) for some in ends) if ends and all(ends) else NEVER
    closed = dict(opens[state]).get(link.operand, 0)
    return age_of(left, most[state], most_events[state], most_events[state], closed, most_closed[state])


def _opens(graph: Graph) -> list[tuple[tuple[int, int], ...]]:
    """The lower bounds that later links set on operands of each state, from the last states back."""
    found: list[dict[int, int]] = [{} for _ in graph.waits]
    for link in reversed(graph.links):
        pending = {operand: low for operand, low in found[link.target].items() if operand != link.operand}
        pairs = [*pending.items(), *_lows(link)]
        for operand, low in pairs:
            found[link.source][operand] = max(low, found[link.source].get(operand, low))
    return [tuple(sorted(some.items())) for some in found]


def _lows(link: Link) -> list[tuple[int, int]]:
    """How long at least a link's event comes after operands that are bound before it."""
    found = []
    for bound in link.bounds:
        if bound.later == link.operand or bound.absolute:
            other, low = (bound.earlier if bound.later == link.operand else bound.later), bound.low
        else:
            other, low = bound.later, -bound.high
        if 0 < low < UNBOUNDED:
            found.append((other, low))
    return found

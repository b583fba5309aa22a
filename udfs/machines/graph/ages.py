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

from numba import njit

from patternlake.udfs.machines.graph.liveness import FIRST, NOW
from patternlake.udfs.machines.graph.merged import Graph, Link
from patternlake.udfs.machines.query import Subscription

SLICES = 64
LEAST_LEFT = 2 * SLICES - 1
"""Number of the slice next to the deadline; 1 is the first one."""
NEVER = -1
"""Stands for a deadline or lower bound that does not exist."""


@njit(cache=True)
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


@dataclass(frozen=True)
class Ages:
    """What there is to ages in a graph, by state or link; which states are timed the graph tells.

    Attributes
    ----------
    most, most_events, most_closed
        As `age_of` takes them.
    fresh
        By link: the age at its event, of an instance whose deadlines all run from it.
    """

    most: tuple[int, ...]
    most_events: tuple[int, ...]
    most_closed: tuple[int, ...]
    fresh: tuple[int, ...]


def ages_of(graph: Graph, subscriptions: Sequence[Subscription]) -> Ages:
    """The ages of a graph of some subscriptions."""
    states = range(len(graph.waits))
    within = subscriptions[0].within
    window = within.amount if within is not None and within.counted else 0
    live = [state > 0 and not graph.final[state] for state in states]
    most = [
        max(
            (bound[2] for one in graph.completion_paths[state] for bound in one.bounds if bound[0] == NOW),
            default=NEVER,
        )
        if live[state]
        else NEVER
        for state in states
    ]
    most_events = [max((window - one.missing for one in graph.completion_paths[state]), default=NEVER)
                   if live[state] and window else NEVER for state in states]  # fmt: skip
    most_closed = [max((low for _, low in opens), default=0) for opens in graph.opens]
    fresh = [_fresh(graph, link, most, most_events, most_closed) if graph.timed[link.target] else 0
             for link in graph.links]  # fmt: skip
    return Ages(tuple(most), tuple(most_events), tuple(most_closed), tuple(fresh))


def _fresh(
    graph: Graph, link: Link, most: Sequence[int], most_events: Sequence[int], most_closed: Sequence[int]
) -> int:
    """The age at a link's event of an instance whose deadlines all run from it."""
    state = link.target
    ends = [
        [limit for one, other, limit in completion_path.bounds if one == NOW and other in (link.operand, FIRST)]
        for completion_path in graph.completion_paths[state]
    ]
    left = max(min(some) for some in ends) if ends and all(ends) else NEVER
    closed = dict(graph.opens[state]).get(link.operand, 0)
    return age_of(left, most[state], most_events[state], most_events[state], closed, most_closed[state])

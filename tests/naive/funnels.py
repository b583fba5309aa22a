"""Funnels, slow and obviously right: from every event of the first step the chain is followed, one event at a time.

A **chain** begins at an event of the first step. Each further step takes the earliest later event that fits it. The
mode says what may come between; an event that may not, and one outside of the window, ends the chain. An event that
fits several steps continues the chain if it fits the next one, and is one that came between if it does not. So each
start has one chain; of all chains of a partition the longest counts, of those the one that starts first.

Source: ROWS part 2.

Readings chosen where ROWS leaves room:

- An event that fits the step reached last is none of *another* step, whatever else it fits.
- A partition without an event of the first step has a row, with 0 reached; a funnel does not count it.
- ``waited_seconds`` run until the window has closed, or until the last moment known (`until`) where that is earlier: in
  time, the window closes its length after the first step; in events, with its last event. Where the last step is
  reached nothing is waited for.
- ``final``: the watermark has passed the end of the window; or, where the last step is reached, its event.
- The first step has no step before it, so no share of one and no seconds; nobody drops out at the last step.
- Of equally many next events, names come in order, and then what nothing came after.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from naive.kleene import Event

Step = Callable[[Event], bool]
"""Whether an event fits a step."""
MODES = ("any_order_between", "strict_order", "steps_in_order", "once", "strict")
SECOND = 1_000_000


@dataclass(frozen=True)
class Window:
    """WITHIN: so many microseconds, or events."""

    amount: int
    counted: bool = False


@dataclass(frozen=True)
class Row:
    """A row of match_funnel_rows, but for its key; times in microseconds."""

    reached: int
    positions: tuple[int, ...]
    first_time: int | None
    last_time: int | None
    waited_seconds: float | None
    next_position: int | None
    next_name: str | None
    final: bool


@dataclass(frozen=True)
class Count:
    """A row of match_funnel, but for its operand."""

    group: str | None
    step: int
    reached: int
    share_of_first: float | None
    share_of_previous: float | None
    dropped: int
    seconds_p50: float | None
    seconds_p90: float | None
    next_events: tuple[tuple[str | None, int], ...]


def named(*names: str) -> list[Step]:
    """Steps of names, each perhaps of several: ``b|c``."""

    def step(text: str) -> Step:
        return lambda event: event.name in text.split("|")

    return [step(text) for text in names]


def letters(text: str, apart: int = 60 * SECOND) -> list[Event]:
    """Events named by the words of a text, the first at 0; positions from 1."""
    return [Event(number + 1, number * apart, name) for number, name in enumerate(text.split())]


def may_come_between(mode: str, steps: Sequence[Step], reached: int, event: Event) -> bool:
    """Whether an event that does not fit the next step may come behind the step of number `reached`, from 0."""
    same, of_a_step = steps[reached](event), any(step(event) for step in steps)
    if mode == "any_order_between":
        return True
    if mode == "strict_order":
        return same
    if mode == "steps_in_order":
        return same or not of_a_step
    if mode == "once":
        return not same
    assert mode == "strict"
    return False


def chain(events: Sequence[Event], steps: Sequence[Step], start: int, mode: str, within: Window | None) -> list[int]:
    """Numbers of the events that the chain from one event takes; none where it does not fit the first step."""
    if not steps[0](events[start]):
        return []
    taken = [start]
    for number in range(start + 1, len(events)):
        if len(taken) == len(steps):
            break
        span = number - start if within is not None and within.counted else events[number].time - events[start].time
        if within is not None and span >= within.amount:
            break
        if steps[len(taken)](events[number]):
            taken.append(number)
        elif not may_come_between(mode, steps, len(taken) - 1, events[number]):
            break
    return taken


def row(
    events: Sequence[Event],
    steps: Sequence[Step],
    mode: str = "any_order_between",
    within: Window | None = None,
    *,
    watermark: int | None = None,
    until: int | None = None,
) -> Row:
    """The row of one partition, whose events stand in order."""
    chains = [chain(events, steps, start, mode, within) for start in range(len(events))]
    taken = max(chains, key=len, default=[])  # the first of the longest
    if not taken:
        return Row(0, (), None, None, None, None, None, False)
    complete = len(taken) == len(steps)
    first, last = events[taken[0]], events[taken[-1]]
    behind = events[taken[-1] + 1] if taken[-1] + 1 < len(events) else None
    closed = _closing(events, taken[0], within)
    ends = [moment for moment in (closed, until) if moment is not None]
    waited = None if complete or not ends else max(min(ends) - last.time, 0) / SECOND
    if complete:
        final = watermark is not None and last.time <= watermark
    else:
        final = watermark is not None and closed is not None and closed <= watermark
    return Row(
        len(taken),
        tuple(events[number].position for number in taken),
        first.time,
        last.time,
        waited,
        None if behind is None else behind.position,
        None if behind is None else behind.name,
        final,
    )


def _closing(events: Sequence[Event], start: int, within: Window | None) -> int | None:
    """The moment from which a chain takes no more events; None: it is not known yet, or never comes."""
    if within is None:
        return None
    if not within.counted:
        return events[start].time + within.amount
    return events[start + within.amount - 1].time if start + within.amount <= len(events) else None


def funnel(
    partitions: Mapping[str | None, Sequence[Event]],
    steps: Sequence[Step],
    mode: str = "any_order_between",
    within: Window | None = None,
    *,
    by: Callable[[Event], str | None] | None = None,
    next_events: int = 3,
) -> list[Count]:
    """The rows of match_funnel, by group, NULL first, and step."""
    grouped: dict[str | None, list[tuple[list[int], Sequence[Event]]]] = {} if by is not None else {None: []}
    for events in partitions.values():
        taken = max((chain(events, steps, start, mode, within) for start in range(len(events))), key=len, default=[])
        if taken:
            grouped.setdefault(by(events[taken[0]]) if by is not None else None, []).append((taken, events))
    return [
        _count(group, grouped[group], step, len(steps), next_events)
        for group in sorted(grouped, key=lambda name: (name is not None, name or ""))
        for step in range(1, len(steps) + 1)
    ]


def _count(
    group: str | None, chains: Sequence[tuple[list[int], Sequence[Event]]], step: int, steps: int, most: int
) -> Count:
    reached = [sum(len(taken) >= each for taken, _ in chains) for each in range(1, steps + 1)]
    dropped = [(taken, events) for taken, events in chains if len(taken) == step < steps]
    gaps = [
        events[taken[step - 1]].time - events[taken[step - 2]].time for taken, events in chains if len(taken) >= step
    ]
    followed = Counter(events[taken[-1] + 1].name if taken[-1] + 1 < len(events) else None for taken, events in dropped)
    ranked = sorted(followed.items(), key=lambda item: (-item[1], item[0] is None, item[0] or ""))
    return Count(
        group,
        step,
        reached[step - 1],
        _share(reached[step - 1], reached[0]),
        None if step == 1 else _share(reached[step - 1], reached[step - 2]),
        len(dropped),
        None if step == 1 else percentile(gaps, Fraction(1, 2)),
        None if step == 1 else percentile(gaps, Fraction(9, 10)),
        tuple(ranked[:most]),
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def percentile(micros: Sequence[int], share: Fraction) -> float | None:
    """An exact percentile in seconds, between two values in proportion, as Spark's ``percentile`` takes it."""
    if not micros:
        return None
    ordered = sorted(micros)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return float((ordered[low] + (place - low) * (ordered[high] - ordered[low])) / SECOND)


def furthest_by_hand(events: Sequence[Event], steps: Sequence[Step], within: Window | None) -> int:
    """How far any choice of events at all goes under ``any_order_between``: all increasing choices are tried."""
    best = 0
    ways: list[list[int]] = [[]]
    for number, event in enumerate(events):
        for way in list(ways):
            if len(way) == len(steps) or not steps[len(way)](event):
                continue
            start = way[0] if way else number
            span = number - start if within is not None and within.counted else event.time - events[start].time
            if within is None or span < within.amount:
                ways.append([*way, number])
                best = max(best, len(way) + 1)
    assert all(one < other for way in ways for one, other in pairwise(way))
    return best

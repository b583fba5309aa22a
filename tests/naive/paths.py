"""Ways of names before and after an event, slow and obviously right: partitions are walked event by event.

The events of a partition, in order, become **items**. An item is an event with what it is called: its name, or ``…``
where the name is not of the alphabet. With ``fold``, an event that is called as the one before it joins that one's
item, whose time and values stay those of its first event.

- Around a name: each item of that name is one occurrence. Its path has up to `before` items before it, the item, and up
  to `after` items behind it. With a window it has only items less than that away from the middle, on either side: from
  the event of one that is nearest to the other.
- Around nothing: each partition is one occurrence, and its path has all items; with a window those less than it behind
  the first.

Equal paths of one group count together: how many partitions have one, how many occurrences, the share of all
occurrences of the group, and the median of the time from the first item to the last.

Readings chosen where the issue leaves room: a window in events counts events, folded ones too. The group is the value
of the middle item, or of the first where there is no middle. The most frequent come first; of equal ones that of more
partitions, then the lesser one, name by name, ``…`` behind all names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from naive.funnels import Window, percentile
from naive.kleene import Event

OTHER = "…"


@dataclass(frozen=True)
class Item:
    """An event as a path shows it, with its number among the events of its partition; and the last that joined it."""

    called: str
    number: int
    event: Event
    last_number: int
    last: Event


@dataclass(frozen=True)
class Path:
    """A row of match_paths."""

    path: tuple[str, ...]
    partitions: int
    occurrences: int
    share: float
    seconds_p50: float | None
    group: str | None


def items_of(events: Sequence[Event], alphabet: Sequence[str], fold: bool) -> list[Item]:
    found: list[Item] = []
    for number, event in enumerate(events):
        called = event.name if event.name in alphabet else OTHER
        if fold and found and found[-1].called == called:
            found[-1] = replace(found[-1], last_number=number, last=event)
        else:
            found.append(Item(called, number, event, number, event))
    return found


def occurrences(
    events: Sequence[Event],
    alphabet: Sequence[str],
    around: str | None,
    before: int,
    after: int,
    within: Window | None,
    fold: bool,
) -> list[tuple[Item, list[Item]]]:
    """The middle item, or the first, of each occurrence in a partition, and its path."""
    items = items_of(events, alphabet, fold)

    def near(one: Item, other: Item) -> bool:
        if within is None:
            return True
        before, behind = sorted((one, other), key=lambda item: item.number)
        away = behind.number - before.last_number if within.counted else behind.event.time - before.last.time
        return one == other or away < within.amount

    if around is None:
        if not items:
            return []
        begin = replace(items[0], last_number=0, last=items[0].event)
        return [(items[0], [item for item in items if near(begin, item)])]
    return [
        (middle, [item for item in items[max(place - before, 0) : place + after + 1] if near(middle, item)])
        for place, middle in enumerate(items)
        if middle.called == around
    ]


def paths(
    partitions: Mapping[str | None, Sequence[Event]],
    alphabet: Sequence[str],
    around: str | None = None,
    before: int = 2,
    after: int = 3,
    within: Window | None = None,
    *,
    fold: bool = True,
    by: Callable[[Event], str | None] | None = None,
    most: int = 100,
) -> list[Path]:
    """The rows of match_paths, by group, NULL first."""
    partitions_of: dict[tuple[str | None, tuple[str, ...]], list[str | None]] = defaultdict(list)
    waits: dict[tuple[str | None, tuple[str, ...]], list[int]] = defaultdict(list)
    for key, events in partitions.items():
        for middle, items in occurrences(events, alphabet, around, before, after, within, fold):
            group = None if by is None else by(middle.event)
            path = group, tuple(item.called for item in items)
            partitions_of[path].append(key)
            waits[path].append(items[-1].event.time - items[0].event.time)
    totals: dict[str | None, int] = defaultdict(int)
    for (group, _), keys in partitions_of.items():
        totals[group] += len(keys)
    rows = [
        Path(path, len(set(keys)), len(keys), len(keys) / totals[group],
             percentile(waits[group, path], Fraction(1, 2)), group)
        for (group, path), keys in partitions_of.items()
    ]  # fmt: skip

    def order(row: Path) -> tuple[object, ...]:
        names = tuple((name == OTHER, name) for name in row.path)
        return row.group is not None, row.group or "", -row.occurrences, -row.partitions, names

    found: list[Path] = []
    for row in sorted(rows, key=order):
        if sum(other.group == row.group for other in found) < most:
            found.append(row)
    return found

"""What alerts tell of a stream: the matches and groups that there are, from the oracles of the engines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from naive import groups as naive_groups
from naive import kleene, machines
from naive.group_cases import named
from naive.machine_cases import directly, p, then
from sql.published_events import E

WITHIN = 6
"""Seconds of the kept pattern."""

SUBSCRIPTIONS = {
    "pair": machines.Subscription(then(p("a"), p("b")), "a ; b PARTITION BY key", partition=("key",)),
    "near": machines.Subscription(machines.Seq((p("a"), p("b"), p("c")), (False, True)), "a ; b , c"),
    "next": machines.Subscription(directly(p("a"), p("b")), "a , b PARTITION BY key", partition=("key",)),
}
PATTERN = f"a ; b+ PARTITION BY key WITHIN {WITHIN} SEC"
GROUPS = named("a, b+", 4)


@dataclass(frozen=True)
class Thing:
    """A match or a group: its partition, and its bindings or steps; what predicates read beside these."""

    key: str | None
    what: frozenset[tuple[str, tuple[int, ...]]] | tuple[int, int, int]
    probability: float = field(default=1.0, compare=False)

    @property
    def bindings(self) -> dict[str, tuple[int, ...]]:
        assert isinstance(self.what, frozenset)
        return dict(self.what)

    @property
    def last_position(self) -> int:
        return max(max(positions) for positions in self.bindings.values())


Predicate = tuple[str | None, Callable[[Any], bool]]
"""As `where` has it, and what it means of a thing; of a forecast, for its probability."""
OF_MATCHES: tuple[Predicate, ...] = (
    (None, lambda thing: True),
    ("last_position % 3 > 0", lambda thing: thing.last_position % 3 > 0),
    ("bindings['b'][0] > 6", lambda thing: thing.bindings["b"][0] > 6),
    # NULL where there is no key.
    ("key <> 'l'", lambda thing: thing.key == "k"),
)
PREDICATES: dict[str, tuple[Predicate, ...]] = {
    "subscription": OF_MATCHES,
    "pattern": OF_MATCHES,
    "group": (
        (None, lambda thing: True),
        ("probability > 0.437", lambda thing: thing.probability > 0.437),
        ("key <> 'l'", lambda thing: thing.key == "k"),
    ),
    "forecast": (
        (None, lambda probability: probability > 0),
        ("probability > 0.3", lambda probability: probability > 0.3),
        ("probability >= 0.5", lambda probability: probability >= 0.5),
    ),
}


def match(key: str | None, bindings: Mapping[str, Sequence[int]]) -> Thing:
    """A match with the operands that have events."""
    return Thing(key, frozenset((name, tuple(positions)) for name, positions in bindings.items() if positions))


def thing_of(row: Any) -> Thing:
    """What a row of `alerts` tells, or the JSON of one."""
    if row["t_start"] is not None:
        return Thing(row["key"], (row["t_start"], row["t_first"], row["t_end"]), row["probability"])
    return match(row["key"], row["bindings"])


def matches(subscription: str, events: Sequence[E]) -> set[Thing]:
    """The matches of a subscription among all events of a stream."""
    given = [
        machines.Event(position, event.time * 1000, event.name, event.key)
        for position, event in enumerate(events, start=1)
    ]
    return {
        match(found.key[0] if found.key else None, {name: [at] for name, at in found.bindings.items()})
        for found in machines.matches(SUBSCRIPTIONS[subscription], given)
    }


def final_matches(events: Sequence[E]) -> set[Thing]:
    """The matches of the kept pattern whose window the stream's time has left."""
    by_key: dict[str | None, list[kleene.Event]] = defaultdict(list)
    for position, event in enumerate(events, start=1):
        by_key[event.key].append(kleene.Event(position, event.time * 1000, event.name))
    found = set()
    for key, given in by_key.items():
        for row in kleene.matches(PATTERN, given):
            first = min(position for positions in row.values() for position in positions)
            if events[-1].time - events[first - 1].time >= WITHIN * 1000:
                found.add(match(key, row))
    return found


def closed_groups(events: Sequence[E]) -> set[Thing]:
    """The groups that stay as they are."""
    by_key: dict[str | None, dict[int, list[naive_groups.Row]]] = defaultdict(dict)
    for event in events:
        by_key[event.key][event.attributes["t"]] = [naive_groups.Row(event.name, event.attributes["p"])]
    return {
        Thing(key, (group.t_start, group.t_first, group.t_end), group.probability)
        for key, steps in by_key.items()
        for group in naive_groups.groups(GROUPS, steps)
        if group.final
    }

"""Subscriptions over the oracle's events, run by the kernels, and their answers as the oracle writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from naive import machine_forecasts as chains
from naive import machines as naive
from naive.machine_cases import ATTRIBUTES, LOGIN_ATTRIBUTES

from benchmarks.named_events import named_events
from patternlake.udfs.language.predicate.columns import Column, typed_column
from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.machines.forecasts.passage import DEAD, Cell, Counts
from patternlake.udfs.machines.forecasts.totals import counts_of
from patternlake.udfs.machines.graph.ages import NEVER, age_of
from patternlake.udfs.machines.graph.composite_states import state_name
from patternlake.udfs.machines.kernels.matching_primitives import Codes, matching_primitives
from patternlake.udfs.machines.kernels.running import Held, Machines, nothing_held
from patternlake.udfs.machines.kernels.stream import Stream
from patternlake.udfs.machines.kernels.tables import Compiled, compiled
from patternlake.udfs.machines.query import Subscription, compile_subscription

TYPES = {**ATTRIBUTES, **LOGIN_ATTRIBUTES}


def asked(text: str) -> Subscription:
    return compile_subscription(parse(text), Scope(attributes=TYPES))


Row = tuple[tuple[Any, ...], int, frozenset[tuple[str, int]]]


@dataclass
class Run:
    """Subscriptions of one partition and window, batch after batch."""

    texts: Sequence[str]
    merge: bool = True
    apart: bool = False
    codes: Codes = field(default_factory=Codes)

    def __post_init__(self) -> None:
        subscriptions = [asked(text) for text in self.texts]
        merge, dominate = self.merge and not self.apart, not self.apart
        self.compiled: Compiled = compiled(subscriptions, merge=merge, dominate=dominate)
        self.names = [[primitive.name for primitive in one.primitives] for one in subscriptions]
        self.partition = subscriptions[0].partition
        self.machines = Machines(self.compiled, tracing=self.apart)
        self.event_at, self.times = np.zeros(1, np.int64), np.zeros(0, np.int64)
        self.held: dict[tuple[Any, ...], Held] = {}
        self.matches: list[set[Row]] = [set() for _ in self.texts]

    def take(self, events: Sequence[naive.Event]) -> None:
        """Take a batch, in order within each partition."""
        parts: dict[tuple[Any, ...], list[naive.Event]] = {}
        for event in sorted(events, key=lambda event: (event.time, event.position)):
            parts.setdefault(tuple(event.column(column) for column in self.partition), []).append(event)
        if not parts:
            return
        ordered = [event for some in parts.values() for event in some]
        event_at = self.event_at = np.cumsum([0, *map(len, parts.values())]).astype(np.int64)
        self.times = np.array([event.time for event in ordered], np.int64)
        held = joined([self.held.get(part) or nothing_held(self.compiled, 1) for part in parts])
        found, kept = self.machines.take(held, event_at, self.stream(ordered))
        for number, part in enumerate(parts):
            self.held[part] = one(kept, number)
        key = [part for part, some in parts.items() for _ in some]
        for row in range(len(found.event)):
            event = int(found.event[row])
            for number in self.compiled.graph.final[found.state[row]]:
                bound = self.bound(number, int(found.mask[row]), found.position[row])
                self.matches[number].add((key[event], ordered[event].position, bound))

    def stream(self, events: Sequence[naive.Event]) -> Stream:
        vocabulary = sorted({event.name for event in events})
        names = np.array([vocabulary.index(event.name) for event in events], np.int64)
        columns = {name: attribute(name, events) for name in TYPES}
        columns["key"] = typed_column(pa.array([event.key for event in events], pa.string()), "string")
        at, who = matching_primitives(self.compiled.primitives, named_events(names, vocabulary, columns))
        words = Column(np.array([event.name for event in events], object), np.ones(len(events), np.bool_), "string")
        codes = [self.codes.of({**columns, "name": words}[column]) for column in self.compiled.columns]
        return Stream(
            np.array([event.time for event in events], np.int64),
            np.array([event.position for event in events], np.int64),
            at,
            who,
            np.array(codes, np.int64).reshape(len(codes), len(events)),
            np.arange(len(events) + 1, dtype=np.float64),
        )

    def bound(self, number: int, mask: int, positions: np.ndarray[Any, Any]) -> frozenset[tuple[str, int]]:
        named = enumerate(self.names[number])
        return frozenset((name, int(positions[operand])) for operand, name in named if mask >> operand & 1)

    def live(self, number: int) -> set[tuple[Any, ...]]:
        """The smallest assignments by partition, join values and bound operands, as (partition, bindings)."""
        states = {state for composite_state, state in self.compiled.graph.states[number].items()}
        found: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
        for part, held in self.held.items():
            for row in range(len(held.state)):
                if held.state[row] not in states:
                    continue
                mask = int(held.mask[row])
                order = [(int(held.time[row, at]), int(held.position[row, at])) if mask >> at & 1 else (2**62, 0)
                         for at in range(held.time.shape[1])]  # fmt: skip
                which = part, tuple(held.joins[row].tolist()), mask
                found.setdefault(which, []).append((order, self.bound(number, mask, held.position[row])))
        return {(part, min(rows, key=lambda row: row[0])[1]) for (part, _, _), rows in found.items()}

    def counts(self, number: int) -> Counts:
        return counts_of(self.compiled, self.machines.totals, number)

    def as_ours(self, number: int, counts: chains.Counts) -> dict[Cell, dict[Cell, float]]:
        """Counts of the oracle with what is left as ages."""
        chain = self.compiled.subscriptions[number].master
        named = {
            state_name(chain, composite_state): composite_state
            for composite_state in self.compiled.graph.states[number]
        }

        def cell(one: chains.Cell) -> Cell:
            return DEAD if one == chains.DEAD else (named[one.state], self.age(number, one))

        found: dict[Cell, dict[Cell, float]] = {}
        for one, moves in counts.items():
            some = found.setdefault(cell(one), {})
            for after, count in moves.items():
                some[cell(after)] = some.get(cell(after), 0.0) + count
        return found

    def age(self, number: int, cell: chains.Cell) -> int:
        """The age of what a cell of the oracle has left."""
        ages, chain = self.compiled.ages, self.compiled.subscriptions[number].master
        states = {
            state_name(chain, composite_state): state
            for composite_state, state in self.compiled.graph.states[number].items()
        }
        state, left = states[cell.state], cell.left
        if not self.compiled.graph.timed[state]:
            return 0
        time, events = (NEVER if some is None else some for some in left[:2])
        most = ages.most[state], ages.most_events[state], ages.most_closed[state]
        return age_of(time, most[0], events, most[1], left.closed, most[2])


def attribute(name: str, events: Sequence[naive.Event]) -> Column:
    texts = [None if event.column(name) is None else str(event.column(name)) for event in events]
    return typed_column(pa.array(texts, pa.string()), TYPES[name])


def joined(parts: Sequence[Held]) -> Held:
    """Several partitions as one value."""
    at = np.cumsum([0, *(len(part.state) for part in parts)]).astype(np.int64)
    names = [name for name in Held._fields if name != "at"]
    return Held(at=at, **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def one(held: Held, number: int) -> Held:
    """One of several partitions."""
    low, high = held.at[number : number + 2]
    rows = {name: getattr(held, name)[low:high].copy() for name in Held._fields[4:]}
    own = {name: getattr(held, name)[number : number + 1].copy() for name in Held._fields[:3]}
    return Held(at=np.array([0, high - low]), **own, **rows)

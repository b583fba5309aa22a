"""Exact patterns with repetitions, slow and obviously right: every assignment of events to operands is tried (SPEC 3).

A pattern is read as a union of **linearizations**, each a plain sequence of operands: an alternative gives one
linearization per choice, ``&`` one linearization per way to interleave its sides. What is inside a side of ``&`` keeps
its order, and each operand is one block. Predicates are judged tuple by tuple in plain Python (`naive.predicates`).

Readings chosen where SPEC 3 leaves room:

- Rule M is judged within one linearization, as ``A+ & B`` = ``(A+ ; B) ∪ (B ; A+)`` literally says: an untaken
  alternative, or another order, has no operand to add to. Equal rows of several linearizations count once.
- A conjunct with ``b[i-1]`` is judged for each kept event of b and the kept one before it; "can be added" asks it of
  the added event and the kept one before that only. With ``[n]`` it holds between neighbours of each combination.
- ``[attr]``: any two events of the match have equal, known values; a negated event counts only where it has the value
  too. A match of one event passes whatever its value.
- ``!X`` lies between the last event of all operands before it and the first one of all operands behind it; where a side
  has no event there is no between, and it forbids nothing.
- ``skip_till_next`` and ``strict`` scan from each start. Where several operands can take an event, the last one in
  order does (so a following operand goes before the collecting one). An event that does not qualify against all kept
  ones is not taken; a kept one is never dropped again. A last ``+`` or ``*`` collects to the end of the window, under
  ``strict`` to the first event that does not qualify. Of several linearizations' matches with one start, the one with
  the least positions counts, the first in text order among equals.
- A conjunct with aggregates, such as ``COUNT(b.x) > 2``, is asked of whole matches, as ``!X`` is: it says which count,
  and never what is collected. An operand without events has a COUNT of 0, all else of it is NULL; a conjunct that names
  another operand besides does not apply where that has no event.
- ``after_match`` means nothing under ``skip_till_any``.
- Rows are ordered by the positions of their events in the order of events, then by operand in text order.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise, product
from typing import Any

from naive.aggregates import aggregate
from naive.predicates import call, judge, value

from patternlake.udfs.language.predicate.expressions import Aggregate, EqualAlong, Expression, Field, to_sql
from patternlake.udfs.language.predicate.predicates import Predicate, Scope, bind, parse_predicate
from patternlake.udfs.language.predicate.references import Reference
from patternlake.udfs.language.query import operands as language_operands
from patternlake.udfs.language.query import tree
from patternlake.udfs.language.query.parser import parse

EPOCH = dt.datetime(1970, 1, 1)
Linearization = tuple["str | Gap", ...]
Assignment = dict[str, tuple[int, ...]]
"""Numbers of the events of each operand, in order."""
Row = dict[str, tuple[int, ...]]
"""Positions of the events of each operand that has any."""


@dataclass(frozen=True)
class Event:
    """One event of a partition; `time` in microseconds, `values` of attributes as Python values."""

    position: int
    time: int
    name: str
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def column(self, name: str) -> Any:
        if name == "time":
            return EPOCH + dt.timedelta(microseconds=self.time)
        return {"name": self.name, "position": self.position}.get(name, self.values.get(name))


@dataclass(frozen=True)
class Gap:
    """Negated operands at one place of a linearization."""

    negated: tuple[str, ...]


@dataclass(frozen=True)
class Operand:
    """An operand: the name that it takes, and how many events (`most` None: as many as can be added)."""

    name: str
    takes: str
    least: int
    most: int | None

    @property
    def grows(self) -> bool:
        return self.most is None


class Asked:
    """A query over the events of one partition."""

    def __init__(
        self,
        text: str,
        events: Sequence[Event],
        types: Mapping[str, str] | None = None,
        parameters: Mapping[str, str] | None = None,
    ) -> None:
        query = parse(text)
        scope = Scope(attributes=types or {}, parameters=parameters or {})
        self.events = sorted(events, key=lambda event: (event.time, event.position))
        self.within = query.within
        named = language_operands.number(query)
        self.operands = {operand.name: _operand(operand) for operand in named}
        self.name_of = {id(operand.event): operand.name for operand in named}
        self.defined = {
            part.name: bind(parse_predicate(part.predicate), replace(scope, operands=())).root for part in query.define
        }
        conjuncts: tuple[Predicate, ...] = ()
        if query.where is not None:
            read = parse_predicate(query.where)
            conjuncts = bind(read, replace(scope, operands=named.names, aggregates=True)).conjuncts
        self.along = [part.root.attribute for part in conjuncts if isinstance(part.root, EqualAlong)]
        self.totals = [part for part in conjuncts if aggregates_in(part.root)]
        self.conjuncts = [p for p in conjuncts if not isinstance(p.root, EqualAlong) and p not in self.totals]
        self.linearizations = list(dict.fromkeys(self.linearizations_of(query.pattern)))
        self.ways = list(dict.fromkeys(self.ways_of(query.pattern)))

    def linearizations_of(self, node: tree.Node) -> list[Linearization]:
        """The plain sequences whose union a pattern is, in text order."""
        if isinstance(node, tree.Event):
            return [(self.name_of[id(node)],)]
        if isinstance(node, tree.Repetition):
            return self.linearizations_of(node.item)
        if isinstance(node, tree.Negation):
            return [(Gap(tuple(self.name_of[id(item)] for item in node.items)),)]
        parts = [self.linearizations_of(child) for child in node.children()]
        if isinstance(node, tree.Disjunction):
            return [linearization for part in parts for linearization in part]
        if isinstance(node, tree.Conjunction):
            return [linearization for chosen in product(*parts) for linearization in interleaved(chosen)]
        return [tuple(item for linearization in chosen for item in linearization) for chosen in product(*parts)]

    def ways_of(self, node: tree.Node) -> list[Linearization]:
        """The linearizations in the order in which skip_till_next and strict try them.

        What is optional is taken before it is left out; a way without it does not name it.
        """
        if isinstance(node, tree.Repetition) and node.minimum == 0:
            return [*self.linearizations_of(node), ()]
        if isinstance(node, tree.Disjunction):
            return [way for child in node.children() for way in self.ways_of(child)]
        if isinstance(node, tree.Sequence):
            parts = [self.ways_of(child) for child in node.children()]
            return [tuple(item for way in chosen for item in way) for chosen in product(*parts)]
        return self.linearizations_of(node)

    def takes(self, name: str, number: int) -> bool:
        """Whether an operand takes an event, by its name or DEFINE alone."""
        event, wanted = self.events[number], self.operands[name].takes
        if wanted in self.defined:
            root = self.defined[wanted]
            references = Predicate(root).references
            return judge(root, {reference: event.column(reference.column) for reference in references}) is True
        return event.name == wanted

    def truth(self, conjunct: Predicate, chosen: Mapping[tuple[str, bool], int]) -> bool:
        """A conjunct for one event of each (operand, whether it is the one before)."""
        row: dict[Reference, Any] = {
            reference: self.events[chosen[reference.operand or "", reference.index == "i-1"]].column(reference.column)
            for reference in conjunct.references
        }
        return judge(conjunct.root, row) is True

    def holds(self, conjunct: Predicate, kept: Assignment, only: tuple[str, int] | None = None) -> bool:
        """A conjunct for all kept events; of the pairs of operand `only` but the one that ends with its event."""
        names = sorted(conjunct.operands)
        if any(not kept.get(name) for name in names):
            return True
        before = {reference.operand for reference in conjunct.references if reference.index == "i-1"}
        choices: list[list[dict[tuple[str, bool], int]]] = []
        for name in names:
            if name in before:
                pairs = list(pairwise(kept[name]))
                if only is not None and only[0] == name:
                    pairs = [pair for pair in pairs if pair[1] == only[1]]
                choices.append([{(name, True): first, (name, False): second} for first, second in pairs])
            else:
                choices.append([{(name, False): number} for number in kept[name]])
        return all(
            self.truth(conjunct, {place: number for part in chosen for place, number in part.items()})
            for chosen in product(*choices)
        )

    def equal(self, numbers: Sequence[int]) -> bool:
        """Whether ``[attr]`` holds between all of them."""
        return all(
            call("=", [self.events[a].column(name), self.events[b].column(name)]) is True
            for name in self.along
            for a, b in combinations(numbers, 2)
        )

    def in_window(self, first: int, last: int) -> bool:
        if self.within is None:
            return True
        if self.within.counted:
            return last - first < self.within.amount
        return self.events[last].time - self.events[first].time < self.within.amount

    def positive(self, linearization: Linearization) -> list[str]:
        return [item for item in linearization if isinstance(item, str)]

    def judged(self, linearization: Linearization) -> list[Predicate]:
        """The conjuncts over operands of a linearization, none of them negated."""
        return [part for part in self.conjuncts if part.operands <= set(self.positive(linearization))]

    def valid(self, linearization: Linearization, kept: Assignment, only: tuple[str, int] | None = None) -> bool:
        """Order, window and predicates."""
        runs = [kept[name] for name in self.positive(linearization) if kept[name]]
        numbers = [number for run in runs for number in run]
        if any(later <= earlier for earlier, later in pairwise(numbers)):
            return False
        if numbers and not self.in_window(numbers[0], numbers[-1]):
            return False
        return self.equal(numbers) and all(self.holds(part, kept, only) for part in self.judged(linearization))

    def assignments(self, linearization: Linearization) -> Iterator[Assignment]:
        """Everything that takes events in order."""
        names = self.positive(linearization)

        def go(at: int, low: int, kept: Assignment) -> Iterator[Assignment]:
            if at == len(names):
                yield dict(kept)
                return
            operand = self.operands[names[at]]
            taken = [number for number in range(low, len(self.events)) if self.takes(operand.name, number)]
            most = len(taken) if operand.most is None else operand.most
            for size in range(operand.least, most + 1):
                for chosen in combinations(taken, size):
                    begun = [number for run in (*kept.values(), chosen) for number in run]
                    if not begun or self.in_window(begun[0], begun[-1]):
                        yield from go(at + 1, chosen[-1] + 1 if chosen else low, {**kept, operand.name: chosen})

        yield from go(0, 0, {})

    def can_grow(self, linearization: Linearization, kept: Assignment) -> bool:
        """Whether some event can be added to a ``+`` or ``*`` operand."""
        for name in self.positive(linearization):
            if not self.operands[name].grows:
                continue
            for number in range(len(self.events)):
                if number not in kept[name] and self.takes(name, number):
                    more = {**kept, name: tuple(sorted((*kept[name], number)))}
                    if self.valid(linearization, more, (name, number)):
                        return True
        return False

    def free(self, linearization: Linearization, kept: Assignment) -> bool:
        """Whether no negated event stands in its gap."""
        for at, item in enumerate(linearization):
            if isinstance(item, str):
                continue
            before = [number for name in self.positive(linearization[:at]) for number in kept[name]]
            behind = [number for name in self.positive(linearization[at + 1 :]) for number in kept[name]]
            if before and behind:
                for number in range(max(before) + 1, min(behind)):
                    if any(self.forbidden(name, number, linearization, kept) for name in item.negated):
                        return False
        return True

    def forbidden(self, name: str, number: int, linearization: Linearization, kept: Assignment) -> bool:
        if not self.takes(name, number):
            return False
        conjuncts = [
            p for p in self.conjuncts if name in p.operands and p.operands <= {name, *self.positive(linearization)}
        ]
        everything = [other for run in kept.values() for other in run]
        equal = all(self.equal([number, other]) for other in everything)
        return equal and all(self.holds(part, {**kept, name: (number,)}) for part in conjuncts)

    def aggregated(self, part: Aggregate, kept: Mapping[str, Sequence[int]]) -> Any:
        """The value of an aggregate over the kept events of its operand."""
        (name,) = Predicate(part).operands
        rows = [{r: self.events[n].column(r.column) for r in Predicate(part).references} for n in kept.get(name, ())]
        return aggregate(part.function, [value(part.argument, row) for row in rows])

    def totalled(self, kept: Assignment) -> bool:
        """Whether all conjuncts with aggregates hold for a whole match."""
        for conjunct in self.totals:
            others = bare_references(conjunct.root)
            if any(not kept.get(reference.operand or "") for reference in others):
                continue
            row: dict[Any, Any] = {part: self.aggregated(part, kept) for part in aggregates_in(conjunct.root)}
            row |= {r: self.events[kept[r.operand or ""][0]].column(r.column) for r in others}
            if judge(conjunct.root, row) is not True:
                return False
        return True

    def values(self, row: Row) -> dict[str, Any]:
        """Each aggregate of the query for one answer, by its text."""
        number = {event.position: n for n, event in enumerate(self.events)}
        kept = {name: [number[position] for position in positions] for name, positions in row.items()}
        parts = dict.fromkeys(part for conjunct in self.totals for part in aggregates_in(conjunct.root))
        return {to_sql(part): self.aggregated(part, kept) for part in parts}

    def every(self) -> list[Assignment]:
        """skip_till_any."""
        found = []
        for linearization in self.linearizations:
            for kept in self.assignments(linearization):
                whole = (
                    any(kept.values()) and self.valid(linearization, kept) and not self.can_grow(linearization, kept)
                )
                if whole and self.free(linearization, kept) and self.totalled(kept):
                    found.append(kept)
        return found

    def qualifies(self, linearization: Linearization, kept: Assignment, name: str, number: int) -> bool:
        if not self.takes(name, number):
            return False
        more = {**kept, name: (*kept[name], number)}
        bound = {other for other in more if more[other]}
        numbers = sorted(other for run in more.values() for other in run)
        return (
            self.in_window(numbers[0], number)
            and self.equal(numbers)
            and all(
                self.holds(part, more, (name, number)) for part in self.judged(linearization) if part.operands <= bound
            )
        )

    def of_start(self, linearization: Linearization, start: int, strict: bool) -> Assignment | None:
        """The match of a start in one way, under skip_till_next and strict: it takes all that it names."""
        names = self.positive(linearization)
        if not names:
            return None
        least = {name: max(1, self.operands[name].least) for name in names}
        kept: Assignment = dict.fromkeys(names, ())
        at = 0
        for number in range(start, len(self.events)):
            found = None
            for place in range(at, len(names)):
                operand = self.operands[names[place]]
                has_room = operand.most is None or len(kept[operand.name]) < operand.most
                if has_room and self.qualifies(linearization, kept, operand.name, number):
                    found = place
                if len(kept[operand.name]) < least[operand.name]:
                    break
            if found is None:
                if strict or number == start:
                    break
                continue
            at = found
            kept[names[at]] = (*kept[names[at]], number)
            last = self.operands[names[-1]]
            if at == len(names) - 1 and last.most is not None and len(kept[last.name]) == last.most:
                break
        if any(len(kept[name]) < least[name] for name in names):
            return None
        return kept if self.free(linearization, kept) and self.totalled(kept) else None

    def per_start(self, strict: bool, past_last: bool) -> list[Assignment]:
        """skip_till_next and strict."""
        found: list[Assignment] = []
        resume = 0
        for start in range(len(self.events)):
            if start < resume:
                continue
            of_ways = (self.of_start(way, start, strict) for way in self.ways)
            best = next((kept for kept in of_ways if kept is not None), None)
            if best is None:
                continue
            found.append(best)
            if past_last:
                resume = max(number for run in best.values() for number in run) + 1
        return found

    def rows(self, found: Sequence[Assignment]) -> list[Row]:
        """The distinct answers, in their order."""
        order = {name: at for at, name in enumerate(self.operands)}

        def rank(kept: Assignment) -> Any:
            numbers = sorted((number, order[name]) for name, run in kept.items() for number in run)
            positions = [self.events[number].position for number, _ in numbers]
            return positions, [place for _, place in numbers]

        rows: list[Row] = []
        for kept in sorted(found, key=rank):
            row = {name: tuple(self.events[n].position for n in kept[name]) for name in order if kept.get(name)}
            if row not in rows[-1:]:
                rows.append(row)
        return rows


def _operand(operand: language_operands.Operand) -> Operand:
    node = operand.node
    least, most = (node.minimum, node.maximum) if isinstance(node, tree.Repetition) else (1, 1)
    return Operand(operand.name, operand.event.name, least, most)


def aggregates_in(root: Expression) -> list[Aggregate]:
    """The aggregates of a tree, in text order."""
    return [part for part in root.walk() if isinstance(part, Aggregate)]


def bare_references(root: Expression) -> list[Reference]:
    """What a tree refers to outside of its aggregates."""
    if isinstance(root, Aggregate):
        return []
    own = [root.reference] if isinstance(root, Field) else []
    return [*own, *(reference for part in root.children() for reference in bare_references(part))]


def interleaved(linearizations: Sequence[Linearization]) -> list[Linearization]:
    """All merges of some linearizations that keep the order of each."""
    if not any(linearizations):
        return [()]
    found = []
    for at, linearization in enumerate(linearizations):
        if linearization:
            rest = [other[1:] if place == at else other for place, other in enumerate(linearizations)]
            found += [(linearization[0], *merged) for merged in interleaved(rest)]
    return found


def matches(
    text: str,
    events: Sequence[Event],
    types: Mapping[str, str] | None = None,
    *,
    parameters: Mapping[str, str] | None = None,
    policy: str = "skip_till_any",
    after_match: str = "next",
) -> list[Row]:
    """All rows of one partition, in their order."""
    asked = Asked(text, events, types, parameters)
    return answer(asked, policy, after_match)


def answer(asked: Asked, policy: str, after_match: str) -> list[Row]:
    """All rows of one partition, in their order."""
    if policy == "skip_till_any":
        return asked.rows(asked.every())
    return asked.rows(asked.per_start(policy == "strict", after_match == "past_last"))


def valued(
    text: str,
    events: Sequence[Event],
    types: Mapping[str, str] | None = None,
    *,
    policy: str = "skip_till_any",
    after_match: str = "next",
) -> list[tuple[Row, dict[str, Any]]]:
    """As `matches`, each row with the values of the query's aggregates."""
    asked = Asked(text, events, types)
    return [(row, asked.values(row)) for row in answer(asked, policy, after_match)]

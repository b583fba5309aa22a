"""A question of exact matching over the events of one partition, and the judging of its conditions in plain Python."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise, product
from typing import Any, NamedTuple

from naive.aggregates import aggregate
from naive.predicates import call, judge, value

from patternlake.udfs.language.predicate.expressions import Aggregate, EqualAlong, Expression, Field
from patternlake.udfs.language.predicate.predicates import Predicate, Scope, bind, parse_predicate
from patternlake.udfs.language.predicate.references import Reference
from patternlake.udfs.language.query import operands as language_operands
from patternlake.udfs.language.query import tree
from patternlake.udfs.language.query.parser import parse

EPOCH = dt.datetime(1970, 1, 1)
Row = dict[str, tuple[int, ...]]
"""Positions of the events of each operand that has any."""


class Taken(NamedTuple):
    """The number of an event, and in which round of each repeated group around its operand it was taken."""

    number: int
    rounds: tuple[int, ...] = ()


Kept = dict[str, tuple[Taken, ...]]
"""What each operand has taken, in order."""


@dataclass(frozen=True)
class Event:
    """One event of a partition; `time` in microseconds, `values` of attributes as Python values."""

    position: int
    time: int
    name: str
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def column(self, name: str) -> Any:
        if name == "time":
            return moment(self.time)
        return {"name": self.name, "position": self.position}.get(name, self.values.get(name))


def moment(time: int) -> dt.datetime:
    return EPOCH + dt.timedelta(microseconds=time)


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
        self.scope = Scope(attributes=types or {}, parameters=parameters or {})
        self.events = sorted(events, key=lambda event: (event.time, event.position))
        self.known_names: dict[tuple[str, int], bool] = {}
        self.within = query.within
        self.pattern = query.pattern
        named = language_operands.number(query)
        self.names = named.names
        self.event_name = {operand.name: operand.event.name for operand in named}
        self.name_of = {id(operand.event): operand.name for operand in named}
        self.negated = {operand.name for operand in named if operand.negated}
        self.groups = dict(self.groups_around(query.pattern, ()))
        self.defined = {
            part.name: bind(parse_predicate(part.predicate), replace(self.scope, operands=())).root
            for part in query.define
        }
        conjuncts = [] if query.where is None else self.bound(query.where)
        self.deadlines: dict[int, list[Predicate]] = {}
        for node in query.pattern.walk():
            if isinstance(node, tree.Negation):
                texts = [condition.text for part in node.walk() for condition in part.conditions]
                self.deadlines[id(node)] = [part for each in texts for part in self.bound(each)]
        conjuncts += [p for node in query.pattern.walk() for each in node.conditions for p in self.bound(each.text)]
        self.along = [part.root.attribute for part in conjuncts if isinstance(part.root, EqualAlong)]
        self.totals = [part for part in conjuncts if reads(part)]
        self.conjuncts = [p for p in conjuncts if not isinstance(p.root, EqualAlong) and p not in self.totals]

    def bound(self, text: str) -> list[Predicate]:
        """The conjuncts of WHERE, or of a time condition."""
        scope = replace(self.scope, operands=self.names, aggregates=True)
        return list(bind(parse_predicate(text), scope).conjuncts)

    def groups_around(self, node: tree.Node, around: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Each operand and the repeated groups around it, outermost first."""
        if isinstance(node, tree.Event):
            yield self.name_of[id(node)], around
        if isinstance(node, tree.Repetition) and not isinstance(node.item, tree.Event):
            around = (*around, id(node))
        for child in node.children():
            yield from self.groups_around(child, around)

    def is_named(self, wanted: str, number: int) -> bool:
        """Whether an event has a name, or satisfies the primitive of that name."""
        if (wanted, number) not in self.known_names:
            event = self.events[number]
            found = event.name == wanted
            if wanted in self.defined:
                root = self.defined[wanted]
                columns = {reference: event.column(reference.column) for reference in Predicate(root).references}
                found = judge(root, columns) is True
            self.known_names[wanted, number] = found
        return self.known_names[wanted, number]

    def takes(self, name: str, number: int) -> bool:
        """Whether an operand takes an event, by its name or DEFINE alone."""
        return self.is_named(self.event_name[name], number)

    def ends(self, until: tree.Node, number: int) -> bool:
        """Whether an event is one of those that UNTIL names."""
        events = [node for node in until.walk() if isinstance(node, tree.Event)]
        return any(self.is_named(event.name, number) for event in events)

    def read(self, reference: Reference, number: int) -> Any:
        return self.events[number].column(reference.column)

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

    def together(self, names: Iterable[str], kept: Kept) -> list[Kept]:
        """What a condition over some operands is judged of: each round of the repeated group that holds all of them;
        all that is kept where there is no such group.
        """
        chains = [self.groups[name] for name in names]
        depth = next(
            (at for at, level in enumerate(zip(*chains, strict=False)) if len(set(level)) > 1), min(map(len, chains))
        )
        rounds = sorted({taken.rounds[:depth] for name in names for taken in kept.get(name, ())})
        return [
            {name: tuple(t for t in kept.get(name, ()) if t.rounds[:depth] == one) for name in names} for one in rounds
        ]

    def choices(
        self, conjunct: Predicate, names: Sequence[str], kept: Kept, only: tuple[str, int] | None
    ) -> Iterator[dict[Reference, Any]]:
        """The values of the fields that a conjunct reads of single events, for every choice of these.

        `only`: of an operand with ``[i-1]``, the pair alone that ends with this event of this operand.
        """
        bare = [reference for reference in bare_references(conjunct.root) if reference.operand in names]
        before = {reference.operand for reference in bare if reference.index == "i-1"}
        for one in self.together(names, kept):
            if any(not one[name] for name in names):
                continue
            options: list[list[dict[tuple[str, bool], int]]] = []
            for name in names:
                if name in before:
                    numbers = {taken.number for taken in one[name]}
                    pairs = [(a.number, b.number) for a, b in pairwise(kept[name]) if b.number in numbers]
                    if only is not None and only[0] == name:
                        pairs = [pair for pair in pairs if pair[1] == only[1]]
                    options.append([{(name, True): first, (name, False): second} for first, second in pairs])
                else:
                    options.append([{(name, False): taken.number} for taken in one[name]])
            for chosen in product(*options):
                at = {place: number for part in chosen for place, number in part.items()}
                yield {r: self.read(r, at[r.operand or "", r.index == "i-1"]) for r in bare}

    def holds(self, conjunct: Predicate, kept: Kept, only: tuple[str, int] | None = None) -> bool:
        """A conjunct for all kept events; of an operand without events it does not apply."""
        names = sorted(conjunct.operands)
        if any(not kept.get(name) for name in names):
            return True
        if not names:
            return judge(conjunct.root, {}) is True
        return all(judge(conjunct.root, row) is True for row in self.choices(conjunct, names, kept, only))

    def collected(self, conjunct: Predicate, kept: Kept) -> dict[Any, Any] | None:
        """The values of what a conjunct reads of collected events: aggregates, ``b[last]``, ``b[2]``.

        None where it reads an event that is not there, so that it does not apply.
        """
        found: dict[Any, Any] = {}
        for part in aggregates_in(conjunct.root):
            found[part] = self.aggregated(part, kept)
        for reference in indexed_references(conjunct.root):
            run = kept.get(reference.operand or "", ())
            at = len(run) if reference.index == "last" else int(reference.index or "0")
            if not 0 < at <= len(run):
                return None
            found[reference] = self.read(reference, run[at - 1].number)
        return found

    def aggregated(self, part: Aggregate, kept: Kept) -> Any:
        """The value of an aggregate over the kept events of its operand."""
        (name,) = Predicate(part).operands
        references = Predicate(part).references
        rows = [{r: self.read(r, taken.number) for r in references} for taken in kept.get(name, ())]
        values = [value(part.argument, row) for row in rows]
        if getattr(part, "distinct", False):
            values = distinct(values)
        return aggregate(part.function, values)

    def totalled(self, conjunct: Predicate, kept: Kept) -> bool:
        """A conjunct over collected events, for a whole match."""
        names = sorted({reference.operand or "" for reference in bare_references(conjunct.root)})
        read = self.collected(conjunct, kept)
        if read is None or any(not kept.get(name) for name in names):
            return True
        if not names:
            return judge(conjunct.root, read) is True
        return all(judge(conjunct.root, read | row) is True for row in self.choices(conjunct, names, kept, None))

    def row(self, kept: Kept) -> Row:
        """The positions that a match binds."""
        return {
            name: tuple(self.events[taken.number].position for taken in kept[name])
            for name in self.names
            if kept.get(name)
        }

    def rank(self, kept: Kept) -> Any:
        """The order of rows."""
        place = {name: at for at, name in enumerate(self.names)}
        numbers = sorted((taken.number, place[name]) for name, run in kept.items() for taken in run)
        return [self.events[number].position for number, _ in numbers], [at for _, at in numbers]


def numbers_of(kept: Kept) -> list[int]:
    """The numbers of all events of a match, in order."""
    return sorted(taken.number for run in kept.values() for taken in run)


def distinct(values: Sequence[Any]) -> list[Any]:
    """Each value once."""
    found: list[Any] = []
    for one in values:
        if not any(call("<=>", [one, other]) for other in found):
            found.append(one)
    return found


def aggregates_in(root: Expression) -> list[Aggregate]:
    """The aggregates of a tree, in text order."""
    return [part for part in root.walk() if isinstance(part, Aggregate)]


def indexed_references(root: Expression) -> list[Reference]:
    """``b[last].x``, ``b[2].x``."""
    references = [part.reference for part in root.walk() if isinstance(part, Field)]
    return [reference for reference in references if reference.index not in (None, "i", "i-1")]


def bare_references(root: Expression) -> list[Reference]:
    """What a tree reads of single events: all but aggregates and events by number."""
    if isinstance(root, Aggregate):
        return []
    own = [root.reference] if isinstance(root, Field) and not indexed_references(root) else []
    return [*own, *(reference for part in root.children() for reference in bare_references(part))]


def reads(conjunct: Predicate) -> set[str]:
    """The operands of which a conjunct reads collected events."""
    inside = [r for part in aggregates_in(conjunct.root) for r in Predicate(part).references]
    return {r.operand or "" for r in [*inside, *indexed_references(conjunct.root)]}

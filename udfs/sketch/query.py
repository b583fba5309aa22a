"""A pattern of the language, compiled for the sketch: slots, blocks, terms and gaps.

Source: SPEC section 2 and thesis 4.2 (query types). A **slot** takes one event (or one node): an event or an OR. A
**block** is a slot, or the slots of an AND. A **term** is what moves as a whole: one block, or the blocks of a ``,``
run. Between two terms lies a **gap**, which may name events that must not occur in it (NOT).

Departures from the thesis: NOT stands only between two operands, ``,`` runs exist, and ``A[3]`` is SEQ(A, A, A).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.language.predicate.predicates import (
    Predicate,
    Scope,
    names_admitted,
    read_definitions,
    read_where,
    refuse_joined,
)
from patternlake.udfs.language.query import engines, operands
from patternlake.udfs.language.query.tree import (
    Conjunction,
    Contiguous,
    Disjunction,
    Event,
    Extent,
    Negation,
    Node,
    Query,
    Repetition,
    Sequence,
)
from patternlake.udfs.measures.pattern_measures import PatternMeasures, read_pattern_measures
from patternlake.udfs.sketch.lent import LentPattern

MOST_SLOTS = 200
MOST_NAMES_OF_AND = 8


class Layout(NamedTuple):
    """Where blocks and terms begin, as the kernels read it.

    Attributes
    ----------
    block
        int64[blocks + 1]: block b holds the slots ``block[b]:block[b + 1]``.
    term
        int64[terms + 1]: term t holds the blocks ``term[t]:term[t + 1]``.
    run
        bool[terms]: the rows of the term must be adjacent.
    state
        int64[blocks + 1]: state ``state[b] + mask`` means that the slots of `mask` of block b are filled; the full
        mask is the first state of block b + 1. ``state[blocks]`` accepts.
    """

    block: IntArray
    term: IntArray
    run: NDArray[np.bool_]
    state: IntArray


@dataclass(frozen=True, slots=True)
class Alternative:
    """One event name (or DEFINE primitive) that may fill a slot, or that a gap forbids.

    Attributes
    ----------
    name
        The event name or primitive.
    operand
        The operand's name in predicates (SPEC section 1: alias, else the name, else ``A#2``).
    label
        What `steps` calls it; differs from `operand` only inside ``A[n]``, which reads as SEQ(A, A, …).
    primitive
        True where `name` is defined by DEFINE.
    """

    name: str
    operand: str
    label: str
    primitive: bool


@dataclass(frozen=True, slots=True)
class Slot:
    """One place of a match: the names that may fill it, in text order; several for an OR."""

    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True)
class SketchPattern:
    """A compiled pattern.

    Attributes
    ----------
    names
        Distinct event names to ask the filters for: those of operands and negations, and those that the DEFINE
        primitives admit.
    slots
        The places of a match in text order: one step each.
    blocks
        First slot of each block, and the number of slots at the end.
    terms
        First block of each term, and the number of blocks at the end.
    gaps
        Negated names between consecutive terms, ``len(terms) - 2`` of them.
    admitted
        For each primitive, the event names that it can hold for; None where it may hold for any event.
    define
        For each primitive, its predicate, bound.
    where
        The WHERE predicate, bound, or None.
    partition, within
        As in the query.
    measures
        MEASURES, or None.
    lent
        The pattern as another engine matches it, where the sketch engine does not; then the first slot takes any of
        `names`, and each other one what every match has an event of.
    """

    names: tuple[str, ...]
    slots: tuple[Slot, ...]
    blocks: tuple[int, ...]
    terms: tuple[int, ...]
    gaps: tuple[tuple[Alternative, ...], ...]
    admitted: dict[str, frozenset[str] | None]
    define: dict[str, Predicate]
    where: Predicate | None
    partition: tuple[str, ...]
    within: Extent | None
    measures: PatternMeasures | None = None
    lent: LentPattern | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """Every name that a step may have, in text order; `Matches.operand` indexes it."""
        return tuple(alternative.label for slot in self.slots for alternative in slot.alternatives)

    @property
    def operand_numbers(self) -> tuple[int, ...]:
        """For each of `labels` the number of its operand among the variables of `measures`."""
        assert self.measures is not None
        names = self.measures.clause.variables
        return tuple(names.index(alternative.operand) for slot in self.slots for alternative in slot.alternatives)

    @property
    def measured(self) -> frozenset[str]:
        """The columns of events that measures read of a match."""
        return frozenset() if self.measures is None else self.measures.columns

    @property
    def columns(self) -> frozenset[str]:
        """The columns of events that DEFINE and WHERE refer to."""
        if self.lent is not None:
            return self.lent.columns
        predicates = [*self.define.values(), *([self.where] if self.where is not None else [])]
        named = (reference.column for predicate in predicates for reference in predicate.references)
        along = (attribute for predicate in predicates for attribute in predicate.equal_along)
        return frozenset(named) | frozenset(along)

    @property
    def counted(self) -> bool:
        """True where WITHIN counts events."""
        return self.within is not None and self.within.counted

    def layout(self, policy: str) -> Layout:
        """The arrays of the kernels; under ``strict`` the whole pattern is one run."""
        sizes = np.array([b - a for a, b in pairwise(self.blocks)], np.int64)
        state = np.concatenate([[0], np.cumsum(np.left_shift(1, sizes) - 1)]).astype(np.int64)
        terms = np.array((0, len(sizes)) if policy == "strict" else self.terms, np.int64)
        run = (np.diff(terms) > 1) | (policy == "strict")
        return Layout(np.array(self.blocks, np.int64), terms, run, state)

    def contiguous(self, policy: str) -> bool:
        """True where some event must come directly next to another."""
        return len(self.slots) > 1 and (policy == "strict" or len(self.terms) < len(self.blocks))

    def names_of(self, alternative: Alternative) -> frozenset[str] | None:
        """Event names by which an event can be `alternative`; None for any event."""
        return self.admitted[alternative.name] if alternative.primitive else frozenset([alternative.name])


def compile_pattern(
    query: Query, *, verify: bool, scope: Scope | None = None, names_are_tokens: bool = True
) -> SketchPattern:
    """Compile a query for the sketch engine.

    Parameters
    ----------
    query
        The parsed query; with `verify` one that `engines.is_matched_by_itself`.
    verify
        True where the answer is made exact on events; DEFINE and WHERE are allowed only then.
    scope
        Attributes, parameters and key column that predicates may use; its operands are replaced by the query's.
    names_are_tokens
        False where the event's name is not among the sketch's tokens: then a primitive may hold for any event.

    Raises
    ------
    UnsupportedOperatorError
        Naming the operator and its place: whatever `engines.check` refuses, an AND of more than 8 names, more than
        200 operands.
    PatternSyntaxError, PredicateError
        Two operands have one name; a predicate is not allowed, or names what is not in scope.
    """
    engines.check(query, "sketch", verify=verify)
    assert engines.is_matched_by_itself(query, "sketch"), "another engine matches this"
    return _Compiler(query, scope or Scope(), names_are_tokens).pattern()


class _Compiler:
    """Walks the tree once, in text order."""

    def __init__(self, query: Query, scope: Scope, names_are_tokens: bool) -> None:
        self.query = query
        self.scope = scope
        numbered = operands.number(query)
        self.operands = iter(numbered)
        self.define = read_definitions(query, scope)
        refuse_joined(self.define)
        self.admitted = {
            name: names_admitted(predicate) if names_are_tokens else None for name, predicate in self.define.items()
        }
        self.where = read_where(query, replace(scope, operands=numbered.names))
        self.slots: list[Slot] = []
        self.blocks: list[int] = [0]
        self.terms: list[int] = [0]
        self.gaps: list[tuple[Alternative, ...]] = []
        self.labels: dict[str, int] = {}

    def pattern(self) -> SketchPattern:
        """The compiled query."""
        for item, forbidden in self.with_gaps(self.flattened(self.query.pattern, Sequence)):
            if len(self.terms) > 1:
                self.gaps.append(forbidden)
            self.term(item)
        names: dict[str, None] = {}
        inside = [alternative for slot in self.slots for alternative in slot.alternatives]
        for alternative in [*inside, *(negated for gap in self.gaps for negated in gap)]:
            admitted = self.admitted[alternative.name] if alternative.primitive else frozenset([alternative.name])
            names.update(dict.fromkeys(sorted(admitted or ())))
        return SketchPattern(
            names=tuple(names),
            slots=tuple(self.slots),
            blocks=tuple(self.blocks),
            terms=tuple(self.terms),
            gaps=tuple(self.gaps),
            admitted=self.admitted,
            define=self.define,
            where=self.where,
            partition=self.query.partition,
            within=self.query.within,
            measures=read_pattern_measures(self.query, operands.number(self.query), self.scope),
        )

    def refuse(self, node: Node, message: str) -> NoReturn:
        """Fail at a node."""
        raise self.query.unsupported(message, node.span)

    def flattened(self, node: Node, kind: type[Node]) -> list[Node]:
        """The items of `node`, those of directly nested nodes of the same kind in their place."""
        if not isinstance(node, kind):
            return [node]
        return [part for item in node.children() for part in self.flattened(item, kind)]

    def with_gaps(self, items: list[Node]) -> Iterator[tuple[Node, tuple[Alternative, ...]]]:
        """The positive items, each with the names negated before it; lazy, so that operands come in text order."""
        pending: list[Alternative] = []
        for item in items:
            if isinstance(item, Negation):
                pending += [self.alternative(part) for part in item.items if isinstance(part, Event)]
            else:
                yield item, tuple(pending)
                pending = []

    def term(self, node: Node) -> None:
        """One item of the sequence: an operand, a repetition or a ``,`` run."""
        if isinstance(node, Repetition):
            self.repetition(node)
            return
        for item, _ in self.with_gaps(self.flattened(node, Contiguous)):
            self.block(item)
        self.terms.append(len(self.blocks) - 1)

    def repetition(self, node: Repetition) -> None:
        """``A[n]``: n terms of one slot, all of one operand."""
        if node.minimum > MOST_SLOTS:
            self.refuse(node, f"a pattern has at most {MOST_SLOTS} operands, this repeats {node.minimum} times")
        item = node.item
        assert isinstance(item, Event)
        operand = next(self.operands)
        for place in range(node.minimum):
            if place:
                self.gaps.append(())
            self.slot((self.named(item, operand),), node)
            self.blocks.append(len(self.slots))
            self.terms.append(len(self.blocks) - 1)

    def block(self, node: Node) -> None:
        """An event, an OR or an AND."""
        parts = node.children() if isinstance(node, Conjunction) else (node,)
        if len(parts) > MOST_NAMES_OF_AND:
            self.refuse(node, f"an AND takes at most {MOST_NAMES_OF_AND} names, this one has {len(parts)}")
        for part in parts:
            choices = part.children() if isinstance(part, Disjunction) else (part,)
            self.slot(tuple(self.alternative(choice) for choice in choices if isinstance(choice, Event)), part)
        self.blocks.append(len(self.slots))

    def slot(self, alternatives: tuple[Alternative, ...], node: Node) -> None:
        """One place of the match."""
        if len(self.slots) >= MOST_SLOTS:
            self.refuse(node, f"a pattern has at most {MOST_SLOTS} operands")
        self.slots.append(Slot(alternatives))

    def alternative(self, event: Event) -> Alternative:
        """The next event in text order, with its operand's name."""
        return self.named(event, next(self.operands))

    def named(self, event: Event, operand: operands.Operand) -> Alternative:
        """An event with the name of its operand and a label of its own."""
        label = operand.name
        if operand.node.alias is None and event.alias is None:
            self.labels[event.name] = count = self.labels.get(event.name, 0) + 1
            label = event.name if count == 1 else f"{event.name}#{count}"
        return Alternative(event.name, operand.name, label, event.name in self.define)

"""WHERE of a trend query, cut into what is asked of one event and what of two neighbours.

Source: SPEC sections 1 and 5. ``e[i]`` is an event and ``e[i-1]`` the one directly before it in the trend. A conjunct
over two terms is about their neighbours, so a ``+`` term stands in it with its index: ``b[i]`` is the event,
``a[i-1]`` the last a before it. What says "every a" or skips a term is refused, because trends judge neighbours only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NoReturn

from patternlake.udfs.language.predicate.coercion import OPEN
from patternlake.udfs.language.predicate.expressions import Call, Cast, EqualAlong, Expression, Field, Literal
from patternlake.udfs.language.predicate.inference import typed, typed_predicate
from patternlake.udfs.language.predicate.predicates import Predicate, Reference, Scope, column_type, refuse_neighbours
from patternlake.udfs.language.predicate.references import quote
from patternlake.udfs.language.predicate.time_gaps import FLIPPED, bounds, gap

Sides = tuple[str, Expression, Expression, str]
"""(operator, left, right, value type)."""


@dataclass(frozen=True, slots=True)
class TermName:
    """How predicates call a term, and whether it is a ``+``."""

    operand: str
    plus: bool


@dataclass(slots=True)
class Place:
    """The conjuncts of one step.

    Attributes
    ----------
    gaps
        Least and greatest time between the two events, in microseconds, inclusive.
    """

    comparisons: list[Sides] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    remainders: list[Predicate] = field(default_factory=list)


class Splitter:
    """Sorts the conjuncts of a bound WHERE."""

    def __init__(self, terms: tuple[TermName, ...], scope: Scope) -> None:
        self.terms = terms
        self.scope = scope
        self.number = {term.operand: number for number, term in enumerate(terms)}
        self.filters: list[list[Predicate]] = [[] for _ in terms]
        self.along: tuple[str, ...] = ()
        self.places: dict[tuple[int, int], Place] = {}

    def split(self, where: Predicate) -> None:
        """Put each conjunct in its place."""
        for conjunct in where.conjuncts:
            root = conjunct.root
            if isinstance(root, EqualAlong):
                self.along = tuple(dict.fromkeys((*self.along, root.attribute)))
                continue
            if conjunct.variables:
                raise conjunct.error("join variables ($x) belong to subscriptions; compare e[i] with e[i-1]")
            between = self.neighbours(conjunct)
            if between is None:
                terms = {self.number[name] for name in conjunct.operands} or range(len(self.terms))
                for term in terms:
                    self.filters[term].append(conjunct)
            else:
                self.place(conjunct, between)

    def neighbours(self, conjunct: Predicate) -> tuple[int, int] | None:
        """The step that a conjunct is about; None where it is about one event."""
        terms = sorted({self.number[name] for name in conjunct.operands})
        if len(terms) > 2:
            self.refuse(conjunct, "it names more than two operands")
        if len(terms) < 2:
            indexes = {reference.index for reference in conjunct.references}
            if None in indexes and len(indexes) > 1 and self.terms[terms[0]].plus:
                name = quote(self.terms[terms[0]].operand)
                self.refuse(conjunct, f"{name}.x beside {name}[i] would be every event of {name}; write {name}[i-1].x")
            before = "i-1" in indexes
            if not before:
                return None
            if not self.terms[terms[0]].plus:
                refuse_neighbours(conjunct, self.terms[terms[0]].operand)
            return terms[0], terms[0]
        source, target = terms
        if target != source + 1:
            self.refuse(conjunct, "its operands do not follow one another")
        for reference in conjunct.references:
            self.check_index(conjunct, reference, source, target)
        return source, target

    def check_index(self, conjunct: Predicate, reference: Reference, source: int, target: int) -> None:
        """Refuse a reference to other events than the two neighbours."""
        number = self.number[reference.operand or ""]
        later = number == target
        if self.terms[number].plus and reference.index != ("i" if later else "i-1"):
            first, second = (quote(self.terms[term].operand) for term in (source, target))
            left = f"{second}[i]" if self.terms[target].plus else second
            self.refuse(conjunct, f"{first} and {second} are neighbours as {left}.x and {first}[i-1].x")
        if later and reference.index == "i-1":
            name = quote(reference.operand or "")
            self.refuse(conjunct, f"{name}[i-1] would be another event of {name}; write {name}")

    def refuse(self, conjunct: Predicate, why: str) -> NoReturn:
        """Fail at a conjunct that is not about neighbours."""
        engine = "the trends engine (cet_trends, cet_count, cet_aggregate)"
        raise conjunct.error(f"{engine} compares neighbours only: {why}")

    def is_earlier(self, reference: Reference, step: tuple[int, int]) -> bool:
        """Whether a reference is to the earlier of the two events of a step."""
        if step[0] == step[1]:
            return reference.index == "i-1"
        return self.number[reference.operand or ""] == step[0]

    def place(self, conjunct: Predicate, step: tuple[int, int]) -> None:
        """Make a comparison, a gap or a remainder of a conjunct over two neighbours."""
        place = self.places.setdefault(step, Place())
        root = conjunct.root
        if all(self.is_earlier(reference, step) for reference in conjunct.references):
            true = Literal(type="boolean", value=True)
            place.comparisons.append(("=", true, Cast(argument=root, to="boolean"), "boolean"))
            return
        if isinstance(root, Call) and root.operator in FLIPPED:
            if any(isinstance(side, Literal) and side.type == "null" for side in root.arguments):
                # NULL, as a parameter without a value is, compares with nothing, so no gap will do.
                place.gaps.append((1, 0))
                return
            if (gap := self.gap(root, step)) is not None:
                operator, microseconds = gap
                if operator != "<>":
                    place.gaps.append(bounds(operator, microseconds))
                    return
                root = self.unequal_gap(conjunct, step, microseconds)
            if (sides := self.sides(root, step)) is not None:
                place.comparisons.append(sides)
                return
        place.remainders.append(conjunct)

    def sides(self, root: Call, step: tuple[int, int]) -> Sides | None:
        """Both sides of a comparison that has one event on each; the later event comes left."""
        kinds = [self.events_of(argument, step) for argument in root.arguments]
        if set(kinds) != {"earlier", "later"}:
            return None
        parts = typed_predicate(root, self.type_of).arguments
        made = [
            self.cast(argument, part.operator, part.type, part.detail)
            for argument, part in zip(root.arguments, parts, strict=True)
        ]
        flip = kinds[0] == "earlier"
        left, right = (made[1], made[0]) if flip else (made[0], made[1])
        return FLIPPED[root.operator] if flip else root.operator, left, right, parts[0].type

    def cast(self, argument: Expression, operator: str, to: str, value: object) -> Expression:
        """One side, in the type that the comparison gives it."""
        if operator == "literal":
            assert value is None or isinstance(value, int | float | str | bool)
            return Literal(type=to, value=value, span=argument.span)
        own = typed(argument, self.type_of).type
        return argument if own in (to, OPEN) else Cast(argument=argument, to=to, span=argument.span)

    def type_of(self, reference: Reference) -> str:
        """The value type of a column."""
        return column_type(reference.column, self.scope) or ""

    def events_of(self, expression: Expression, step: tuple[int, int]) -> str:
        """Which of the two events an expression reads: ``earlier``, ``later``, ``both`` or ``constant``."""
        read = {self.is_earlier(reference, step) for reference in _references(expression)}
        return {0: "constant", 1: "earlier" if True in read else "later", 2: "both"}[len(read)]

    def gap(self, root: Call, step: tuple[int, int]) -> tuple[str, int] | None:
        """``t(later) - t(earlier) operator microseconds``, where a comparison says that in any form."""
        found = gap(root, lambda reference: self.is_earlier(reference, step))
        if found is None:
            return None
        flipped = found.later is True
        return (FLIPPED[found.operator], -found.microseconds) if flipped else (found.operator, found.microseconds)

    def unequal_gap(self, conjunct: Predicate, step: tuple[int, int], microseconds: int) -> Call:
        """``t(later) <> t(earlier) + microseconds``."""
        times = {self.is_earlier(part, step): Field(reference=part) for part in conjunct.references}
        amount = Literal(type="interval", value=microseconds)
        return Call(operator="<>", arguments=(times[False], Call(operator="+", arguments=(times[True], amount))))


def _references(expression: Expression) -> Iterable[Reference]:
    return (part.reference for part in expression.walk() if isinstance(part, Field))

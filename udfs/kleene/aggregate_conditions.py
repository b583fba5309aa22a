"""Conjuncts over collected events, such as ``COUNT(b.x) > 3``, ``SUM(b.x) < 2 * a.x`` and ``b[last].x > 1``.

They are taken as ``!X`` is in SPEC section 3: known when all is collected, so they say which matches count and never
what a match collects. Under ``skip_till_next`` and ``strict`` one that also reads an event that comes behind what is
collected **steers**: it is judged when that event is to be taken, over what was collected before it. An operand without
events, of an empty ``*`` or an untaken alternative, has a COUNT of 0, and all its other aggregates are NULL;
``b[last].x`` and ``b[2].x`` are there or the conjunct does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from patternlake.udfs.errors import PredicateError
from patternlake.udfs.language.predicate.aggregates import operand_of, with_columns
from patternlake.udfs.language.predicate.expressions import Aggregate, Call, Expression, Field, Literal, to_sql
from patternlake.udfs.language.predicate.predicates import Predicate
from patternlake.udfs.language.predicate.references import Reference
from patternlake.udfs.language.predicate.scopes import map_nodes
from patternlake.udfs.language.predicate.time_gaps import FLIPPED
from patternlake.udfs.language.query.names import quote
from patternlake.udfs.language.query.operands import Operands


@dataclass(frozen=True, slots=True)
class AggregateCondition:
    """A conjunct with aggregates, judged of whole matches.

    Attributes
    ----------
    predicate
        The conjunct, each aggregate a bare column of it.
    aggregates
        The aggregate behind each such column.
    operands
        For each other reference the number of its operand, which takes one event. Where a match has none of it, the
        conjunct does not apply.
    text
        The conjunct in canonical form.
    """

    predicate: Predicate
    aggregates: Mapping[Reference, Aggregate]
    operands: Mapping[Reference, int]
    text: str

    @property
    def least(self) -> tuple[Aggregate, int] | None:
        """A COUNT and a number that it must reach; None where the conjunct says no such thing."""
        root = self.predicate.root
        if not isinstance(root, Call) or root.operator not in FLIPPED:
            return None
        operator, sides = root.operator, root.arguments
        if isinstance(sides[0], Literal):
            operator, sides = FLIPPED[operator], (sides[1], sides[0])
        match sides:
            case (Field(reference=reference), Literal(type="bigint", value=int(count))):
                pass
            case _:
                return None
        aggregate = self.aggregates.get(reference)
        if aggregate is None or aggregate.distinct or aggregate.function != "COUNT" or operator not in (">", ">=", "="):
            return None
        return aggregate, count + (operator == ">")


@dataclass(frozen=True, slots=True)
class SteeringCondition:
    """A conjunct with aggregates, judged of events when they are to be taken.

    Attributes
    ----------
    predicate
        The conjunct, each aggregate a bare column of it.
    aggregates
        The aggregate behind each such column, and the operand whose events it is of.
    operands
        For each other reference the number of its operand.
    before
        The operand that stands in it with ``[i-1]``, or None.
    steers
        The operands of whose events it is judged, each with those of which it lets an event pass while nothing of them
        is collected and the conjunct is unknown: itself, and what its rounds are of.
    """

    predicate: Predicate
    aggregates: Mapping[Reference, tuple[Aggregate, int]]
    operands: Mapping[Reference, int]
    before: int | None
    steers: Mapping[int, frozenset[int]]


def steering_condition(
    conjunct: Predicate, named: Operands, most: Callable[[int], int | None], groups: Sequence[frozenset[int]]
) -> SteeringCondition | None:
    """Take a conjunct apart that reads an event behind, or of, what it aggregates; None where it reads none.

    Parameters
    ----------
    conjunct, named, most
        As of `aggregate_condition`.
    groups
        For each operand the repeated groups that it is in.

    Raises
    ------
    PredicateError
        An aggregate of an operand that takes one event or is negated; beside an aggregate, one that is negated.
    """
    number_of = {operand.name: operand.number - 1 for operand in named}
    predicate, aggregates = with_columns(conjunct)
    of = {reference: (one, number_of[operand_of(one)]) for reference, one in aggregates.items()}
    read = frozenset(number for _, number in of.values())
    fields = [part for part in predicate.root.walk() if isinstance(part, Field) and part.reference not in aggregates]
    operands = {part.reference: number_of[part.reference.operand or ""] for part in fields}
    steers: dict[int, frozenset[int]] = {}
    for number in sorted(set(operands.values())):
        beside = frozenset(one for one in read if one == number or groups[one] & groups[number])
        if all(one < number or one in beside for one in read):
            steers[number] = beside
    if not steers:
        return None
    _check_aggregates(conjunct, aggregates.values(), named, most)
    _check_fields(conjunct, fields, named)
    before = {number for reference, number in operands.items() if reference.index == "i-1"}
    return SteeringCondition(predicate, of, operands, min(before, default=None), steers)


def aggregate_condition(conjunct: Predicate, named: Operands, most: Callable[[int], int | None]) -> AggregateCondition:
    """Take a conjunct apart.

    Parameters
    ----------
    conjunct
        Bound, with aggregates.
    named
        The operands of the query.
    most
        How many events an operand takes at most, by its number from 0; None for any number.

    Raises
    ------
    PredicateError
        An aggregate of an operand that takes one event or is negated; beside an aggregate, an operand that takes
        several events or is negated.
    """
    number_of = {operand.name: operand.number - 1 for operand in named}
    predicate, aggregates = with_columns(conjunct)

    _check_aggregates(conjunct, aggregates.values(), named, most)
    fields = [part for part in predicate.root.walk() if isinstance(part, Field) and part.reference not in aggregates]
    _check_fields(conjunct, fields, named)
    operands: dict[Reference, int] = {}
    for part in fields:
        number = number_of[part.reference.operand or ""]
        if most(number) != 1:
            plain = _plain(part)
            raise _error(
                conjunct,
                part,
                f"{quote(named[number].name)} takes many events; beside an aggregate, or an event by its number, write "
                f"one of it too, as in LAST({plain}); policies skip_till_next and strict judge each event against what "
                "was collected before",
            )
        operands[part.reference] = number
    return AggregateCondition(predicate, aggregates, operands, conjunct.sql())


def _check_aggregates(
    conjunct: Predicate, aggregates: Iterable[Aggregate], named: Operands, most: Callable[[int], int | None]
) -> None:
    for aggregate in aggregates:
        operand = named.named(operand_of(aggregate))
        assert operand is not None
        name = quote(operand.name)
        if operand.negated:
            raise _error(conjunct, aggregate, f"no event of {name} is in the match, it is negated")
        if most(operand.number - 1) == 1:
            written = _plain(aggregate.argument)
            message = f"{name} takes one event; write {written}, or {name}+ in the pattern for many"
            raise _error(conjunct, aggregate, message)


def _check_fields(conjunct: Predicate, fields: Iterable[Field], named: Operands) -> None:
    for part in fields:
        operand = named.named(part.reference.operand or "")
        if operand is not None and operand.negated:
            message = f"{quote(operand.name)} is negated, and a negated event is not compared with aggregates"
            raise _error(conjunct, part, message)


def _plain(part: Expression) -> str:
    """The text of a part without indexes."""
    return to_sql(map_nodes(part, lambda field: replace(field, reference=replace(field.reference, index=None))))


def _error(conjunct: Predicate, part: Expression, message: str) -> PredicateError:
    return PredicateError(f"{to_sql(part)}: {message}", conjunct.text, part.span.start, part.span.end)

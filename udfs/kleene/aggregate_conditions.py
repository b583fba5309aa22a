"""Conjuncts with aggregates of repeated operands, such as ``COUNT(b.x) > 3`` and ``SUM(b.x) < 2 * a.x``.

SPEC section 3 is silent on them. They are taken as ``!X`` is there: known when all is collected, so they say which
matches count and never what a match collects. An operand without events, of an empty ``*`` or an untaken alternative,
has a COUNT of 0, and all its other aggregates are NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from patternlake.udfs.errors import PredicateError
from patternlake.udfs.language.predicate.aggregates import operand_of, with_columns
from patternlake.udfs.language.predicate.expressions import Aggregate, Call, Expression, Field, Literal, to_sql
from patternlake.udfs.language.predicate.predicates import Predicate
from patternlake.udfs.language.predicate.references import Reference
from patternlake.udfs.language.predicate.time_gaps import FLIPPED
from patternlake.udfs.language.query.names import quoted
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
        if aggregate is None or aggregate.function != "COUNT" or operator not in (">", ">=", "="):
            return None
        return aggregate, count + (operator == ">")


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

    def error(part: Expression, message: str) -> PredicateError:
        return PredicateError(f"{to_sql(part)}: {message}", conjunct.text, part.span.start, part.span.end)

    for aggregate in aggregates.values():
        number = number_of[operand_of(aggregate)]
        name = quoted(named[number].name)
        if named[number].negated:
            raise error(aggregate, f"no event of {name} is in the match, it is negated")
        if most(number) == 1:
            written = to_sql(aggregate.argument)
            raise error(aggregate, f"{name} takes one event; write {written}, or {name}+ in the pattern for many")
    operands: dict[Reference, int] = {}
    for part in predicate.root.walk():
        if not isinstance(part, Field) or part.reference in aggregates:
            continue
        number = number_of[part.reference.operand or ""]
        name = quoted(named[number].name)
        if named[number].negated:
            raise error(part, f"{name} is negated, and a negated event is not compared with aggregates")
        if most(number) != 1:
            plain = to_sql(replace(part, reference=replace(part.reference, index=None)))
            raise error(part, f"{name} takes many events; beside an aggregate write one of it too, as in LAST({plain})")
        operands[part.reference] = number
    return AggregateCondition(predicate, aggregates, operands, conjunct.sql())

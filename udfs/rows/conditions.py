"""Conditions that look at the match so far, as trees.

What a condition says of the physical row alone (``price < PREV(price)``) is no part of these: Spark computes it, a
boolean for each row. Here is the rest: rows by logical offset, running aggregates, MATCH_NUMBER and CLASSIFIER, and
what connects them. Values are integers or doubles. Strings and times come as integers of the same order.
"""

from __future__ import annotations

from dataclasses import dataclass

from patternlake.udfs.measures.seen import Seen

NOW = Seen()
"""The row asked about."""


@dataclass(frozen=True)
class Value:
    """A column's value in a row; NULL where there is no such row."""

    column: str
    seen: Seen = NOW


@dataclass(frozen=True)
class Classifier:
    """The variable of a row of the match; NULL where there is no such row, or it is not of the match."""

    seen: Seen


@dataclass(frozen=True)
class Label:
    """A variable, to compare a classifier with."""

    variable: str


@dataclass(frozen=True)
class Constant:
    """A number or NULL."""

    value: float | None


@dataclass(frozen=True)
class MatchNumber:
    """The number that the match will have."""


@dataclass(frozen=True)
class Aggregate:
    """An aggregate over the rows taken that are of some variables.

    Attributes
    ----------
    name
        ``count``, ``sum``, ``avg``, ``min``, ``max``; ``squares``, the sum of squared distances from the average;
        ``least row`` or ``greatest row``, where the column's least or greatest value is, of equal ones the last.
    column
        None: ``count`` of rows.
    variables
        None: of all rows taken.
    distinct
        A column of integers from 0 on, by which each value counts once; None: each row counts.
    """

    name: str
    column: str | None = None
    variables: tuple[str, ...] = ()
    distinct: str | None = None


@dataclass(frozen=True)
class Fetch:
    """A column's value in the row that an aggregate leads to; NULL where it leads to none."""

    column: str
    row: Aggregate


@dataclass(frozen=True)
class Contains:
    """Whether a value is that of a column in one of the rows taken that are of some variables.

    Attributes
    ----------
    value
        An integer from 0 on.
    column
        Of such integers.
    variables
        None: of all rows taken.
    """

    value: Expression
    column: str
    variables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Call:
    """An operator: ``+ - * / %``, ``neg``, ``abs``, ``sqrt``, comparisons, ``and or not``, and NULL's.

    The last are ``is null``, ``coalesce`` and ``if``.
    """

    operator: str
    arguments: tuple[Expression, ...]


Expression = Value | Classifier | Label | Constant | MatchNumber | Aggregate | Fetch | Contains | Call

WHOLE = {"count": "int", "least row": "int", "greatest row": "int", "avg": "float", "squares": "float"}
"""The types of aggregates that have one whatever the column's."""


def parts_of(part: Expression) -> tuple[Expression, ...]:
    """The parts that one is made of."""
    match part:
        case Call(_, arguments):
            return arguments
        case Fetch(_, row):
            return (row,)
        case Contains(value, _, _):
            return (value,)
    return ()


def columns_of(part: Expression) -> tuple[str, ...]:
    """The columns that a part looks at itself, without those of the parts that it is made of."""
    match part:
        case Value(column, _) | Fetch(column, _) | Contains(_, column, _):
            return (column,)
        case Aggregate(_, column, _, distinct):
            return tuple(name for name in (column, distinct) if name is not None)
    return ()

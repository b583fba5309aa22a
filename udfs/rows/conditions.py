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
    """``count``, ``sum``, ``avg``, ``min`` or ``max`` over the rows taken that are of some variables.

    Attributes
    ----------
    name
        In lower case.
    column
        None: ``count`` of rows.
    variables
        None: of all rows taken.
    """

    name: str
    column: str | None = None
    variables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Call:
    """An operator: ``+ - * / %``, ``neg``, ``abs``, comparisons, ``and or not``, ``is null``, ``coalesce``, ``if``."""

    operator: str
    arguments: tuple[Expression, ...]


Expression = Value | Classifier | Label | Constant | MatchNumber | Aggregate | Call

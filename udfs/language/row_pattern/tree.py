"""The tree of a MATCH_RECOGNIZE clause (SQL:2016, feature R010).

Nodes are immutable and carry the span of text that they were read from; spans do not take part in equality.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from patternlake.udfs.language.query.tree import NOWHERE, Span
from patternlake.udfs.language.row_pattern.subqueries import Subquery

PAST_LAST, TO_NEXT, TO_FIRST, TO_LAST = "PAST LAST ROW", "TO NEXT ROW", "TO FIRST", "TO LAST"
"""Where AFTER MATCH SKIP goes on; ``TO v`` is read as ``TO LAST v``."""

SHOW_EMPTY, OMIT_EMPTY, WITH_UNMATCHED = "SHOW EMPTY MATCHES", "OMIT EMPTY MATCHES", "WITH UNMATCHED ROWS"
"""What ALL ROWS PER MATCH adds to the rows of matches; unmatched rows come with empty matches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What every node of a pattern has."""

    span: Span = field(default=NOWHERE, compare=False)

    def children(self) -> tuple[Node, ...]:
        """The direct sub-patterns, in text order."""
        return ()

    def walk(self) -> Iterator[Node]:
        """The node and all below it, in text order."""
        yield self
        for child in self.children():
            yield from child.walk()


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable(Node):
    """One row that satisfies the variable's condition; `name` as it is first written in PATTERN."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStart(Node):
    """``^``: before the first row of the partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionEnd(Node):
    """``$``: behind the last row of the partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Items(Node):
    items: tuple[Node, ...]

    def children(self) -> tuple[Node, ...]:
        """The items."""
        return self.items


@dataclass(frozen=True, slots=True, kw_only=True)
class Concatenation(_Items):
    """One behind the other; of no items, it is the empty pattern ``()``. Never of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternation(_Items):
    """One of two items or more; the left is preferred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permutation(_Items):
    """``PERMUTE(…)``: all items in any order; those orders are preferred that put earlier arguments first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item(Node):
    item: Node

    def children(self) -> tuple[Node, ...]:
        """The item."""
        return (self.item,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantified(_Item):
    """`least` to `most` iterations (None: any number), as many as possible unless `reluctant`."""

    least: int
    most: int | None
    reluctant: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion(_Item):
    """``{- … -}``: its rows are of the match, and ALL ROWS PER MATCH leaves them out."""


@dataclass(frozen=True, slots=True)
class SqlText:
    """An expression as text, without the blanks around it."""

    text: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Measure:
    """``expression AS name``."""

    name: str
    expression: SqlText


@dataclass(frozen=True, slots=True)
class Subset:
    """``name = (variable, …)``, a variable that stands for the rows of several."""

    name: str
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Definition:
    """``variable AS condition``."""

    variable: str
    condition: SqlText


@dataclass(frozen=True, slots=True)
class Skip:
    """AFTER MATCH SKIP: one of the four modes, and of the last two the variable or subset."""

    mode: str = PAST_LAST
    variable: str | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """What stands between the parentheses of MATCH_RECOGNIZE.

    Attributes
    ----------
    text
        The clause.
    partition_by, order_by
        Expressions of PARTITION BY and ORDER BY, the latter with ASC, DESC and NULLS; empty where there are none.
    measures
        In text order.
    all_rows
        False: ONE ROW PER MATCH.
    rows
        Of ALL ROWS PER MATCH: one of SHOW_EMPTY, OMIT_EMPTY, WITH_UNMATCHED.
    skip
        AFTER MATCH SKIP.
    pattern
        PATTERN.
    variables
        The names of its variables in the order of their first places. All names in the clause's tree are as written
        there, or as a subset was defined, whatever their case elsewhere.
    subsets, definitions
        In text order; a variable without a definition is true for every row.
    subqueries
        Of measures and definitions, in text order.
    qualifiers
        Names of the input's tables in upper case, which may stand before a column where no variable is called so.
    """

    text: str = field(compare=False)
    partition_by: tuple[SqlText, ...] = ()
    order_by: tuple[SqlText, ...] = ()
    measures: tuple[Measure, ...] = ()
    all_rows: bool = False
    rows: str = SHOW_EMPTY
    skip: Skip = Skip()
    pattern: Node
    variables: tuple[str, ...]
    subsets: tuple[Subset, ...] = ()
    definitions: tuple[Definition, ...] = ()
    subqueries: tuple[Subquery, ...] = ()
    qualifiers: frozenset[str] = frozenset()

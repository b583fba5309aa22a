"""The columns of PARTITION BY, as events call them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from patternlake.udfs.errors import PredicateError
from patternlake.udfs.language.predicate.scopes import BUILT_IN, Scope, suggest
from patternlake.udfs.language.query.names import quote
from patternlake.udfs.language.query.tree import Query


def key_word(key: str | None, attributes: Collection[str]) -> str:
    """What PARTITION BY calls a stream's key: its expression where that is a word and no other column, else ``key``."""
    if key is None or quote(key) != key or key in attributes or key in BUILT_IN:
        return "key"
    return key


def partition_columns(query: Query, scope: Scope) -> tuple[str, ...]:
    """The columns that a query partitions by; the stream's key is called ``key``.

    Raises
    ------
    PredicateError
        A column is neither an attribute nor built in, with its place.
    """
    return tuple(_column(query, column, scope) for column in query.partition)


def join_columns(columns: Iterable[str]) -> str:
    """Columns of PARTITION BY as one text: those with a comma in quotes, so that no other columns have the same."""
    return ",".join(quote(column) if "," in column else column for column in columns)


def _column(query: Query, column: str, scope: Scope) -> str:
    if column in scope.attributes or column in BUILT_IN:
        return column
    if column == scope.key:
        return "key"
    clause = max((found.end() for found in re.finditer(r"\bPARTITION\s+BY\b", query.text, re.IGNORECASE)), default=0)
    start = max(query.text.find(column, clause), 0)
    known = [*scope.attributes, *([scope.key] if scope.key else []), *BUILT_IN]
    raise PredicateError(
        f"PARTITION BY {quote(column)}: not an attribute of the stream" + suggest(column, "in scope", known),
        query.text,
        start,
        start + len(column),
    )

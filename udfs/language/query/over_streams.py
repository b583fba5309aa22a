"""Patterns over a stream that says what partitions them, as a table in the place of one does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.language.query.tree import Query

DEFINED = "defined"
"""Of a stream's configuration: DEFINE primitives whose conditions are known of each event, and the attributes that say
so."""


def parse_over(text: str, stream: Mapping[str, Any]) -> Query:
    """Read a pattern over a stream.

    Parameters
    ----------
    text
        The pattern.
    stream
        Its configuration; ``partition`` are the columns of PARTITION BY where the pattern says none, and
        ``partition_is_given`` tells that it may not. `DEFINED`: conditions that need not be read.

    Raises
    ------
    PatternSyntaxError
        As `parse`.
    ArgumentError
        PARTITION BY stands in the pattern and beside the table.

    Examples
    --------
    >>> parse_over("a ; b", {"partition": ["key"]}).partition
    ('key',)
    """
    query = parse(text)
    if defined := stream.get(DEFINED):
        # Each is an attribute of its own, which says where the condition holds.
        define = (replace(one, predicate=defined.get(one.name, one.predicate)) for one in query.define)
        query = replace(query, define=tuple(define))
    if query.partition and stream.get("partition_is_given"):
        raise ArgumentError("PARTITION BY stands beside the table and in the pattern; say it once, beside the table")
    return query if query.partition else replace(query, partition=tuple(stream.get("partition", ())))

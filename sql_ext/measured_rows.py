"""Measures as columns of an answer: Spark computes them from what tasks found of each match, which is hidden then."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from patternlake.delta_tables.quoting import identifier
from patternlake.sql_ext.answering.declaration import Answer, schema_of
from patternlake.sql_ext.row_patterns.folding import fold_aggregates
from patternlake.sql_ext.row_patterns.spark_types import selected
from patternlake.udfs.errors import PredicateError
from patternlake.udfs.language.query.names import quoted
from patternlake.udfs.language.query.tree import NOWHERE
from patternlake.udfs.measures.of_matches import column_types
from patternlake.udfs.measures.pattern_measures import PatternMeasures

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def check_names(measures: PatternMeasures | None, columns: Collection[str]) -> None:
    """Refuse measures that are called as a column of the answer.

    Raises
    ------
    PredicateError
        With the name's place.
    """
    if measures is None:
        return
    taken = {name.lower() for name in columns}
    for name, place in zip(measures.names, measures.name_spans, strict=True):
        if name.lower() in taken:
            message = f"the answer has a column {quoted(name)} already; call the measure otherwise"
            raise PredicateError(message, measures.text, place.start, place.end)


def found_schema(columns: Mapping[str, str], measures: PatternMeasures | None) -> str:
    """The columns of rows that tasks give, as DDL: those of the answer, then what measures need."""
    needed = needed_schema(measures)
    return f"{schema_of(columns)}, {needed}" if needed else schema_of(columns)


def needed_schema(measures: PatternMeasures | None) -> str:
    """What measures need, as DDL."""
    types = {} if measures is None else column_types(measures)
    return ", ".join(f"{name} {_explicit(kind)}" for name, kind in types.items())


def names_found(columns: Collection[str], measures: PatternMeasures | None) -> list[str]:
    """The names of `found_schema`."""
    return [*columns, *(() if measures is None else column_types(measures))]


def with_measures(
    rows: DataFrame | pa.Table, columns: Mapping[str, str], measures: PatternMeasures | None, *, lasting: bool
) -> Answer:
    """An answer: columns, then the measures, which Spark makes of rows of `found_schema`."""
    finish = None if measures is None else partial(_measured, measures, list(columns))
    return Answer(rows, lasting, found_schema(columns, measures), finish)


def _measured(measures: PatternMeasures, columns: Sequence[str], found: DataFrame) -> DataFrame:
    if measures.folded:
        found = fold_aggregates(found, list(measures.folded.values()), list(measures.folded))
    shown = [(identifier(name), name, NOWHERE) for name in columns]
    made = list(zip(measures.sql, measures.names, measures.spans, strict=True))
    answer = selected(found, [*shown, *made], measures.text)
    _refuse_chance(answer, measures, len(shown))
    return answer


def _explicit(kind: str) -> str:
    """A type whose moments have a zone in every session."""
    return re.sub(r"\btimestamp\b", "timestamp_ltz", kind)


def _refuse_chance(answer: DataFrame, measures: PatternMeasures, first: int) -> None:
    """Refuse a measure that gives another value each time: the answer would be another one with each use."""
    plan: Any = answer._jdf.queryExecution().analyzed()
    for number, span in enumerate(measures.spans):
        if not plan.expressions().apply(first + number).deterministic():
            text = measures.text[span.start : span.end]
            message = f"{text} gives another value each time it is computed; a measure is a function of its match"
            raise PredicateError(message, measures.text, span.start, span.end)

"""Measures as columns: Spark computes them from what tasks found of each match."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from patternlake.delta_tables.schema.quoting import identifier
from patternlake.delta_tables.spark.folded_aggregates import fold_aggregates
from patternlake.delta_tables.spark.spark_types import project_each
from patternlake.udfs.errors import PredicateError
from patternlake.udfs.language.query.names import quote
from patternlake.udfs.language.query.tree import NOWHERE
from patternlake.udfs.measures.of_matches import column_types
from patternlake.udfs.measures.pattern_measures import PatternMeasures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def check_measures(spark: SparkSession, measures: PatternMeasures | None, columns: Collection[str]) -> None:
    """Refuse measures that an answer could not have, without an answer.

    Parameters
    ----------
    spark
        Whose functions measures may call.
    measures
        The measures; None: there are none.
    columns
        The names of the columns that would stand before them.

    Raises
    ------
    PredicateError
        As `check_names` and `select_measures`.
    """
    if measures is None:
        return
    check_names(measures, columns)
    types = column_types(measures).items()
    empty = (f"CAST(NULL AS {_explicit(kind)}) AS {identifier(name)}" for name, kind in types)
    # A column beside those of measures: aggregates are folded over rows that have one.
    select_measures(measures, [], spark.range(0).selectExpr("id", *empty))


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
            message = f"the answer has a column {quote(name)} already; call the measure otherwise"
            raise PredicateError(message, measures.text, place.start, place.end)


def needed_schema(measures: PatternMeasures | None) -> str:
    """What measures need, as DDL."""
    types = {} if measures is None else column_types(measures)
    return ", ".join(f"{name} {_explicit(kind)}" for name, kind in types.items())


def select_measures(measures: PatternMeasures, columns: Sequence[str], found: DataFrame) -> DataFrame:
    """Columns of an answer, then its measures.

    Parameters
    ----------
    measures
        The measures.
    columns
        The columns that stand before them.
    found
        Rows with these columns and those of `needed_schema`.

    Raises
    ------
    PredicateError
        Spark does not take a measure, or it gives another value each time; with its place.
    """
    if measures.folded:
        found = fold_aggregates(found, list(measures.folded.values()), list(measures.folded))
    shown = [(identifier(name), name, NOWHERE) for name in columns]
    made = list(zip(measures.sql, measures.names, measures.spans, strict=True))
    answer = project_each(found, [*shown, *made], measures.text)
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

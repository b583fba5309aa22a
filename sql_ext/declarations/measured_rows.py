"""Measures as columns of an answer: Spark computes them from what tasks found of each match, which is hidden then."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from patternlake.delta_tables.spark.measure_columns import needed_schema, select_measures
from patternlake.sql_ext.declarations.declaration import Answer, schema_of
from patternlake.udfs.measures.of_matches import column_types
from patternlake.udfs.measures.pattern_measures import PatternMeasures

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def found_schema(columns: Mapping[str, str], measures: PatternMeasures | None) -> str:
    """The columns of rows that tasks give, as DDL: those of the answer, then what measures need."""
    needed = needed_schema(measures)
    return f"{schema_of(columns)}, {needed}" if needed else schema_of(columns)


def names_found(columns: Collection[str], measures: PatternMeasures | None) -> list[str]:
    """The names of `found_schema`."""
    return [*columns, *(() if measures is None else column_types(measures))]


def with_measures(
    rows: DataFrame | pa.Table, columns: Mapping[str, str], measures: PatternMeasures | None, *, lasting: bool
) -> Answer:
    """An answer: columns, then the measures, which Spark makes of rows of `found_schema`."""
    finish = None if measures is None else partial(select_measures, measures, list(columns))
    return Answer(rows, lasting, found_schema(columns, measures), finish)

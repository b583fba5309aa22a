"""What Spark's tasks answer: rows, or the reason for none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from patternlake.delta_tables.writing.arrow_rows import arrow_schema
from patternlake.udfs.errors import PatternLakeError
from patternlake.udfs.limits import too_many
from patternlake.udfs.record_batches import BATCH_ROWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Rows = TypeVar("Rows")
PORTION, ERROR = "portion", "__error"


def answer_portions(
    frame: DataFrame,
    portions: Callable[[Iterable[pa.RecordBatch]], Iterable[tuple[int, Rows]]],
    task: Callable[[int, Rows], Iterable[pa.Table]],
    schema: str | StructType,
) -> DataFrame:
    """Let a task answer each portion of rows that are dealt out already.

    Parameters
    ----------
    frame
        The rows.
    portions
        Finds the portions of a task in what Spark gives it: numbers, and rows as `task` takes them.
    task
        From a portion's number and its rows to rows of the answer, some at a time; is pickled, with its closure.
    schema
        Columns of the answer, perhaps as DDL; the tasks' tables have them in this order.

    Returns
    -------
    DataFrame
        The rows of all tasks. Where a task raises a `PatternLakeError`, the query fails with its text, whatever of
        the answer it asks for.
    """
    return check_errors(answers_or_errors(frame, portions, task, schema))


def answers_or_errors(
    frame: DataFrame,
    portions: Callable[[Iterable[pa.RecordBatch]], Iterable[tuple[int, Rows]]],
    task: Callable[[int, Rows], Iterable[pa.Table]],
    schema: str | StructType,
) -> DataFrame:
    """As `answer_portions`, with the column `ERROR`: where a task raised one, its text in a row of its own."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for number, rows in portions(batches):
                for answer in task(number, rows):
                    yield from _batches(answer, names, types)
        except PatternLakeError as error:
            yield _refuse(str(error), names, types)

    columns = cast(StructType, StructType.fromDDL(schema)) if isinstance(schema, str) else schema
    arrow = arrow_schema(columns)
    names, types = arrow.names, arrow.types
    return frame.mapInArrow(run, StructType([*columns.fields, StructField(ERROR, StringType())]))


def check_errors(frame: DataFrame) -> DataFrame:
    """Rows without their column of errors; an error ends the query, and no filter of the analyst comes before it."""
    # Spark moves no filter below one that is not deterministic, and never leaves one out.
    raised = f"WHEN {ERROR} IS NOT NULL THEN CAST(raise_error({ERROR}) AS BOOLEAN)"
    return frame.where(f"CASE {raised} WHEN rand() < 0 THEN false ELSE true END").drop(ERROR)


def limit_matches(matches: DataFrame, max_matches: int, *, truncate: bool) -> DataFrame:
    """The first of numbered matches; that they are `truncated` is an error, unless it is meant."""
    found = matches.where(F.col("match_no") <= max_matches)
    if truncate:
        return found
    message = str(too_many(max_matches + 1, max_matches, complete=False))
    return check_errors(found.withColumn(ERROR, F.when(F.col("truncated"), F.lit(message))))


def _batches(answer: pa.Table, names: Sequence[str], types: Sequence[pa.DataType]) -> list[pa.RecordBatch]:
    columns = [answer[name].cast(type_) for name, type_ in zip(names, types, strict=True)]
    table = pa.Table.from_arrays([*columns, pa.nulls(answer.num_rows, pa.string())], names=[*names, ERROR])
    return list(table.to_batches(max_chunksize=BATCH_ROWS))


def _refuse(message: str, names: Sequence[str], types: Sequence[pa.DataType]) -> pa.RecordBatch:
    nothing = [pa.nulls(1, type_) for type_ in types]
    return pa.RecordBatch.from_arrays([*nothing, pa.array([message])], names=[*names, ERROR])

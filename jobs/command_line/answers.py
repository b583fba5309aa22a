"""Rows as text: aligned columns for people, CSV and JSON lines for programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from patternlake.delta_tables.schema import timestamps
from patternlake.delta_tables.schema.quoting import identifier
from patternlake.jobs.terminal.text_columns import align

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TABLE_ROWS = 1000
"""A table is laid out as a whole, so it shows this many rows at most."""

_NESTED = ("array", "map", "struct", "variant")
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


def as_table(answer: DataFrame) -> tuple[list[str], bool]:
    """Lay an answer out; the lines, and whether it has more than `TABLE_ROWS` rows, which are left out.

    Of a single column whose values have line breaks, as EXPLAIN and DESCRIBE FUNCTION give it, the lines are those.
    """
    if not answer.columns:
        return [], False
    rows = [["NULL" if value is None else value for value in row] for row in _texts(answer).take(TABLE_ROWS + 1)]
    if len(answer.columns) == 1 and any("\n" in value for (value,) in rows):
        # A plan, the text of a view, the help of a function: written for people, line by line.
        return [line for (value,) in rows[:TABLE_ROWS] for line in value.splitlines()], len(rows) > TABLE_ROWS
    right = [index for index, (_, kind) in enumerate(answer.dtypes) if kind.startswith(_NUMBERS)]
    return list(align(answer.columns, rows[:TABLE_ROWS], right)), len(rows) > TABLE_ROWS


def as_csv(answer: DataFrame) -> Iterator[str]:
    """Write an answer as CSV with titles, row by row; NULL is empty, nested values are JSON."""
    if not answer.columns:
        return
    yield _csv_line(answer.columns)
    for row in _texts(answer).toLocalIterator():
        yield _csv_line(["" if value is None else value for value in row])


def as_json(answer: DataFrame) -> Iterator[str]:
    """Write an answer as JSON lines, row by row; NULL is null, moments have their offset."""
    if not answer.columns:
        return
    columns = [_column(f"c{index}", kind).alias(name) for index, (name, kind) in enumerate(answer.dtypes)]
    lines = _by_number(answer).select(F.to_json(F.struct(*columns), timestamps.JSON))
    for row in lines.toLocalIterator():
        yield row[0]


def _texts(answer: DataFrame) -> DataFrame:
    """The answer with every value as Spark writes it, in the session's time zone."""
    columns = []
    for index, (_, kind) in enumerate(answer.dtypes):
        value = _column(f"c{index}", kind)
        nested = kind.startswith(_NESTED)
        columns.append((F.to_json(value, timestamps.JSON) if nested else value.cast("string")).alias(f"c{index}"))
    return _by_number(answer).select(*columns)


def _by_number(answer: DataFrame) -> DataFrame:
    """The answer with columns c0, c1, …, as an answer may have two columns of one name."""
    return answer.toDF(*[f"c{index}" for index in range(len(answer.columns))])


def _column(name: str, kind: str) -> Column:
    """Refer to a column; binary values become text."""
    return F.base64(F.col(identifier(name))) if kind == "binary" else F.col(identifier(name))


def _csv_line(values: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()

"""The place of a row in a source of files, which decides between events of one time.

Files come one after the other by their names, and the rows of one as they stand in it, however Spark cuts the files
into tasks: so a replay, or another machine, finds the same order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from patternlake.delta_tables.writing.arrow_rows import frame_of_tuples
from patternlake.jobs.sources.expressions import BLOCK, FILE, ORIGIN, PLACE
from patternlake.udfs.own_names import OWN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LOCAL = re.compile(r"file:/+")
_COMPARED = 64
"""Files, at most, whose numbers are found by comparing addresses; those of more are looked up."""
_INDEX_BITS = 33
"""Bits of `monotonically_increasing_id` that count the rows of a task; the others number the task."""


def as_read(file: str) -> str:
    """A file's address as Spark's readers spell it: its checkpoint has three slashes, they have one."""
    return _LOCAL.sub("file:/", file, count=1)


def block_columns(kind: str, about: Column) -> list[Column]:
    """What Spark's reader of a format knows of a row's place, as columns of the rows that it has just read.

    Parameters
    ----------
    kind
        The format.
    about
        What Spark tells of each row's file.
    """
    if kind == "parquet":
        return [about["row_index"].alias(PLACE)]
    # A task reads blocks of several files, each from its first row to its last one.
    return [about["file_block_start"].alias(BLOCK)]


def row_numbers(rows: DataFrame) -> DataFrame:
    """Rows of text, not yet moved from the tasks that read them, with the number of each in its task.

    That grows from row to row of a block. Spark's streams refuse to count, the batches that they give do not.
    """
    return rows.withColumn(PLACE, F.monotonically_increasing_id().bitwiseAND(F.lit((1 << _INDEX_BITS) - 1)))


def number_by_file(rows: DataFrame, files: Sequence[str]) -> DataFrame:
    """Rows with the number of their file among those of the batch, where these are several."""
    addresses = sorted({as_read(file) for file in files})
    if len(addresses) < 2:
        return rows
    if len(addresses) <= _COMPARED:
        return rows.withColumn(FILE, F.expr(_number(addresses, 0, len(addresses) - 1)))
    path = f"{OWN}path"
    known = [(address, number) for number, address in enumerate(addresses)]
    numbers = frame_of_tuples(rows.sparkSession, known, f"{path} string, {FILE} int")
    return rows.join(F.broadcast(numbers), F.col(ORIGIN) == F.col(path), "left").drop(path)


def _number(addresses: Sequence[str], low: int, high: int) -> str:
    """SQL: the number of a row's file, from the low one to the high one, as a balanced tree of comparisons."""
    if low == high:
        return str(low)
    middle = (low + high) // 2
    # In hexadecimal, so that nothing in it can be read as SQL.
    later = f"{ORIGIN} >= CAST(X'{addresses[middle + 1].encode().hex()}' AS STRING)"
    return f"CASE WHEN {later} THEN {_number(addresses, middle + 1, high)} ELSE {_number(addresses, low, middle)} END"

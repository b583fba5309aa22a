"""Rows of a table as a data frame: few of them are read here, as Spark would plan and run some jobs to find them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from patternlake.delta_tables.reading.spark_reader import choose_rows
from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.writing.arrow_rows import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.delta_tables.committing.database import Database


def frame_where(database: Database, table: str, where: Sequence[Condition], *, most_bytes: int) -> DataFrame:
    """Return the rows of a table that satisfy all conditions, with all columns.

    Parameters
    ----------
    database
        Where.
    table
        Plain name.
    where
        The conditions.
    most_bytes
        Files of up to so many bytes are read in the driver's process, where the location allows it; else Spark reads
        them.
    """
    direct = database.direct
    if direct is None or direct.size(table, where) > most_bytes:
        return choose_rows(database.table(table), where)
    return frame_of(database.spark, direct.rows(table, direct.schema(table).names, where))

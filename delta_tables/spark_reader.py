"""Reads state through Spark: for locations that only Spark can open."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, TimestampType

from patternlake.delta_tables.state_reader import Condition
from patternlake.delta_tables.table import LogName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkReader:
    """Reads the tables of a database by Spark jobs.

    Parameters
    ----------
    spark
        The session that reads: not one whose analyser waits for what is read.
    log
        Maps a table's plain name to the quoted name of its Delta table.
    """

    def __init__(self, spark: SparkSession, log: LogName) -> None:
        self._spark, self._log = spark, log

    def version(self, table: str) -> int:
        """Return the number of a table's current version."""
        history = DeltaTable.forName(self._spark, self._log(table)).history(1)
        return int(history.select("version").collect()[0][0])

    def size(self, table: str, where: Sequence[Condition] = (), columns: Sequence[str] = ()) -> int:
        """Return an upper bound: the bytes of all files of the table's current version."""
        detail = self._spark.sql(f"DESCRIBE DETAIL {self._log(table)}")
        return int(detail.select("sizeInBytes").collect()[0][0])

    def rows(self, table: str, columns: Sequence[str], where: Sequence[Condition] = ()) -> pa.Table:
        """Return columns of the rows that satisfy all conditions."""
        return chosen(self._spark.table(self._log(table)), where).select(*columns).toArrow()


def chosen(rows: DataFrame, where: Sequence[Condition]) -> DataFrame:
    """The rows of a table that satisfy all conditions."""
    holding = [_column(condition, rows.schema[condition.column].dataType) for condition in where]
    return rows.where(reduce(Column.__and__, holding)) if holding else rows


def _column(condition: Condition, type_: DataType) -> Column:
    column = F.col(condition.column)
    if condition.operator == "in":
        return column.isin(*condition.value) if condition.value else F.lit(False)
    value = F.timestamp_micros(F.lit(condition.value)) if isinstance(type_, TimestampType) else F.lit(condition.value)
    if condition.operator == "=":
        return column == value
    if condition.operator == ">=":
        return column >= value
    if condition.operator == "<=":
        return column <= value
    return column.isNull() | (column > value)

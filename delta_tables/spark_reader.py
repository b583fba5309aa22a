"""Reads state through Spark: for locations that only Spark can open."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import Column
from pyspark.sql import functions as F

from patternlake.delta_tables.catalogue import TABLES
from patternlake.delta_tables.state_reader import Condition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.delta_tables.database import Database


class SparkReader:
    """Reads the tables of a database by Spark jobs.

    Parameters
    ----------
    database
        Open in the session that reads: not one whose analyser waits for what is read.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def version(self, table: str) -> int:
        """Return the number of a table's current version."""
        history = DeltaTable.forName(self._database.spark, self._database.log(table)).history(1)
        return int(history.select("version").collect()[0][0])

    def size(self, table: str, where: Sequence[Condition] = (), columns: Sequence[str] = ()) -> int:
        """Return an upper bound: the bytes of all files of the table's current version."""
        detail = self._database.spark.sql(f"DESCRIBE DETAIL {self._database.log(table)}")
        return int(detail.select("sizeInBytes").collect()[0][0])

    def rows(self, table: str, columns: Sequence[str], where: Sequence[Condition] = ()) -> pa.Table:
        """Return columns of the rows that satisfy all conditions."""
        return chosen(self._database, table, where).select(*columns).toArrow()


def chosen(database: Database, table: str, where: Sequence[Condition]) -> DataFrame:
    """The rows of a table that satisfy all conditions."""
    rows = database.table(table)
    types = {column.name: column.type for column in TABLES[table].columns}
    holding = [_column(condition, types[condition.column]) for condition in where]
    return rows.where(reduce(Column.__and__, holding)) if holding else rows


def _column(condition: Condition, type_: str) -> Column:
    column = F.col(condition.column)
    if condition.operator == "in":
        return column.isin(*condition.value) if condition.value else F.lit(False)
    value = F.timestamp_micros(F.lit(condition.value)) if type_ == "TIMESTAMP" else F.lit(condition.value)
    if condition.operator == "=":
        return column == value
    if condition.operator == ">=":
        return column >= value
    if condition.operator == "<=":
        return column <= value
    return column.isNull() | (column > value)

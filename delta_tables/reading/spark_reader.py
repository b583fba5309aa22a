"""Reads state through Spark: for locations that only Spark can open."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from patternlake.delta_tables.reading.state_reader import Condition, Fold, ListedFiles, Made
from patternlake.delta_tables.schema.table import LogName

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

    on_disk = False
    """Spark reads what this process does not, wherever it lies; a version is a job of its own."""

    def version(self, table: str) -> int:
        """Return the number of a table's current version."""
        history = DeltaTable.forName(self._spark, self._log(table)).history(1)
        return int(history.select("version").collect()[0][0])

    def identity(self, table: str) -> Hashable:
        """Return the number of a table's current version, and when it was committed."""
        history = DeltaTable.forName(self._spark, self._log(table)).history(1)
        return tuple(history.select("version", "timestamp").collect()[0])

    def size(
        self, table: str, where: Sequence[Condition] = (), columns: Sequence[str] = (), few: int | None = None
    ) -> int:
        """Return an upper bound: the bytes of all files of the table's current version."""
        detail = self._spark.sql(f"DESCRIBE DETAIL {self._log(table)}")
        return int(detail.select("sizeInBytes").collect()[0][0])

    def rows(
        self, table: str, columns: Sequence[str], where: Sequence[Condition] = (), fold: Fold | None = None
    ) -> pa.Table:
        """Return columns of the rows that satisfy all conditions, as they are."""
        return choose_rows(self._spark.table(self._log(table)), where).select(*columns).toArrow()

    def list_files(self, table: str, where: Sequence[Condition] = ()) -> ListedFiles | None:
        """Return None: only Spark knows, and reads, the files."""
        return None

    def once(self, table: str, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what is made of a table's rows: each time anew, as to ask for the version is a job of its own."""
        return make()


def choose_rows(rows: DataFrame, where: Sequence[Condition]) -> DataFrame:
    """The rows of a table that satisfy all conditions."""
    moments = {field.name for field in rows.schema if isinstance(field.dataType, TimestampType)}
    return rows.where(all_of(where, moments)) if where else rows


def all_of(where: Sequence[Condition], moments: Collection[str], rows: str = "") -> Column:
    """The condition that all conditions hold.

    Parameters
    ----------
    where
        The conditions.
    moments
        Names of the columns that hold moments.
    rows
        Alias of the table, if it has one.
    """
    prefix = f"{rows}." if rows else ""
    holding = [_column(F.col(prefix + each.column), each, each.column in moments) for each in where]
    return reduce(Column.__and__, holding, F.lit(True))


def _column(column: Column, condition: Condition, moment: bool) -> Column:
    if condition.operator == "in":
        return column.isin(*condition.value) if condition.value else F.lit(False)
    if condition.operator == "in ranges":
        bounds = [[_literal(bound, moment) for bound in pair] for pair in condition.value]
        return _any_of([column.between(low, high) for low, high in bounds])
    value = _literal(condition.value, moment)
    if condition.operator == "=":
        return column == value
    if condition.operator == ">=":
        return column >= value
    if condition.operator == "<=":
        return column <= value
    return column.isNull() | (column > value)


def _any_of(conditions: Sequence[Column]) -> Column:
    """The condition that one of several holds: a tree of little depth, as Spark follows it by recursion."""
    if len(conditions) < 2:
        return conditions[0] if conditions else F.lit(False)
    middle = len(conditions) // 2
    return _any_of(conditions[:middle]) | _any_of(conditions[middle:])


def _literal(value: Any, moment: bool) -> Column:
    return F.timestamp_micros(F.lit(value)) if moment else F.lit(value)

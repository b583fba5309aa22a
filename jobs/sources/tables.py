"""Which tables of a session's catalog can be the source of a stream, and when their columns changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as F

from patternlake.delta_tables.schema.quoting import identifier
from patternlake.jobs.sources.errors import first_line
from patternlake.udfs.errors import SourceError
from patternlake.udfs.nearest_names import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from patternlake.jobs.configuration.streams import Source

_WHY = "a stream follows the commits of a Delta table"
_SOURCES = (
    "a source is a Delta table (by its name, or by its path with format: delta), or files (csv, json, parquet, xes)"
)

_OTHER_COLUMNS = ("RENAME COLUMN", "DROP COLUMNS", "CHANGE COLUMN", "REPLACE COLUMNS")
"""Operations in the history of a Delta table after which its rows do not continue those before."""

_SHOWN = 10
"""Databases that a message lists."""


def refuse_other_than_delta(spark: SparkSession, table: str, what: str) -> None:
    """Refuse what is no Delta table, with how to make a source of it.

    Parameters
    ----------
    spark
        The session.
    table
        The name.
    what
        Begins the message, before the table's name.

    Raises
    ------
    SourceError
        There is no such table, or it is a view or a table of another format.
    """
    try:
        found = spark.catalog.getTable(table)
    except AnalysisException as error:
        if not (error.getCondition() or "").startswith(("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")):
            raise SourceError(f"{what} {table}: {first_line(error)}") from None
        raise SourceError(
            f"{what} {table}: there is no such table in this session's catalog{_close(spark, table)}; {_SOURCES}"
        ) from None
    if found.tableType in ("VIEW", "TEMPORARY"):
        view = "a temporary view" if found.tableType == "TEMPORARY" else "a view"
        raise SourceError(
            f"{what} {table} is {view}, and {_WHY}; name the table behind it, and put what the view computes into the "
            f"stream's expressions, or keep its rows: CREATE TABLE … USING delta AS SELECT * FROM {table}; {_SOURCES}"
        )
    parts = [*([] if found.catalog is None else [found.catalog]), *(found.namespace or []), found.name]
    format = _provider(spark, identifier(*parts))
    if format is not None and format != "delta":
        advice = f"CREATE TABLE … USING delta AS SELECT * FROM {table}"
        if format == "parquet":
            advice = f"CONVERT TO DELTA {table}, or {advice}"
        raise SourceError(f"{what} {table} is a table of {format}, and {_WHY}; {advice}; {_SOURCES}")


def columns_changed_at(spark: SparkSession, source: Source) -> int | None:
    """The version in which columns of a Delta source were last renamed or dropped; None where its log tells of none."""
    table = source.table or f"delta.{identifier(source.path or '')}"
    try:
        history = spark.sql(f"DESCRIBE HISTORY {table}").where(F.col("operation").isin(*_OTHER_COLUMNS))
        found = history.agg(F.max("version")).collect()[0][0]
    except PySparkException:
        return None
    return None if found is None else int(found)


def _provider(spark: SparkSession, table: str) -> str | None:
    """The format of a table's files; None where the catalog does not tell it."""
    told = {row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()}
    provider = told.get("Provider")
    return None if not provider else str(provider).lower()


def _close(spark: SparkSession, table: str) -> str:
    """The table that may have been meant, or the databases where the one that is named is none of them."""
    *database, name = table.replace("`", "").split(".")
    try:
        there = [str(row["tableName"]) for row in spark.sql(f"SHOW TABLES{_within(database)}").collect()]
    except PySparkException:
        return _databases(spark, database) if database else ""
    return did_you_mean(name, there)


def _databases(spark: SparkSession, database: list[str]) -> str:
    """Which databases there are; nothing where the one that is named is among them, or the catalog does not tell."""
    *catalog, missing = database
    try:
        there = sorted(str(row[0]) for row in spark.sql(f"SHOW DATABASES{_within(catalog)}").collect())
    except PySparkException:
        return ""
    if missing.lower() in (each.lower() for each in there):
        return ""
    shown = ", ".join(there[:_SHOWN]) + (", …" if len(there) > _SHOWN else "")
    return f", nor a database {missing!r}{did_you_mean(missing, there)}; there are {shown}"


def _within(parts: list[str]) -> str:
    return f" IN {identifier(*parts)}" if parts else ""

"""One row of a state table as a data frame, built from literals: no Python worker, no pasted text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from patternlake.delta_tables import moments
from patternlake.delta_tables.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def one_row(spark: SparkSession, table: Table, values: Mapping[str, Any]) -> DataFrame:
    """Build a data frame of one row, typed as the table is.

    Parameters
    ----------
    spark, table
        The session, and the table that gives the types.
    values
        One value per column of the table: None, texts, numbers, moments, and mappings of texts.
    """
    columns = [_value(values[column.name]).cast(column.type).alias(column.name) for column in table.columns]
    return spark.range(0, 1, 1, 1).select(*columns)


def _value(value: Any) -> Column:
    if isinstance(value, datetime):
        return moments.timestamp_literal(value)
    if isinstance(value, Mapping):
        return F.create_map(*[F.lit(part) for item in value.items() for part in item])
    return F.lit(value)

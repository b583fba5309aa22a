"""Few rows, as a data frame and as Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from patternlake.delta_tables.schema.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from patternlake.delta_tables.committing.database import Database


_to_arrow_schema: Any = to_arrow_schema
# Spark 4.2 wants to be told the zone of moments; in 4.1 it is UTC, under no name.
_ZONED = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}


@dataclass(frozen=True)
class FewRows:
    """Rows that the driver holds, for a table; written without Spark where it may be.

    Attributes
    ----------
    rows
        All columns of the table, in its types.
    database
        Whose session writes them where Spark has to.
    layout
        How they lie in files, where these are written without Spark.
    """

    rows: pa.Table
    database: Database
    layout: Layout = Layout.PLAIN

    def frame(self) -> DataFrame:
        """The rows for Spark."""
        return frame_of(self.database.spark, self.rows)


def frame_of(spark: SparkSession, rows: pa.Table, schema: str | None = None) -> DataFrame:
    """Hand rows to Spark, as columns of these types (DDL), or of their own."""
    if rows.num_rows:
        # What comes behind an empty piece is lost where rows become part of the plan (PySpark 4.2).
        rows = pa.Table.from_batches([piece for piece in rows.to_batches() if piece.num_rows], rows.schema)
    else:
        # Spark takes no column without a piece.
        rows = pa.Table.from_arrays([pa.array([], type_) for type_ in rows.schema.types], rows.schema.names)
    return spark.createDataFrame(rows, schema)


def frame_of_tuples(spark: SparkSession, rows: Sequence[Sequence[Any]], schema: str) -> DataFrame:
    """Hand a few rows to Spark as columns of these types (DDL).

    Spark's own way from a list is a job of Python workers, with an environment of their own: the first one costs the
    start of another daemon, which loads all kernels, to hand over a few numbers.
    """
    types = arrow_schema(cast("T.StructType", T.StructType.fromDDL(schema)))
    return frame_of(spark, of_tuples(rows, types), schema)


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """The schema as Arrow, with moments in UTC."""
    found: pa.Schema = _to_arrow_schema(schema, **_ZONED)
    return found


def of_tuples(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """Rows given as tuples, as Arrow."""
    columns = zip(*rows, strict=True) if rows else [() for _ in schema]
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)

"""Rows of a table that are written as files without Spark's writer, which takes rows one by one, and then committed.

By threads of the driver, or by the Python tasks that make the rows: what tasks hand to Spark goes row by row through
its memory before it is in columns again. In an object store, or on a disk that tasks and driver share.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.transaction import AddAction
from pyspark.sql.pandas.types import from_arrow_schema

from patternlake.delta_tables.committing.unlisted_files import Place, by_partition, write_portions
from patternlake.delta_tables.schema.layout import Layout
from patternlake.delta_tables.writing.arrow_rows import arrow_schema
from patternlake.udfs.record_batches import tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Made = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What a task makes of what it is given."""

_FILE_ROWS, _FILE_BYTES = sys.maxsize, 64 << 20
"""Rows that a task holds before it writes files of them: however many, and so many bytes."""


@dataclass(frozen=True)
class RowPortions:
    """Rows that the driver makes portion by portion.

    Attributes
    ----------
    portions
        Each makes some of the rows, in threads of the driver, NULL in columns of the table that are not there; rows of
        one partition of the table are neighbours.
    spark
        The session that commits the files where Spark has to.
    layout
        How rows lie in the files.
    """

    portions: Sequence[Callable[[], pa.Table]]
    spark: SparkSession
    layout: Layout

    def files(self, place: Place) -> list[AddAction]:
        """Write the files, and give what the log has to say of them."""
        return write_portions(place, self.portions)


@dataclass(frozen=True)
class TaskRows:
    """Rows that tasks of Spark make.

    Attributes
    ----------
    given
        What the tasks are given.
    made
        What they make of it.
    schema
        Of what is made: columns of the table; those that are not there are marks or NULL.
    """

    given: DataFrame
    made: Made
    schema: pa.Schema

    @classmethod
    def of(cls, rows: DataFrame) -> TaskRows:
        """Rows that Spark makes."""
        return cls(rows, _give_on, arrow_schema(rows.schema))

    def frame(self) -> DataFrame:
        """The rows for Spark."""
        if self.made is _give_on:
            return self.given
        return self.given.mapInArrow(self.made, from_arrow_schema(self.schema))

    def where(self, column: str, value: str) -> TaskRows:
        """Only the rows that have a value in a column."""
        made = self.made

        def chosen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in made(batches):
                yield batch.filter(pc.equal(batch[column], value))

        return TaskRows(self.given, chosen, self.schema)


@dataclass(frozen=True)
class WrittenByTasks:
    """Rows that the tasks which make them write.

    Attributes
    ----------
    rows
        The rows.
    marks
        By name of a column that the tasks don't make: its value; NULL where there is none.
    layout
        As `RowPortions` has it.
    """

    rows: TaskRows
    marks: Mapping[str, Any]
    layout: Layout

    @property
    def spark(self) -> SparkSession:
        """The session that commits the files where Spark has to."""
        return self.rows.given.sparkSession

    def files(self, place: Place) -> list[AddAction]:
        """Write the files, and give what the log has to say of them."""
        place = replace(place, held=False)
        made, marks = self.rows.made, dict(self.marks)

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for rows in tables(made(batches), rows=_FILE_ROWS, size=_FILE_BYTES):
                actions = place.write(by_partition(add_marks(rows, place.schema, marks), place.partitions))
                yield pa.RecordBatch.from_pydict({"action": [json.dumps(asdict(action)) for action in actions]})

        # Files of tasks that were tried twice are there too; only those that Spark took are named.
        told = self.rows.given.mapInArrow(write, "action string").collect()
        return [AddAction(**json.loads(row["action"])) for row in told]


def _give_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


def add_marks(rows: pa.Table, schema: pa.Schema, marks: Mapping[str, Any]) -> pa.Table:
    """Rows with all columns of a table: the marks added, and NULL for others that are not there."""
    columns = {}
    for column in schema:
        if column.name in rows.column_names:
            columns[column.name] = rows[column.name].cast(column.type)
        else:
            value = pa.scalar(marks.get(column.name), column.type)
            columns[column.name] = pa.chunked_array([pa.repeat(value, rows.num_rows)])
    return pa.table(columns)

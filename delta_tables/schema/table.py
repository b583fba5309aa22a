"""What a state table is: its columns, partitions, Delta properties, and the view that analysts see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from patternlake.delta_tables.schema.layout import Layout
from patternlake.delta_tables.schema.names import log_name
from patternlake.delta_tables.schema.quoting import identifier, literal

CHECKPOINT_INTERVAL = 50
"""Commits from one checkpoint of a table to the next. Commits here are small and many: a checkpoint costs as much as
three of them, and reading back 50 commits costs less than one."""

DIRECT_CHECKPOINT_INTERVAL = 16
"""The same of a table to which all commits are made without Spark, or most: to read back a commit costs delta-rs as
much behind a large table as behind a small one, and a checkpoint as much as two commits; see `open_tables`."""

LogName = Callable[[str], str]
"""Maps a table's plain name to the quoted name of its Delta table."""


_ARROW = {
    "STRING": pa.string(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "ARRAY<STRING>": pa.list_(pa.string()),
    "MAP<STRING,STRING>": pa.map_(pa.string(), pa.string()),
}
"""Arrow's types of the columns that the driver makes, by DDL."""


@dataclass(frozen=True)
class Column:
    """One column: its name, its Spark type as DDL, and what it means."""

    name: str
    type: str
    comment: str

    @property
    def arrow(self) -> pa.DataType:
        """Arrow's type for it."""
        return _ARROW[self.type.replace(" ", "")]


@dataclass(frozen=True)
class Table:
    """One state table.

    Parameters
    ----------
    name
        The plain name, that of the view; the Delta table is called ``<name>_log``.
    comment
        What a row is.
    columns
        In order: keys and ranges first, blobs last.
    keys
        The columns that tell the rows of one batch apart.
    view
        Text of the view's query, given a function from plain names to quoted Delta tables.
    seen
        The view's columns, in order. A name alone: the table's own column, or that of publications; with ``=``, a
        column of a table under another name; with ``:``, one that is computed, and its type, with ``!`` if it is never
        NULL.
    job
        The job whose publications make its rows visible; empty for publications and intents.
    object_column
        Column with the number of the object, where a stream has several objects of the job; else empty.
    partitions
        Partition columns.
    properties
        Delta table properties beyond the common ones.
    layout
        How rows lie in its files; those that Spark writes are packed at most.
    momentary
        Whether the rows of a batch tell how things stood at it, and nobody needs them for a later moment.
    counted_from
        Key in what a publication says it has read: from which batch on rows count, where a batch has written all of
        them anew instead of closing those that it replaces. Empty: from the base on.
    direct
        Whether rows are only ever appended, one at a time, and so without Spark where that is safe; see
        `direct_writer`. Nothing else may commit to the table there.
    """

    name: str
    comment: str
    columns: tuple[Column, ...]
    keys: tuple[str, ...]
    view: Callable[[LogName], str] | None
    seen: str = ""
    job: str = ""
    object_column: str = ""
    partitions: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    layout: Layout = Layout.PLAIN
    momentary: bool = False
    counted_from: str = ""
    direct: bool = False

    @property
    def log(self) -> str:
        """Name of the Delta table."""
        return log_name(self.name)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def unmarked(self) -> pa.Schema:
        """The columns in order, as Arrow, without those that say whose rows they are."""
        marks = (self.object_column, "stream_id", "from_batch", "to_batch", "batch_id")
        return pa.schema([(column.name, column.arrow) for column in self.columns if column.name not in marks])

    @property
    def columns_text(self) -> str:
        """The columns as SQL defines them."""
        return ",\n  ".join(f"{identifier(c.name)} {c.type} COMMENT {literal(c.comment)}" for c in self.columns)

    @property
    def writing(self) -> dict[str, str]:
        """Settings of Spark under which its files are written."""
        return {} if self.layout is Layout.PLAIN else {"parquet.writer.version": "v2"}

    @property
    def moments(self) -> frozenset[str]:
        """Names of the columns that hold a moment."""
        return frozenset(column.name for column in self.columns if column.type == "TIMESTAMP")

    @property
    def changing(self) -> bool:
        """Whether rows are closed (from_batch, to_batch) instead of written once (batch_id)."""
        return "to_batch" in self.column_names

    def create_text(self, name: str, location: str, properties: dict[str, str]) -> str:
        """Build the statement that creates the table.

        Parameters
        ----------
        name
            Quoted name.
        location
            Folder.
        properties
            Properties beyond the table's own.
        """
        parts = [f"CREATE TABLE IF NOT EXISTS {name} (\n  {self.columns_text}\n) USING DELTA"]
        if self.partitions:
            parts.append(f"PARTITIONED BY ({', '.join(identifier(p) for p in self.partitions)})")
        parts.append(f"LOCATION {literal(location)}")
        parts.append(f"COMMENT {literal(self.comment)}")
        settings = self.settings(properties).items()
        parts.append(f"TBLPROPERTIES ({', '.join(f'{literal(k)} = {literal(v)}' for k, v in settings)})")
        return "\n".join(parts)

    def settings(self, properties: Mapping[str, str]) -> dict[str, str]:
        """All properties that the table is created with, given those beyond its own."""
        interval = DIRECT_CHECKPOINT_INTERVAL if self.direct else CHECKPOINT_INTERVAL
        return {"delta.checkpointInterval": str(interval), **self.properties, **properties}

"""Files of rows of a Delta table that its log does not name yet, written in the process that has the rows."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.transaction import AddAction

from patternlake.delta_tables.committing.file_statistics import statistics_of
from patternlake.delta_tables.reading import written_rows
from patternlake.delta_tables.reading.open_tables import open_table
from patternlake.delta_tables.reading.parquet_columns import write_file
from patternlake.delta_tables.schema.layout import Layout, by_key, file_name, is_by_key
from patternlake.udfs.record_batches import in_schema

_THREADS = 8
"""Portions of rows that are made and written at once, at most: each is held in memory."""
_COUNTED_COLUMNS = "delta.dataSkippingStatsColumns"


@dataclass(frozen=True)
class Place:
    """Where files of a table are written, and how; can be sent to tasks.

    Attributes
    ----------
    folder
        Of the Delta table; in an object store, its URL.
    schema
        All columns.
    partitions
        Names of the partition columns.
    counted
        Names of the columns whose bounds the log tells; None: the first ones.
    layout
        How rows lie in them.
    held
        Whether the rows stay at hand for those who read them in the process that writes them, see `written_rows`.
    storage_options
        Of the object store, as delta-rs takes them; None: it is a folder on the local disk.
    """

    folder: str
    schema: pa.Schema
    partitions: tuple[str, ...]
    counted: tuple[str, ...] | None
    layout: Layout
    held: bool
    storage_options: tuple[tuple[str, str], ...] | None = None

    @classmethod
    def of(cls, table: DeltaTable, *, layout: Layout, folder: str, held: bool = True) -> Place:
        """Of an open table."""
        metadata, schema = table.metadata(), pa.schema(table.schema().to_arrow())
        told = metadata.configuration.get(_COUNTED_COLUMNS)
        counted = None if told is None else tuple(told.split(","))
        return cls(folder, schema, tuple(metadata.partition_columns), counted, layout, held)

    @classmethod
    def at(cls, folder: str, *, layout: Layout, held: bool = True) -> Place:
        """Of the table in a folder."""
        with open_table(folder) as table:
            return cls.of(table, layout=layout, folder=folder, held=held)

    def write(self, rows: pa.Table) -> list[AddAction]:
        """Write rows, those of one partition neighbours: a file for each partition."""
        found = []
        for begin, end in _runs(rows, self.partitions):
            values = {name: rows[name][begin].as_py() for name in self.partitions}
            found.append(self.file(rows.slice(begin, end - begin), parent_folder(values), values))
        return found

    def file(self, rows: pa.Table, parent: str, partition: Mapping[str, Any], *, changing: bool = True) -> AddAction:
        """Write a file of rows of one partition, and give what the log has to say of it."""
        buckets = None
        if is_by_key(rows, self.layout):
            rows, buckets = by_key(rows)
        stored = rows.select([name for name in rows.column_names if name not in partition])
        name = file_name(uuid.uuid4().hex, by_key=buckets is not None)
        path = f"{parent}/{name}" if parent else name
        size = self._write(stored, path, buckets)
        if self.held:
            written_rows.hold(f"{self.folder}/{path}", rows)
        now = int(time.time() * 1000)
        return AddAction(path, size, partition_texts(partition), now, changing, statistics_of(stored, self.counted))

    def _write(self, rows: pa.Table, path: str, buckets: Mapping[int, int] | None) -> int:
        """Write a file, and give its size."""
        place = f"{self.folder}/{path}"
        if self.storage_options is None:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            write_file(rows, place, self.layout, buckets)
            return os.path.getsize(place)
        from deltalake.fs import DeltaStorageHandler

        store = DeltaStorageHandler(self.folder, dict(self.storage_options) or None)
        with store.open_output_stream(path) as file:
            write_file(rows, file, self.layout, buckets)
            return int(file.tell())


def write_portions(place: Place, portions: Sequence[Callable[[], pa.Table]]) -> list[AddAction]:
    """Write files of rows, several at a time, that nobody sees yet.

    Parameters
    ----------
    place
        Where.
    portions
        Each makes some of the rows, NULL in columns that are not there; rows of one partition are neighbours.

    Returns
    -------
    list
        What the log has to say of the files, in the order of the portions; one for each partition of a portion.
    """
    with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as threads:
        found = threads.map(lambda portion: place.write(in_schema(portion(), place.schema)), portions)
        return [action for actions in found for action in actions]


def by_partition(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows of one partition beside each other, in the order in which they were made."""
    codes = np.zeros(rows.num_rows, np.int64)
    for name in names:
        own = rows[name].combine_chunks().dictionary_encode().indices.to_numpy()
        codes = codes * (int(own.max(initial=0)) + 1) + own
    if (codes[1:] >= codes[:-1]).all():
        return rows
    return rows.take(pa.array(np.argsort(codes, kind="stable")))


def parent_folder(partition: Mapping[str, Any]) -> str:
    """The folder of a partition."""
    return "/".join(f"{name}={quote(str(value), safe='')}" for name, value in partition.items())


def partition_texts(partition: Mapping[str, Any]) -> dict[str, str | None]:
    """The values of a partition as the log has them."""
    return {name: None if value is None else str(value) for name, value in partition.items()}


def _runs(rows: pa.Table, names: Sequence[str]) -> list[tuple[int, int]]:
    """Where neighbours that are equal in some columns, none of them NULL, begin and end."""
    if not rows.num_rows:
        return []
    differs = np.zeros(max(0, rows.num_rows - 1), np.bool_)
    for name in names:
        values = rows[name].to_numpy()
        differs |= values[1:] != values[:-1]
    ends = [*(np.flatnonzero(differs) + 1).tolist(), rows.num_rows]
    return list(pairwise([0, *ends]))

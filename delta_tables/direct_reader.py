"""Reads Delta tables in the driver's process, without a Spark job: the log through delta-rs, the files through Arrow.

A table's log is kept open and brought up to date by each call. The files of a Delta table never change, so what was
read of one is kept by its path.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from numpy.typing import NDArray

from patternlake.delta_tables.catalogue import TABLES
from patternlake.delta_tables.file_cache import TableCache
from patternlake.delta_tables.state_reader import Condition
from patternlake.udfs.errors import StateError

logger = logging.getLogger(__name__)

# Versions of the protocol that say no more than which columns partition a table and which statistics it has.
_READER_VERSION = 1


class UnreadableError(StateError):
    """A Delta table that Spark may be able to read, and this reader is not."""


@dataclass
class _Log:
    """The open log of a table, and the files of the version that was looked at last."""

    table: DeltaTable
    lock: threading.Lock = field(default_factory=threading.Lock)
    version: int = -1
    files: pa.Table | None = None
    schema: pa.Schema | None = None


class DirectReader:
    """Reads the tables under a location.

    Parameters
    ----------
    location
        Folder, or URL of an object store as delta-rs spells it.
    cache
        What keeps the files that were read.
    storage_options
        Of the object store, as delta-rs takes them.
    """

    def __init__(self, location: str, cache: TableCache, storage_options: Mapping[str, str] | None = None) -> None:
        self._location = unquote(location.removeprefix("file:")) if location.startswith("file:") else location
        self._cache = cache
        self._options = dict(storage_options or {})
        self._logs: dict[str, _Log] = {}
        self._opening = threading.Lock()
        self._bytes_read = 0

    @property
    def bytes_read(self) -> int:
        """How many bytes of files were read so far, as they are stored."""
        return self._bytes_read

    @property
    def place(self) -> tuple[str, dict[str, str]]:
        """Location and storage options: what another process needs to read the same."""
        return self._location, self._options

    def version(self, table: str) -> int:
        """Return the number of a table's current version."""
        return self._current(table).version

    def size(self, table: str, where: Sequence[Condition] = ()) -> int:
        """Return the bytes of the files that may hold rows which satisfy all conditions."""
        files = _chosen(self._current(table), where)
        return int(pc.sum(files["size_bytes"]).as_py() or 0)

    def writer_version(self, table: str) -> int:
        """Return the version of Delta's protocol that writers of a table must know."""
        return int(self._current(table).table.protocol().min_writer_version)

    def files(self, table: str, where: Sequence[Condition] = ()) -> pa.Table:
        """Return the files that may hold rows which satisfy all conditions: a row each, as delta-rs flattens them."""
        return _chosen(self._current(table), where)

    def created(self, table: str) -> datetime:
        """Return when a table was created."""
        made = self._current(table).table.metadata().created_time
        return datetime.fromtimestamp((made or 0) / 1000, timezone.utc)

    def unneeded(self, table: str) -> bool:
        """Whether the folder of a table holds files that no version within Delta's own retention needs; lists it."""
        log = self._current(table)
        with log.lock:
            return bool(log.table.vacuum(dry_run=True, full=True))

    def rows(self, table: str, columns: Sequence[str], where: Sequence[Condition] = ()) -> pa.Table:
        """Return columns of the rows that satisfy all conditions."""
        log = self._current(table)
        files = _chosen(log, where)
        assert log.schema is not None
        partitions = TABLES[table].partitions
        wanted = list(dict.fromkeys([*columns, *(condition.column for condition in where)]))
        stored = [name for name in wanted if name not in partitions]
        schema = pa.schema([log.schema.field(name) for name in wanted])
        parts = []
        for file in files.to_pylist():
            read = self._file(table, file["path"], stored, log.schema)
            given = {
                name: pa.scalar(file[f"partition.{name}"], schema.field(name).type)
                for name in partitions
                if name in wanted
            }
            arrays = [pa.repeat(given[name], read.num_rows) if name in given else read.column(name) for name in wanted]
            parts.append(_holding(pa.Table.from_arrays(arrays, schema=schema), where))
        return pa.concat_tables([schema.empty_table(), *parts]).select(list(columns))

    def _current(self, name: str) -> _Log:
        """The table's log, brought up to date."""
        log = self._logs.get(name)
        try:
            if log is None:
                with self._opening:
                    log = self._logs.get(name) or self._opened(name)
                    self._logs[name] = log
            with log.lock:
                log.table.update_incremental()
                if log.version != log.table.version():
                    log.schema = _arrow_schema(log.table)
                    log.files = pa.table(log.table.get_add_actions(flatten=True))
                    log.version = log.table.version()
                return _Log(log.table, log.lock, log.version, log.files, log.schema)
        except DeltaError as error:
            raise UnreadableError(
                f"the table {name} at {self._location} could not be read directly: {error}"
            ) from error

    def _opened(self, name: str) -> _Log:
        table = DeltaTable(f"{self._location}/{TABLES[name].log}", storage_options=self._options or None)
        if table.protocol().min_reader_version > _READER_VERSION:
            raise UnreadableError(f"the table {name} at {self._location} has features that need Spark")
        return _Log(table)

    def _file(self, table: str, path: str, columns: Sequence[str], schema: pa.Schema) -> pa.Table:
        def read() -> pa.Table:
            logger.debug("reading %s of %s", columns, path)
            with self._open(table, path) as source:
                file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
                there = [name for name in columns if name in file.schema_arrow.names]
                found = file.read(columns=there)
                self._bytes_read += _stored_bytes(file.metadata, there)
            arrays = [
                _typed(found.column(name), schema.field(name).type)
                if name in there
                else pa.nulls(found.num_rows, schema.field(name).type)
                for name in columns
            ]
            return pa.Table.from_arrays(arrays, names=list(columns))

        return self._cache.get((self._location, table, path, tuple(columns)), read)

    def _open(self, table: str, path: str) -> pa.NativeFile:
        if "://" not in self._location:
            return pa.memory_map(f"{self._location}/{TABLES[table].log}/{path}")
        return self._filesystem(table).open_input_file(path)

    def _filesystem(self, table: str) -> Any:
        import pyarrow.fs as pa_fs
        from deltalake.fs import DeltaStorageHandler

        place = f"{self._location}/{TABLES[table].log}"
        return pa_fs.PyFileSystem(DeltaStorageHandler(place, self._options or None))


def _stored_bytes(file: pq.FileMetaData, columns: Sequence[str]) -> int:
    """The bytes that columns take in a file."""
    chunks = (
        group.column(place)
        for group in map(file.row_group, range(file.num_row_groups))
        for place in range(group.num_columns)
    )
    return sum(chunk.total_compressed_size for chunk in chunks if chunk.path_in_schema.split(".")[0] in columns)


def _arrow_schema(table: DeltaTable) -> pa.Schema:
    return pa.schema(table.schema().to_arrow())


def _typed(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """A column in the type of the table; moments of Spark's files have no zone of their own, and are in UTC."""
    return column if column.type == type_ else column.cast(type_)


def _chosen(log: _Log, where: Sequence[Condition]) -> pa.Table:
    """The files that may hold such rows, by the values of their partitions and by their statistics."""
    assert log.files is not None
    keep = np.ones(log.files.num_rows, np.bool_)
    for condition in where:
        keep &= _possible(log.files, condition)
    return log.files.filter(pa.array(keep))


def _possible(files: pa.Table, condition: Condition) -> NDArray[np.bool_]:
    exact = f"partition.{condition.column}"
    if exact in files.column_names:
        return _truth(files[exact], condition)
    low, high = f"min.{condition.column}", f"max.{condition.column}"
    if low not in files.column_names or condition.operator == "null or >":
        return np.ones(files.num_rows, np.bool_)
    least, greatest = files[low], files[high]
    if pa.types.is_timestamp(greatest.type):
        # Statistics tell moments in whole milliseconds, rounded down.
        greatest = pc.add(greatest, pa.scalar(999, pa.duration("us")))
    values = condition.value if condition.operator == "in" else (condition.value,)
    if not values:
        return np.zeros(files.num_rows, np.bool_)
    found = pa.chunked_array([pa.array(np.ones(files.num_rows, np.bool_))])
    if condition.operator in ("=", "in", "<="):
        found = pc.and_kleene(found, pc.less_equal(least, _scalar(max(values), least.type)))
    if condition.operator in ("=", "in", ">="):
        found = pc.and_kleene(found, pc.greater_equal(greatest, _scalar(min(values), greatest.type)))
    # A file without statistics may hold anything; one with nothing but NULL has no bounds, but tells that.
    possible = np.asarray(pc.fill_null(found, True).to_numpy(zero_copy_only=False), np.bool_)
    nulls = f"null_count.{condition.column}"
    if nulls not in files.column_names:
        return possible
    empty = pc.fill_null(pc.equal(files[nulls], files["num_records"]), False)
    return possible & ~np.asarray(empty.to_numpy(zero_copy_only=False), np.bool_)


def _holding(rows: pa.Table, where: Sequence[Condition]) -> pa.Table:
    if not where:
        return rows
    keep = np.ones(rows.num_rows, np.bool_)
    for condition in where:
        keep &= _truth(rows[condition.column], condition)
    return rows if keep.all() else rows.filter(pa.array(keep))


def _truth(column: pa.ChunkedArray, condition: Condition) -> NDArray[np.bool_]:
    value = condition.value
    if condition.operator == "in":
        holds = pc.is_in(column, value_set=pa.array(value, column.type))
    elif condition.operator == "=":
        holds = pc.equal(column, _scalar(value, column.type))
    elif condition.operator == ">=":
        holds = pc.greater_equal(column, _scalar(value, column.type))
    elif condition.operator == "<=":
        holds = pc.less_equal(column, _scalar(value, column.type))
    else:
        holds = pc.fill_null(pc.greater(column, _scalar(value, column.type)), True)
    return np.asarray(pc.fill_null(holds, False).to_numpy(zero_copy_only=False), np.bool_)


def _scalar(value: Any, type_: pa.DataType) -> pa.Scalar:
    return pa.scalar(value, pa.int64()).cast(type_) if pa.types.is_timestamp(type_) else pa.scalar(value, type_)

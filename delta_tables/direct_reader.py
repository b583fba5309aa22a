"""Reads Delta tables in the driver's process, without a Spark job: the log through delta-rs, the files through Arrow.

A table's log is kept open and brought up to date by each call. The files of a Delta table never change, so what was
read of one is kept by its path.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from patternlake.delta_tables.file_cache import TableCache
from patternlake.delta_tables.file_choice import certain, chosen, truth
from patternlake.delta_tables.open_tables import Mark, is_last, log_of, mark_of
from patternlake.delta_tables.parquet_columns import columns_of_file, sizes_of_columns
from patternlake.delta_tables.state_reader import Condition
from patternlake.delta_tables.table import log_name
from patternlake.udfs.errors import StateError

logger = logging.getLogger(__name__)

# Versions of the protocol that say no more than which columns partition a table and which statistics it has.
_READER_VERSION = 1


_MANY_FILES = 8
"""So many are read by several threads: decoding them needs no lock of Python's."""


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, "patternlake-reading")


class UnreadableError(StateError):
    """A Delta table that Spark may be able to read, and this reader is not."""


@dataclass
class _Log:
    """The open log of a table, and the files of the version that was looked at last."""

    table: DeltaTable
    commit: str
    """Path of the log's commits, but for their numbers; empty where they are on no local disk."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    version: int = -1
    mark: Mark | None = None
    """What tells the commit of this version from another that was put into its place."""
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
        self._counting = threading.Lock()
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

    def size(self, table: str, where: Sequence[Condition] = (), columns: Sequence[str] = ()) -> int:
        """Return the bytes of the files that may hold rows which satisfy all conditions; of columns, about."""
        files = chosen(self._files(table), where)
        whole = int(pc.sum(files["size_bytes"]).as_py() or 0)
        if not columns or not whole:
            return whole
        largest = int(pc.index(files["size_bytes"], pc.max(files["size_bytes"])).as_py())
        return int(whole * self._share(table, files["path"][largest].as_py(), columns))

    def writer_version(self, table: str) -> int:
        """Return the version of Delta's protocol that writers of a table must know."""
        return int(self._current(table).table.protocol().min_writer_version)

    def properties(self, table: str) -> Mapping[str, str]:
        """Return the properties of a table."""
        told = self._current(table).table.metadata().configuration
        return {name: value for name, value in told.items() if value is not None}

    def schema(self, table: str) -> pa.Schema:
        """Return the columns of a table and their types."""
        schema = self._current(table).schema
        assert schema is not None
        return schema

    def files(self, table: str, where: Sequence[Condition] = ()) -> pa.Table:
        """Return the files that may hold rows which satisfy all conditions: a row each, as delta-rs flattens them."""
        return chosen(self._files(table), where)

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
        assert log.files is not None
        assert log.schema is not None
        files = chosen(log.files, where)
        schema = pa.schema([log.schema.field(name) for name in columns])
        open_to = [(condition, ~certain(files, condition)) for condition in where]
        told = [name for name in files.column_names if name in ("path", "num_records") or name.startswith("partition.")]
        listed = list(enumerate(files.select(told).to_pylist()))

        def of_file(numbered: tuple[int, dict[str, Any]]) -> pa.Table | None:
            place, file = numbered
            reading = _Reading(self, table, file, log.schema)
            kept = reading.holding([condition for condition, unsure in open_to if unsure[place]])
            if kept is not None and not len(kept):
                return None
            arrays = [_taken(reading.column(name, columns), kept, schema.field(name).type) for name in columns]
            return pa.Table.from_arrays(arrays, schema=schema)

        found = _threads().map(of_file, listed) if len(listed) >= _MANY_FILES else map(of_file, listed)
        read = [rows for rows in found if rows is not None]
        return pa.concat_tables([schema.empty_table(), *read])

    def bounds(self, table: str, column: str, where: Sequence[Condition]) -> tuple[int, int | None, int | None]:
        """Return how many rows satisfy all conditions, and the least and greatest value of a column of whole numbers.

        By what the log tells of the files, as far as it does.
        """
        files = self.files(table, where)
        told = ("num_records", f"min.{column}", f"max.{column}", f"null_count.{column}")
        sure = np.logical_and.reduce([np.ones(files.num_rows, np.bool_), *(certain(files, each) for each in where)])
        if not ({*told} <= {*files.column_names} and sure.all()) or any(files[name].null_count for name in told):
            found = self.rows(table, (column,), where)[column]
            extremes = pc.min_max(found).as_py()
            return len(found), extremes["min"], extremes["max"]
        rows = pc.sum(files["num_records"]).as_py() or 0
        return rows, pc.min(files[told[1]]).as_py(), pc.max(files[told[2]]).as_py()

    def _files(self, table: str) -> pa.Table:
        files = self._current(table).files
        assert files is not None
        return files

    def _current(self, name: str) -> _Log:
        """The table's log, brought up to date."""
        log = self._logs.get(name)
        try:
            if log is None:
                with self._opening:
                    log = self._logs.get(name) or self._opened(name)
                    self._logs[name] = log
            with log.lock:
                if log.mark is not None and log.mark != mark_of(log.commit, log.version):
                    # Another table stands there: a database was deleted, and made anew at its place.
                    log.table, log.version, log.mark = self._opened(name).table, -1, None
                if log.mark is None or not is_last(log.commit, log.version):
                    log.table.update_incremental()
                if log.version != log.table.version():
                    if log.table.protocol().min_reader_version > _READER_VERSION:
                        raise UnreadableError(f"the table {name} at {self._location} has features that need Spark")
                    log.schema = _arrow_schema(log.table)
                    log.files = pa.table(log.table.get_add_actions(flatten=True))
                    log.version = log.table.version()
                    log.mark = mark_of(log.commit, log.version) if log.commit else None
                return replace(log)
        except DeltaError as error:
            raise UnreadableError(
                f"the table {name} at {self._location} could not be read directly: {error}"
            ) from error

    def _opened(self, name: str) -> _Log:
        table = DeltaTable(f"{self._location}/{log_name(name)}", storage_options=self._options or None)
        return _Log(table, "" if "://" in self._location else log_of(f"{self._location}/{log_name(name)}"))

    def columns(self, table: str, path: str, columns: Sequence[str], schema: pa.Schema) -> dict[str, pa.ChunkedArray]:
        """Return whole columns of a file, texts as dictionaries where they are stored so."""
        keys = {name: (self._location, table, path, name) for name in columns}
        found = {name: self._cache.peek(key) for name, key in keys.items()}
        missing = [name for name, column in found.items() if column is None]
        if missing:
            for name, column in self._read(table, path, missing, schema).items():
                found[name] = pa.Table.from_arrays([column], names=[name])
                self._cache.put(keys[name], found[name])
        return {name: column.column(0) for name, column in found.items() if column is not None}

    def _read(self, table: str, path: str, columns: Sequence[str], schema: pa.Schema) -> dict[str, pa.ChunkedArray]:
        logger.debug("reading %s of %s", columns, path)
        with self._open(table, path) as source:
            found, size = columns_of_file(source, columns, schema)
        with self._counting:
            self._bytes_read += size
        return found

    def count(self, table: str, file: Mapping[str, Any]) -> int:
        """Return how many rows a file has, of those that `files` gives."""
        known = file.get("num_records")
        if known is None:  # whoever wrote it kept no statistics
            with self._open(table, file["path"]) as source:
                return int(pq.read_metadata(source).num_rows)
        return int(known)

    def _share(self, table: str, path: str, columns: Sequence[str]) -> float:
        """The part of a file that columns take."""

        def read() -> pa.Table:
            with self._open(table, path) as source:
                return sizes_of_columns(source)

        sizes = self._cache.get((self._location, table, path, "its footer"), read)
        mine = pc.sum(sizes["bytes"].filter(pc.is_in(sizes["name"], pa.array(list(columns))))).as_py() or 0
        return float(mine / max(1, pc.sum(sizes["bytes"]).as_py() or 0))

    def _open(self, table: str, path: str) -> pa.NativeFile:
        if "://" not in self._location:
            return pa.memory_map(f"{self._location}/{log_name(table)}/{path}")
        return self._filesystem(table).open_input_file(path)

    def _filesystem(self, table: str) -> Any:
        import pyarrow.fs as pa_fs
        from deltalake.fs import DeltaStorageHandler

        place = f"{self._location}/{log_name(table)}"
        return pa_fs.PyFileSystem(DeltaStorageHandler(place, self._options or None))


class _Reading:
    """What is read of one file: only the columns that are asked for, those of conditions first."""

    def __init__(self, reader: DirectReader, table: str, file: Mapping[str, Any], schema: pa.Schema) -> None:
        self._reader, self._table, self._file, self._schema = reader, table, file, schema
        self._columns: dict[str, pa.ChunkedArray] = {}

    def holding(self, where: Sequence[Condition]) -> pa.Array | None:
        """The numbers of the rows that satisfy all conditions; None: all of them."""
        if not where:
            return None
        named = [condition.column for condition in where]
        keep = np.logical_and.reduce([truth(self.column(condition.column, named), condition) for condition in where])
        return None if keep.all() else pa.array(np.flatnonzero(keep))

    def column(self, name: str, together: Sequence[str]) -> pa.ChunkedArray:
        """A column; where the file has to be opened for it, the others of `together` are read as well."""
        if name not in self._columns:
            partition = f"partition.{name}"
            if partition in self._file:
                count = self._reader.count(self._table, self._file)
                value = pa.scalar(self._file[partition], self._schema.field(name).type)
                self._columns[name] = pa.chunked_array([pa.repeat(value, count)])
            else:
                stored = [other for other in dict.fromkeys(together) if f"partition.{other}" not in self._file]
                wanted = [other for other in stored if other not in self._columns]
                path = self._file["path"]
                self._columns |= self._reader.columns(self._table, path, wanted, self._schema)
        return self._columns[name]


def _arrow_schema(table: DeltaTable) -> pa.Schema:
    return pa.schema(table.schema().to_arrow())


def _taken(column: pa.ChunkedArray, rows: pa.Array | None, type_: pa.DataType) -> pa.ChunkedArray:
    """Some rows of a column, or all, as what they are and not as numbers of a dictionary."""
    found = column if rows is None else column.take(rows)
    return found if found.type == type_ else found.cast(type_)

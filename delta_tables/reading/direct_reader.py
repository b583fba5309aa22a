"""Reads Delta tables in the driver's process, without a Spark job: the log through delta-rs, the files through Arrow.

Each call looks whether a table has news (`table_logs`). The files of a Delta table never change, so what was read of
one is kept by its path.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, TypeVar
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from patternlake.delta_tables.reading import written_rows
from patternlake.delta_tables.reading.file_cache import TableCache
from patternlake.delta_tables.reading.file_choice import certain, choose_files
from patternlake.delta_tables.reading.file_rows import OF_PARTITION, FileColumns, describe_files, holding, in_columns
from patternlake.delta_tables.reading.known_answers import KnownAnswers
from patternlake.delta_tables.reading.log_copies import store_threads
from patternlake.delta_tables.reading.parquet_columns import columns_of_file, open_parquet, sizes_of_columns
from patternlake.delta_tables.reading.state_reader import Condition, Fold, ListedFiles, Made, list_touched
from patternlake.delta_tables.reading.table_logs import CopiedLog, TableLogs
from patternlake.delta_tables.schema.layout import (
    BUCKETS,
    GROUP_ROWS,
    KEY,
    Part,
    buckets_of,
    describe_groups,
    lie_by_key,
    lies_by_key,
    part_of_keys,
    rows_in,
)

logger = logging.getLogger(__name__)

_File = TypeVar("_File")

_CODED = pa.dictionary(pa.int32(), pa.string())
_MANY_FILES = 8
"""So many are read by several threads: decoding them needs no lock of Python's."""
_WHOLE_BYTES = 16 << 10
"""Files of up to so many are read as a whole: what is asked next of one is read with it, as to open it takes longer."""
_ONE_REQUEST_BYTES = 1 << 20
"""Files of up to so many are had from a store by one request, whatever is read of them: a second one takes longer."""
_FEW_FILES = 8
"""Of no more, those at hand are looked through without a look at what the log tells of them."""


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, "patternlake-reading")


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
    one_core
        Whether whoever reads has one core, as a task of Spark has, so that several threads gain nothing but what a
        store keeps them waiting. Measured: to hand columns and files to threads takes a task of a funnel over ten
        million events a fifth of the time in which it reads them.
    """

    def __init__(
        self,
        location: str,
        cache: TableCache,
        storage_options: Mapping[str, str] | None = None,
        *,
        one_core: bool = False,
    ) -> None:
        self._location = unquote(location.removeprefix("file:")) if location.startswith("file:") else location
        self._cache = cache
        self._options = dict(storage_options or {})
        self._one_core = one_core
        self._logs = TableLogs(self._location, self._options)
        self._answers = KnownAnswers(cache, self._location)
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

    @property
    def on_disk(self) -> bool:
        """Whether the tables lie on a local disk."""
        return "://" not in self._location

    def look_at(self, tables: Sequence[str]) -> None:
        """Look at several tables at once, within `one_look`; on a local disk a look takes no time."""
        self._logs.look_at(tables)

    def version(self, table: str) -> int:
        """Return the number of a table's current version."""
        return self._logs.current(table).version

    def identity(self, table: str) -> Hashable:
        """Return what tells a table's current version from any other, also of a table that was there before it."""
        log = self._logs.current(table)
        return log.version, log.created

    def size(
        self, table: str, where: Sequence[Condition] = (), columns: Sequence[str] = (), few: int | None = None
    ) -> int:
        """Return the bytes of the files that may hold rows which satisfy all conditions; of columns, about.

        Of files by key, rows that are few are in few row groups: of these alone the columns are read that no condition
        is on. What keys take of them, the largest one tells.
        """
        files = self.files(table, where)
        if few is None or not columns:
            return self._size(table, files, where, columns)
        judged = [each.column for each in where if not certain(files, each).all()]
        others = [name for name in columns if name not in judged]
        groups = pc.if_else(lie_by_key(files["path"]), _most_groups(files), 1)
        share = min(1.0, few / max(1, pc.sum(groups).as_py() or 0))
        return self._size(table, files, where, judged) + int(share * self._size(table, files, where, others))

    def _size(self, table: str, files: pa.Table, where: Sequence[Condition], columns: Sequence[str]) -> int:
        whole = int(pc.sum(files["size_bytes"]).as_py() or 0)
        keys = _find_keys(where)
        if not whole or (keys is None and not columns):
            return whole
        by_key = lie_by_key(files["path"])
        if keys is not None and pc.any(by_key).as_py():
            mine = int(pc.sum(files["size_bytes"].filter(by_key)).as_py() or 0)
            whole += int(mine * self._share_of_keys(table, _largest(files.filter(by_key)), keys)) - mine
        if not columns:
            return whole
        largest = _largest(files)
        return int(whole * self._share(table, largest["path"], largest["size_bytes"], columns))

    def _share_of_keys(self, table: str, file: Mapping[str, Any], keys: Sequence[str]) -> float:
        """The part of the rows of a file by key that is read for some keys: one row group at least."""
        groups = self._read_groups(table, file)
        rows = groups["rows"].to_numpy()
        found = part_of_keys(groups, keys).groups or (int(np.argmax(rows)),)
        return float(rows[list(found)].sum() / max(1, rows.sum()))

    def writer_version(self, table: str) -> int:
        """Return the version of Delta's protocol that writers of a table must know."""
        return self._logs.current(table).writer_version

    def properties(self, table: str) -> Mapping[str, str]:
        """Return the properties of a table."""
        return self._logs.current(table).properties

    def schema(self, table: str) -> pa.Schema:
        """Return the columns of a table and their types."""
        return self._logs.current(table).schema

    def files(self, table: str, where: Sequence[Condition] = ()) -> pa.Table:
        """Return the files that may hold rows which satisfy all conditions: a row each, as delta-rs flattens them."""
        return self._logs.current(table).chosen(where)

    def created(self, table: str) -> datetime:
        """Return when a table was created."""
        return self._logs.current(table).created

    def unneeded(self, table: str) -> bool:
        """Whether the folder of a table holds files that no version within Delta's own retention needs.

        A folder on a local disk is listed; in a store those files count that the table's log knows.
        """
        with self._logs.opened(table) as opened:
            return bool(opened.vacuum(dry_run=True, full=self.on_disk))

    def copied_log(self, table: str) -> AbstractContextManager[CopiedLog]:
        """Return a copy of a table's log in a store, to be committed to, for a block alone."""
        return self._logs.copied_log(table)

    def commits_behind(self, table: str) -> int:
        """Return how many commits of a table were read behind its checkpoint; none on a local disk."""
        return self._logs.commits_behind(table)

    def rows(
        self, table: str, columns: Sequence[str], where: Sequence[Condition] = (), fold: Fold | None = None
    ) -> pa.Table:
        """Return columns of the rows that satisfy all conditions, or what was made of them when they were read."""
        log = self._logs.current(table)
        question = (table, tuple(columns), tuple(where), fold is not None)

        def left(files: pa.Table) -> pa.Table:
            """What conditions leave of files."""
            if files.num_rows > _FEW_FILES:
                files = log.chosen(where) if files is log.files else choose_files(files, where)
            return self._left(table, log.schema, files, columns, where)

        return self._answers.get(question, log, left, fold)

    def list_files(self, table: str, where: Sequence[Condition] = ()) -> ListedFiles | None:
        """Return the files that may hold rows which satisfy all conditions, for other processes to read."""
        log = self._logs.current(table)
        return ListedFiles(self._location, tuple(sorted(self._options.items())), table, log.schema, log.chosen(where))

    def rows_of(self, listed: ListedFiles, columns: Sequence[str], where: Sequence[Condition] = ()) -> pa.Table:
        """Return columns of the rows of some files that satisfy all conditions, without a look into the log.

        Of files by key those of the buckets that are listed, for which keys are among what is read.
        """
        files = choose_files(listed.files, where)
        return self._left(listed.table, listed.schema, files, columns, where, listed.buckets, listed.coded)

    def once(self, table: str, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what is made of a table's rows, once for each version; nobody may change it."""
        return self._logs.current(table).once(key, make)

    def _left(
        self,
        table: str,
        schema: pa.Schema,
        files: pa.Table,
        columns: Sequence[str],
        where: Sequence[Condition],
        buckets: tuple[int, ...] = (),
        coded: tuple[str, ...] = (),
    ) -> pa.Table:
        """What conditions leave of files; of files by key the rows of some buckets, where these are given."""
        fields = [schema.field(name) for name in list_touched(columns, where)]
        wanted = pa.schema([field.with_type(_CODED) if field.name in coded else field for field in fields])
        whole = [self._at_hand(table, path) for path in files["path"].to_pylist()]
        missing = [place for place, rows in enumerate(whole) if rows is None]
        large = []
        if missing:
            others = choose_files(files.take(pa.array(missing)), where)
            # What the log tells for itself, nobody reads.
            told = all(f"{OF_PARTITION}{name}" in files.column_names for name in wanted.names)
            small = pc.and_(pc.less_equal(others["size_bytes"], _WHOLE_BYTES), not told)
            whole += self._each(partial(self._whole, table, schema), describe_files(others.filter(small)))
            given = pa.schema([wanted.field(name) for name in columns])
            large = self._left_of_large(table, schema, others.filter(pc.invert(small)), given, where, buckets)
        rows = pa.concat_tables(
            [wanted.empty_table(), *(in_columns(each, wanted) for each in whole if each is not None)]
        )
        if buckets and rows.num_rows:  # these are all rows of their files
            rows = rows.filter(pa.array(np.isin(buckets_of(rows[KEY].combine_chunks()), buckets)))
        kept = holding([rows[condition.column] for condition in where], where)
        return pa.concat_tables([(rows if kept is None else rows.take(kept)).select(columns), *large])

    def _left_of_large(
        self,
        table: str,
        stored: pa.Schema,
        files: pa.Table,
        schema: pa.Schema,
        where: Sequence[Condition],
        buckets: tuple[int, ...],
    ) -> list[pa.Table]:
        """What conditions leave of files that they have chosen, of which no column is read that nobody needs."""
        keys = _find_keys(where)
        open_to = [(condition, ~certain(files, condition)) for condition in where]

        def read(numbered: tuple[int, Mapping[str, Any]]) -> pa.Table:
            place, file = numbered
            part = self._part(table, file, buckets, keys)
            if part == Part():
                return schema.empty_table()
            reading = FileColumns(self, table, file, stored, part)
            kept = reading.holding([condition for condition, open_ in open_to if open_[place]])
            if kept is not None and not len(kept):
                return schema.empty_table()
            return reading.rows(kept, schema)

        return self._each(read, list(enumerate(describe_files(files))))

    def _part(
        self, table: str, file: Mapping[str, Any], buckets: tuple[int, ...], keys: Sequence[str] | None
    ) -> Part | None:
        """What is read of a file for some keys, of some buckets; None: all of it."""
        if not lies_by_key(file["path"]) or (keys is None and not buckets):
            return None
        return Part(buckets=buckets) if keys is None else part_of_keys(self._read_groups(table, file), keys, buckets)

    def _each(self, read: Callable[[_File], pa.Table], files: Sequence[_File]) -> list[pa.Table]:
        if not self.on_disk and len(files) > 1:
            return list(store_threads().map(read, files))
        several = len(files) >= _MANY_FILES and not self._one_core
        return list(_threads().map(read, files) if several else map(read, files))

    def _at_hand(self, table: str, path: str) -> pa.Table | None:
        """All rows of a small file, if they are in memory."""
        rows = written_rows.few(f"{self._logs.folder(table)}/{path}")
        return self._cache.peek((self._location, table, path)) if rows is None else rows

    def _whole(self, table: str, schema: pa.Schema, file: Mapping[str, Any]) -> pa.Table:
        """All rows of a file, with its values of the columns by which the table is partitioned."""
        logger.debug("reading all of %s", file["path"])
        with self._open(table, file["path"], file["size_bytes"]) as source:
            rows = open_parquet(source).read(use_threads=False)
        self._count(file["size_bytes"])
        self._cache.replace(self._content_key(table, file["path"]), None)
        rows = in_columns(rows, pa.schema([field for field in schema if field.name in rows.column_names]))
        for name in (told.removeprefix(OF_PARTITION) for told in file if told.startswith(OF_PARTITION)):
            if name not in rows.column_names:  # whoever wrote the file may have put it there as well
                value = pa.scalar(file[f"{OF_PARTITION}{name}"], schema.field(name).type)
                rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
        self._cache.put((self._location, table, file["path"]), rows)
        return rows

    def _count(self, size: int) -> None:
        with self._counting:
            self._bytes_read += size

    def most(self, table: str, where: Sequence[Condition]) -> int | None:
        """Return how many rows satisfy all conditions at most, by the log; None where it does not tell."""
        counts = self.files(table, where)["num_records"]
        return None if counts.null_count else int(pc.sum(counts).as_py() or 0)

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

    def columns(
        self, table: str, file: Mapping[str, Any], columns: Sequence[str], schema: pa.Schema, part: Part | None = None
    ) -> dict[str, pa.ChunkedArray]:
        """Return columns of a file, of those that `files` gives; texts as dictionaries where they are stored so."""
        path = file["path"]
        written = written_rows.many(f"{self._logs.folder(table)}/{path}") if part is None else None
        if written is not None and {*columns} <= {*written.column_names}:
            return {name: written[name] for name in columns}
        keys = {name: (self._location, table, path, name, part) for name in columns}
        found = {name: self._cache.peek(key) for name, key in keys.items()}
        missing = [name for name, column in found.items() if column is None]
        if missing:
            for name, column in self._read(table, file, missing, schema, part).items():
                found[name] = pa.Table.from_arrays([column], names=[name])
                self._cache.put(keys[name], found[name])
        return {name: column.column(0) for name, column in found.items() if column is not None}

    def _read(
        self, table: str, file: Mapping[str, Any], columns: Sequence[str], schema: pa.Schema, part: Part | None
    ) -> dict[str, pa.ChunkedArray]:
        logger.debug("reading %s of %s", columns, file["path"])
        with self._open(table, file["path"], file["size_bytes"]) as source:
            found, size = columns_of_file(source, columns, schema, part, threads=not self._one_core)
        self._count(size)
        return found

    def count(self, table: str, file: Mapping[str, Any], part: Part | None = None) -> int:
        """Return how many rows a file has, of those that `files` gives."""
        known = file.get("num_records") if part is None else None
        if known is None:  # whoever wrote it kept no statistics, or only some rows count
            with self._open(table, file["path"], file["size_bytes"]) as source:
                return rows_in(pq.read_metadata(source), part)
        return int(known)

    def row_groups(self, table: str, file: Mapping[str, Any]) -> pa.Table | None:
        """Return what `describe_groups` tells of a file by key; None where all of its rows are in memory."""
        if written_rows.many(f"{self._logs.folder(table)}/{file['path']}") is not None:
            return None
        return self._read_groups(table, file)

    def _read_groups(self, table: str, file: Mapping[str, Any]) -> pa.Table:
        def read() -> pa.Table:
            with self._open(table, file["path"], file["size_bytes"]) as source:
                return describe_groups(pq.read_metadata(source))

        return self._cache.get((self._location, table, file["path"], "its row groups"), read)

    def judged(
        self, table: str, path: str, part: Part | None, condition: Condition, judge: Callable[[], NDArray[np.bool_]]
    ) -> NDArray[np.bool_]:
        """Return which rows of a file satisfy a condition, judged where that is not known yet."""
        key = (self._location, table, path, part, condition)
        found: NDArray[np.bool_] = self._cache.get(key, lambda: pa.table({"holds": judge()}))["holds"].to_numpy()
        return found

    def _share(self, table: str, path: str, size: int, columns: Sequence[str]) -> float:
        """The part of a file that columns take."""

        def read() -> pa.Table:
            with self._open(table, path, size) as source:
                return sizes_of_columns(source)

        sizes = self._cache.get((self._location, table, path, "its footer"), read)
        mine = pc.sum(sizes["bytes"].filter(pc.is_in(sizes["name"], pa.array(list(columns))))).as_py() or 0
        return float(mine / max(1, pc.sum(sizes["bytes"]).as_py() or 0))

    def _open(self, table: str, path: str, size: int) -> pa.NativeFile:
        """Open a file of so many bytes, which spares the store a request for them."""
        if self.on_disk:
            return pa.memory_map(f"{self._logs.folder(table)}/{path}")
        key = self._content_key(table, path)
        content: memoryview | None = self._cache.peek(key)
        if content is not None:
            return pa.BufferReader(content)
        import pyarrow.fs as pa_fs
        from deltalake.fs import DeltaStorageHandler

        store = DeltaStorageHandler(self._logs.folder(table), self._options or None, {path: size})
        file = pa_fs.PyFileSystem(store).open_input_file(path)
        if size > _ONE_REQUEST_BYTES:
            return file
        with file:
            content = memoryview(file.read_buffer(size))
        self._cache.put(key, content)
        return pa.BufferReader(content)

    def _content_key(self, table: str, path: str) -> Hashable:
        return self._location, table, path, "its content"


def _find_keys(where: Sequence[Condition]) -> tuple[str, ...] | None:
    """The keys that conditions ask for; None: all."""
    for condition in where:
        if condition.column == KEY and condition.operator in ("=", "in"):
            return tuple(condition.value) if condition.operator == "in" else (condition.value,)
    return None


def _most_groups(files: pa.Table) -> pa.Array:
    """How many row groups files by key have, about."""
    return pc.max_element_wise(pc.divide(files["num_records"], GROUP_ROWS), BUCKETS)


def _largest(files: pa.Table) -> Mapping[str, Any]:
    place = int(pc.index(files["size_bytes"], pc.max(files["size_bytes"])).as_py())
    return {name: files[name][place].as_py() for name in ("path", "size_bytes")}

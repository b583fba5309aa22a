"""Rows that work is done on: declared once, read in this process or by Spark's tasks, which deal them out.

Tasks read files for themselves, and what one of them read for a portion goes through Spark's shuffle as one Arrow blob:
to hand over the rows one by one takes Spark longer than to match them. Rows of a location that only Spark can read come
from its own scan, and are dealt out in the same way. Where rows are dealt out by the key by which files lie, whoever
takes a portion reads its part of those files, and no row of them goes through the shuffle. Of one source whose
rows are all so, there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.file_cache import TableCache
from patternlake.delta_tables.reading.spark_reader import choose_rows
from patternlake.delta_tables.reading.state_reader import Condition, ListedFiles, StateReader, list_touched
from patternlake.delta_tables.schema.layout import BUCKETS, KEY, buckets_of_unit, lie_by_key
from patternlake.delta_tables.schema.quoting import identifier
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.writing.arrow_rows import arrow_schema, frame_of
from patternlake.udfs.arrays import IntArray
from patternlake.udfs.attributes import is_attribute, stored_type, type_of
from patternlake.udfs.partitions import PART, ByPartition, by_portion, partition_values, rows_of_key
from patternlake.udfs.record_batches import as_blob, rows_in, tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.delta_tables.committing.database import Database

Deal = Callable[[pa.Table], tuple[pa.Table, IntArray]]
"""From rows to rows, of which some may come again and others be left out, and the portion of each."""

SOURCE, PORTION, ROWS, LISTED = "source", "portion", "rows", "listed"
"""What goes through the shuffle: rows of a source for a portion; or, `LISTED`, the files that a unit reads itself."""
_BLOBS = f"{SOURCE} INT, {PORTION} INT, {ROWS} BINARY, {LISTED} BOOLEAN"
_BLOB_SCHEMA = pa.schema([(SOURCE, pa.int32()), (PORTION, pa.int32()), (ROWS, pa.binary()), (LISTED, pa.bool_())])
KEYED = "events"
"""The table whose files may lie by key."""
_MOST_TASKS = 1000
_UNIT_ROWS = 16_000_000
"""Rows of files by key that a unit reads, at most, about."""
_PORTION_ROWS = 8_000_000
"""A unit of no more rows, about, is one portion: to deal them out again takes half as long as to read them."""
_READ_AT_ONCE = 16 << 20
"""Bytes of files that a task reads before it deals out what it read: blobs are then some thousand rows each."""
_READING_TASKS = 8
"""So many times as many tasks as run at once read, at most: the last of them then begins not long before the end."""


@dataclass(frozen=True)
class Gather:
    """Rows of one table that work is done on.

    Attributes
    ----------
    table
        Plain name.
    columns
        What is read of each row. With `PART` among them it is stored; else it is made of `partition`.
    where
        The conditions on the rows.
    partition
        The columns of PARTITION BY.
    key
        Only the partition that is shown so; without `partition`, only rows of this key. None: all.
    make
        What is made of the rows that were read, with their `PART`, before they are dealt out.
    sparse
        Whether the conditions leave little of what is read to find it.
    coded
        Columns that are given as numbers of a dictionary, where they are read: texts that come often, as they are
        stored.
    """

    table: str
    columns: tuple[str, ...]
    where: tuple[Condition, ...]
    partition: tuple[str, ...] = ()
    key: str | None = None
    make: Callable[[pa.Table], pa.Table] | None = None
    sparse: bool = False
    coded: tuple[str, ...] = ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All conditions on the rows, that on the key among them."""
        of_key = self.key is not None and self.table == KEYED and self.partition in ((), (KEY,))
        return (*self.where, Condition(KEY, "=", self.key)) if of_key else self.where

    @property
    def touched(self) -> tuple[str, ...]:
        """All columns that are read."""
        return list_touched(self.columns, self.conditions)

    def read(self, reader: StateReader) -> pa.Table:
        """The rows, in this process."""
        return self.made(reader.rows(self.table, self.columns, self.conditions))

    @property
    def none(self) -> pa.Table:
        """What is gathered where there are no rows."""
        types = {column.name: column.type for column in TABLES[self.table].columns}
        types |= {name: stored_type(type_of(name)) for name in self.columns if is_attribute(name)}
        read = ", ".join(f"{identifier(name)} {types[name]}" for name in self.columns)
        return self.made(arrow_schema(cast(StructType, StructType.fromDDL(read))).empty_table())

    def made(self, rows: pa.Table) -> pa.Table:
        """What is made of rows that were read."""
        for name in {*self.coded}.intersection(rows.column_names):
            rows = rows.set_column(rows.column_names.index(name), name, rows[name].dictionary_encode())
        if PART not in self.columns:
            rows = rows.append_column(PART, partition_values(rows, self.partition))
        rows = rows_of_key(rows, self.partition, self.key)
        return rows if self.make is None else self.make(rows)


def anyhow(portions: int, rows: pa.Table) -> tuple[pa.Table, IntArray]:
    """Deal rows out that belong to no portion, to so many alike."""
    return rows, np.arange(rows.num_rows) % portions


def deal(
    database: Database, reader: StateReader, sources: Sequence[tuple[Gather, Deal]], portions: int
) -> tuple[DataFrame, PortionReader]:
    """Let Spark's tasks read what is gathered, and bring together what they dealt to each of 0 to `portions` - 1.

    Parameters
    ----------
    database
        In whose session tasks run.
    reader
        Knows the files of the tables.
    sources
        What is gathered, and how it is dealt out.
    portions
        How many there are.

    Returns
    -------
    DataFrame
        Each of its partitions is a unit, or some units, which hold some portions as a whole.
    PortionReader
        Finds the portions of units; for tasks that take the partitions.
    """
    listed = [reader.list_files(gather.table, gather.conditions) for gather, _ in sources]
    own = [
        _files_for_units(files, gather, dealing, portions)
        for files, (gather, dealing) in zip(listed, sources, strict=True)
    ]
    units = _count_units(database, own, portions)
    sources = _in_units(sources, listed, units, portions)
    frames = []
    read = {}
    for place, (files, mine, (gather, dealing)) in enumerate(zip(listed, own, sources, strict=True)):
        if files is None:
            frames.append(_scan(database, place, gather, dealing))
            continue
        if mine is not None:
            frames.append(_listed_for_units(database, place, mine, units))
            files = replace(files, files=files.files.filter(pc.invert(pc.is_in(files.files["path"], mine["path"]))))
        if mine is None or files.files.num_rows:
            read[place] = files, gather, dealing
    if read:
        frames.append(_read_by_tasks(database, read))
    blobs = reduce(lambda one, other: one.unionAll(other), frames)
    # A unit that reads all for itself is one row of each source: of one source, or in one task, it needs no shuffle.
    alone = not read and None not in listed and (units == 1 or len(frames) == 1)
    dealt = blobs.coalesce(units) if alone else blobs.repartitionById(units, F.col(PORTION) % units)
    known = tuple(Known.of(files, *source) for files, source in zip(listed, sources, strict=True))
    return dealt, PortionReader(known, units)


def collect(database: Database, reader: StateReader, gather: Gather) -> pa.Table:
    """Bring into this process what tasks make of the rows that they read; parameters as of `deal`."""
    blobs, portions = deal(database, reader, [(gather, partial(anyhow, 1))], 1)
    found = portions.read(blobs.toArrow().to_batches())
    return pa.concat_tables([gather.none, *(rows for _, (rows,) in found)])


@dataclass(frozen=True)
class Known:
    """What tasks know of a source: where its files are, without the files, what is gathered, and how it is dealt.

    `none` is what is gathered where there are no rows; only the driver can ask Spark for its types.
    """

    listed: ListedFiles | None
    gather: Gather
    dealing: Deal
    none: pa.Table

    @classmethod
    def of(cls, listed: ListedFiles | None, gather: Gather, dealing: Deal) -> Known:
        """In the driver."""
        without = None if listed is None else replace(listed, files=listed.files.slice(0, 0))
        return cls(without, gather, dealing, gather.none)

    def read(self, files: pa.Table, buckets: tuple[int, ...] = ()) -> pa.Table:
        """What is gathered of some files, of those by key what lies in some buckets."""
        assert self.listed is not None
        # Nothing is kept: what a task reads of a table that is too large for the driver, none reads again soon.
        reader = DirectReader(self.listed.location, TableCache(0), dict(self.listed.storage_options), one_core=True)
        listed = replace(self.listed, files=files, buckets=buckets, coded=self.gather.coded)
        return self.gather.made(reader.rows_of(listed, self.gather.columns, self.gather.conditions))


@dataclass(frozen=True)
class PortionReader:
    """Finds the portions of units in what `deal` brought to a task.

    Attributes
    ----------
    sources
        What tasks know of each.
    units
        How many there are.
    """

    sources: tuple[Known, ...]
    units: int

    def read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, list[pa.Table]]]:
        """Read the portions.

        Parameters
        ----------
        batches
            What the task is given.

        Yields
        ------
        (portion, rows of each of the sources)
        """
        held: dict[int, list[list[pa.Table]]] = {}
        by_key: dict[int, dict[int, pa.Table]] = {}
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in (SOURCE, PORTION, LISTED))
            for place, number, listed, blob in zip(*columns, batch.column(ROWS), strict=True):
                if listed:
                    by_key.setdefault(number, {})[place] = rows_in(blob)
                else:
                    self._hold(held, place, [(number, rows_in(blob))])
        for unit, sources in by_key.items():
            # One share of the keys after the other: arrays of a few megabytes stay in memory that is at hand.
            for share in range(unit % self.shares, self.shares, min(self.units, self.shares)):
                for place, files in sources.items():
                    self._hold(held, place, self._read_share(place, unit, share, files))
                mine = {number: held.pop(number) for number in sorted(held) if number % self.shares == share}
                yield from self._given(mine)
        yield from self._given(held)

    @property
    def shares(self) -> int:
        """Into how many shares keys fall that are read one after the other; a portion is of one."""
        portions = {source.dealing.portions for source in self.sources if isinstance(source.dealing, ByPartition)}
        return min(BUCKETS, *portions)

    def _hold(self, held: dict[int, list[list[pa.Table]]], place: int, found: Iterable[tuple[int, pa.Table]]) -> None:
        for portion, rows in found:
            held.setdefault(portion, [[] for _ in self.sources])[place].append(rows)

    def _given(self, held: dict[int, list[list[pa.Table]]]) -> Iterator[tuple[int, list[pa.Table]]]:
        """Portions in their order; what is given is held no longer."""
        for number in sorted(held):
            pieces = zip(held.pop(number), self.sources, strict=True)
            yield number, [pa.concat_tables(rows) if rows else source.none for rows, source in pieces]

    def _read_share(self, place: int, unit: int, share: int, files: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """What a unit reads of its files for a share of the keys, by portion."""
        source = self.sources[place]
        buckets = tuple(buckets_of_unit(share, self.shares)) if self.shares > 1 else ()
        # A partition's portion and its bucket are remainders of one number: where a share is one portion, all rows of
        # its buckets are of this one.
        if source.dealing == ByPartition(self.shares):
            rows = source.read(files, buckets)
            if rows.num_rows:
                yield share, rows
            return
        for some in _in_groups(files, _READ_AT_ONCE * self.shares):
            for portion, mine in by_portion(*source.dealing(source.read(some, buckets))):
                if portion % self.units == unit:  # of more units than buckets, several read one
                    yield portion, mine


def _files_for_units(listed: ListedFiles | None, gather: Gather, dealing: Deal, portions: int) -> pa.Table | None:
    """The files of a source of which each unit can read its own portions, in their order; None: it has none.

    These are files by key, where partitions are keys; and all, where there is one portion, if one task can read them.
    """
    if listed is None or not isinstance(dealing, ByPartition):
        return None
    files = listed.files
    rows = _count_rows([files])
    if portions > 1 or rows is None or rows > _UNIT_ROWS:
        if gather.partition != (KEY,) or gather.table != KEYED or portions & (portions - 1):
            return None
        files = files.filter(lie_by_key(files["path"]))
    if "min.position" in files.column_names:
        files = files.sort_by("min.position")  # so that a key's rows are in order
    return files if files.num_rows else None


def _count_rows(files: Iterable[pa.Table]) -> int | None:
    """How many rows files have; None: of some nobody knows."""
    counts = [each["num_records"] for each in files]
    return None if any(each.null_count for each in counts) else sum(pc.sum(each).as_py() or 0 for each in counts)


def _count_units(database: Database, own: Sequence[pa.Table | None], portions: int) -> int:
    """How many units there are; where some read their own portions, a power of two."""
    found = [files for files in own if files is not None]
    if not found:
        return min(portions, _MOST_TASKS)
    rows = _count_rows(found) or 0
    # Each unit opens all files: of more than run at once, most of the time goes into opening them.
    wanted = max(database.spark.sparkContext.defaultParallelism, -(-rows // _UNIT_ROWS))
    return min(portions, 1 << (int(wanted) - 1).bit_length())


def _in_units(
    sources: Sequence[tuple[Gather, Deal]], listed: Sequence[ListedFiles | None], units: int, portions: int
) -> list[tuple[Gather, Deal]]:
    """The sources, whose partitions are dealt out to units alone where these have no more rows than a portion may."""
    files = [each.files for each in listed if each is not None]
    rows = _count_rows(files) if len(files) == len(listed) else None
    few = rows is not None and rows <= units * _PORTION_ROWS
    if not few or not all(isinstance(dealing, ByPartition) for _, dealing in sources):
        return [*sources]
    return [(gather, ByPartition(max(units, min(BUCKETS, portions)))) for gather, _ in sources]


def _listed_for_units(database: Database, place: int, files: pa.Table, units: int) -> DataFrame:
    """The files of a source that units read for themselves, for each of them."""
    blob = as_blob(files)
    columns = {SOURCE: [place] * units, PORTION: range(units), ROWS: [blob] * units, LISTED: [True] * units}
    return frame_of(database.spark, pa.table(columns, schema=_BLOB_SCHEMA), _BLOBS)


def _scan(database: Database, place: int, gather: Gather, deal: Deal) -> DataFrame:
    """Blobs of rows that only Spark can read."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in tables(batches):
            yield _blobs(place, *deal(gather.made(rows)))

    rows = choose_rows(database.table(gather.table), gather.conditions).select(*gather.columns)
    return rows.mapInArrow(run, _BLOBS)


def _read_by_tasks(database: Database, read: Mapping[int, tuple[ListedFiles, Gather, Deal]]) -> DataFrame:
    """Blobs of rows that tasks read for themselves."""
    groups = [
        (place, some) for place, (listed, _, _) in read.items() for some in _in_groups(listed.files, _READ_AT_ONCE)
    ]
    tasks = max(1, min(len(groups), _READING_TASKS * database.spark.sparkContext.defaultParallelism))
    shares = {
        SOURCE: [place for place, _ in groups],
        PORTION: [number % tasks for number in range(len(groups))],
        ROWS: [as_blob(some) for _, some in groups],
        LISTED: [True] * len(groups),
    }
    # The files go with the groups.
    known = {place: Known.of(*source) for place, source in read.items()}

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place, blob in zip(batch.column(SOURCE).to_pylist(), batch.column(ROWS), strict=True):
                rows = known[place].read(rows_in(blob))
                if rows.num_rows:
                    yield _blobs(place, *known[place].dealing(rows))

    frame = frame_of(database.spark, pa.table(shares, schema=_BLOB_SCHEMA), _BLOBS)
    return frame.repartitionById(tasks, PORTION).mapInArrow(run, _BLOBS)


def _in_groups(files: pa.Table, size: int) -> list[pa.Table]:
    """Files, as many together as have so many bytes."""
    before = np.cumsum(np.append(0, files["size_bytes"].to_numpy()))[:-1]
    groups = before // size
    begins = np.flatnonzero(np.diff(groups, prepend=-1))
    ends = np.append(begins, len(groups))[1:]
    return [files.slice(begin, end - begin) for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]


def _blobs(place: int, rows: pa.Table, portions: IntArray) -> pa.RecordBatch:
    """Rows as one blob for each portion."""
    found = by_portion(rows, portions)
    columns = {
        SOURCE: [place] * len(found),
        PORTION: [portion for portion, _ in found],
        ROWS: [as_blob(mine) for _, mine in found],
        LISTED: [False] * len(found),
    }
    return pa.RecordBatch.from_pydict(columns, schema=_BLOB_SCHEMA)

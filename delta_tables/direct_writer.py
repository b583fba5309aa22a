"""Commits to Delta tables in the driver's process, through delta-rs: no Spark job, no plan.

A commit is a new file of the table's log, and whoever makes it must not replace one that is there. delta-rs links the
file into its place, which fails where there is one. Spark's store for local folders looks whether there is one and then
renames, which on a local disk replaces what came in between; a lock keeps the threads of one JVM apart, and nobody
else. So a table is written this way only where all its commits are, those with `Table.direct`, or while `CommitLock`
keeps Spark's commits away; and on a local disk. On object stores, Spark and delta-rs coordinate writers in ways of
their own, and Spark writes everything.
"""

from __future__ import annotations

import logging
import os
import random
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction
from numpy.typing import NDArray

from patternlake.delta_tables.file_choice import chosen, truth
from patternlake.delta_tables.file_statistics import statistics_of
from patternlake.delta_tables.open_tables import opened
from patternlake.delta_tables.parquet_columns import columns_of_file, write_file
from patternlake.delta_tables.state_reader import Condition

logger = logging.getLogger(__name__)

ATTEMPTS = 8
_FIRST_PAUSE = 0.01
_FEW_ROWS = 10_000
"""A file of no more rows stays one when some of them are changed."""
_GATHERED_ROWS = 100_000
"""What stays of larger ones goes into one file, of each no more rows than these."""
_OF = "partition."
_THREADS = 8
"""Portions of rows that are made and written at once, at most: each is held in memory."""
_COUNTED_COLUMNS = "delta.dataSkippingStatsColumns"


def possible(folder: str) -> bool:
    """Whether files of a folder can be linked, which is how a commit is made without replacing another."""
    name = f"{folder}/.patternlake-{uuid.uuid4().hex}"
    try:
        with open(name, "xb"):
            pass
        os.link(name, f"{name}.link")
    except OSError as error:
        logger.info("Spark makes all commits at %s: %s", folder, error)
        return False
    finally:
        for made in (name, f"{name}.link"):
            with suppress(OSError):
                os.unlink(made)
    return True


def append(folder: str, rows: pa.Table, *, application: str, version: int) -> bool:
    """Append rows once, however often it is called with this application and version.

    Parameters
    ----------
    folder
        Of the Delta table.
    rows
        All columns of the table.
    application, version
        As Delta's ``txnAppId`` and ``txnVersion``.

    Returns
    -------
    bool
        Whether this call made the commit. Where it is False there may be a commit of a rival's, or of this call's own
        whose end could not be told; who must know reads back.
    """
    transaction = Transaction(application, version)

    def commit(table: DeltaTable) -> None:
        write_deltalake(table, rows, mode="append", commit_properties=CommitProperties(app_transactions=[transaction]))

    return _retrying(folder, commit, partial(_is_made, transaction))


def is_appended(folder: str, *, application: str, version: int) -> bool:
    """Whether an `append` or `add` of this application and version, or of a later one, has been made."""
    with opened(folder) as table:
        return _is_made(Transaction(application, version), table)


@dataclass(frozen=True)
class Place:
    """Where files of a table are written, and how; can be sent to tasks.

    Attributes
    ----------
    folder
        Of the Delta table.
    schema
        All columns.
    partitions
        Names of the partition columns.
    counted
        Names of the columns whose bounds the log tells; None: the first ones.
    packed
        Whether whole numbers and moments are written as differences from their neighbours.
    """

    folder: str
    schema: pa.Schema
    partitions: tuple[str, ...]
    counted: tuple[str, ...] | None
    packed: bool

    @classmethod
    def of(cls, table: DeltaTable | str, *, packed: bool, folder: str | None = None) -> Place:
        """Of a table that is open, or of that in a folder."""
        opened = DeltaTable(table) if isinstance(table, str) else table
        metadata = opened.metadata()
        told = metadata.configuration.get(_COUNTED_COLUMNS)
        return cls(
            folder or str(table),
            pa.schema(opened.schema().to_arrow()),
            tuple(metadata.partition_columns),
            None if told is None else tuple(told.split(",")),
            packed,
        )

    def written(self, rows: pa.Table) -> list[AddAction]:
        """Write rows, those of one partition neighbours: a file for each partition."""
        found = []
        for begin, end in _runs(rows, self.partitions):
            values = {name: rows[name][begin].as_py() for name in self.partitions}
            found.append(self.file(rows.slice(begin, end - begin), _parent(values), values))
        return found

    def file(self, rows: pa.Table, parent: str, partition: Mapping[str, Any], *, changing: bool = True) -> AddAction:
        """Write a file of rows of one partition, and give what the log has to say of it."""
        stored = rows.select([name for name in rows.column_names if name not in partition])
        path = f"{parent}/{uuid.uuid4().hex}.parquet" if parent else f"{uuid.uuid4().hex}.parquet"
        os.makedirs(f"{self.folder}/{parent}", exist_ok=True)
        write_file(stored, f"{self.folder}/{path}", packed=self.packed)
        size, now = os.path.getsize(f"{self.folder}/{path}"), int(time.time() * 1000)
        return AddAction(path, size, _texts(partition), now, changing, statistics_of(stored, self.counted))


def write_portions(folder: str, portions: Sequence[Callable[[], pa.Table]], *, packed: bool) -> list[AddAction]:
    """Write files of rows, several at a time, that nobody sees yet.

    Parameters
    ----------
    folder
        Of the Delta table.
    portions
        Each makes some of the rows: all columns of the table, in its types; rows of one partition are neighbours.
    packed
        As for `merge`.

    Returns
    -------
    list
        What the log has to say of the files, in the order of the portions; one for each partition of a portion.
    """
    place = Place.of(folder, packed=packed)
    with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as threads:
        found = threads.map(lambda portion: place.written(portion()), portions)
        return [action for actions in found for action in actions]


def add(folder: str, actions: Sequence[AddAction], *, application: str, version: int) -> bool:
    """Append the rows of files that are written, once; parameters and result are those of `append`."""
    transaction = Transaction(application, version)

    def commit(table: DeltaTable) -> None:
        table.create_write_transaction(
            list(actions),
            "append",
            pa.schema(table.schema().to_arrow()),
            table.metadata().partition_columns,
            commit_properties=CommitProperties(app_transactions=[transaction]),
        )

    return _retrying(folder, commit, partial(_is_made, transaction))


def update(
    folder: str,
    any_of: Sequence[Sequence[Condition]],
    values: Mapping[str, Any],
    *,
    only: Callable[[pa.Table], NDArray[np.bool_]] | None,
    most_bytes: int,
    packed: bool = False,
) -> bool:
    """Set columns of some rows, by writing the files that hold them anew.

    Rows that are changed leave a large file: what is closed would else be written again with every row that is closed
    later. What stays of several such files becomes one, as it would else lie in as many files as there were changes.

    Parameters
    ----------
    folder
        Of the Delta table.
    any_of
        The rows: those that satisfy all conditions of one of these lists.
    values
        By name of a column that is no partition: the value that it gets.
    only
        Of rows that satisfy the conditions, with all columns: which are meant; None: all of them.
    most_bytes
        Nothing is done where the files that may hold such rows take more.
    packed
        As for `merge`.

    Returns
    -------
    bool
        Whether it was done.
    """
    small = True

    def commit(table: DeltaTable) -> None:
        nonlocal small
        candidates = _holding(table, any_of)
        small = (pc.sum(candidates["size_bytes"]).as_py() or 0) <= most_bytes
        if not small:
            return
        schema = pa.schema(table.schema().to_arrow())
        actions: list[AddAction | RemoveAction] = []
        apart: dict[str, list[tuple[dict[str, Any], pa.Table]]] = {}
        left: dict[str, list[tuple[dict[str, Any], pa.Table]]] = {}
        for file in candidates.to_pylist():
            rows = _rows(folder, file, schema)
            meant = _meant(rows, any_of, only)
            if not meant.any():
                continue
            if rows.num_rows <= _FEW_ROWS:
                actions += _in_place_of(folder, [file], _changed(rows, meant, values), table, packed)
                continue
            parent = os.path.dirname(file["path"])
            gone = rows.filter(pa.array(meant))
            gone = _changed(gone, np.ones(gone.num_rows, np.bool_), values)
            apart.setdefault(parent, []).append((file, gone))
            others = rows.filter(pa.array(~meant))
            if others.num_rows <= _GATHERED_ROWS:
                left.setdefault(parent, []).append((file, others))
            else:
                actions += _in_place_of(folder, [file], others, table, packed)
        for pieces in left.values():
            files, kept = zip(*pieces, strict=True)
            actions += _in_place_of(folder, files, pa.concat_tables(kept), table, packed)
        for parent, pieces in apart.items():
            together = pa.concat_tables([rows for _, rows in pieces])
            actions += _in_place_of(folder, [], together, table, packed, parent=parent, partition=pieces[0][0])
        if actions:
            table.create_write_transaction(actions, "append", schema, table.metadata().partition_columns)

    _retrying(folder, commit)
    return small


def delete(folder: str, any_of: Sequence[Sequence[Condition]], *, most_bytes: int, packed: bool = False) -> bool:
    """Delete some rows, by writing the files that hold them anew without them.

    Parameters are those of `update`.

    Returns
    -------
    bool
        Whether it was done.
    """
    small = True

    def commit(table: DeltaTable) -> None:
        nonlocal small
        candidates = _holding(table, any_of)
        small = (pc.sum(candidates["size_bytes"]).as_py() or 0) <= most_bytes
        if not small:
            return
        schema = pa.schema(table.schema().to_arrow())
        actions = _without(folder, candidates, any_of, None, table, packed)
        if actions:
            table.create_write_transaction(actions, "append", schema, table.metadata().partition_columns)

    _retrying(folder, commit)
    return small


def replace(
    folder: str,
    where: Sequence[Condition],
    rows: pa.Table,
    *,
    only: Callable[[pa.Table], NDArray[np.bool_]] | None,
    most_bytes: int,
    packed: bool = False,
) -> bool:
    """Put rows of one partition in the place of those that satisfy conditions.

    Parameters are those of `update`; `rows` has all columns of the table, and at least one row.

    Returns
    -------
    bool
        Whether it was done.
    """
    small = True

    def commit(table: DeltaTable) -> None:
        nonlocal small
        files = chosen(pa.table(table.get_add_actions(flatten=True)), where)
        small = (pc.sum(files["size_bytes"]).as_py() or 0) <= most_bytes
        if not small:
            return
        schema = pa.schema(table.schema().to_arrow())
        names = table.metadata().partition_columns
        values = {f"{_OF}{name}": rows[name][0].as_py() for name in names}
        parent = _parent({name: rows[name][0].as_py() for name in names})
        actions = _in_place_of(folder, [], rows, table, packed, parent=parent, partition=values)
        actions += _without(folder, files, [where], only, table, packed)
        table.create_write_transaction(actions, "append", schema, names)

    _retrying(folder, commit)
    return small


def merge(folder: str, partitions: Sequence[Mapping[str, Any]], *, packed: bool, largest: int, most_bytes: int) -> bool:
    """Merge the small files of some partitions, each partition's into one.

    Parameters
    ----------
    folder
        Of the Delta table.
    partitions
        By name of a partition column: its value.
    packed
        Whether whole numbers and moments are written as differences from their neighbours.
    largest
        Bytes of a file above which it is no small one.
    most_bytes
        Nothing is done where a partition's small files take more.

    Returns
    -------
    bool
        Whether it was done.
    """
    small = True

    def commit(table: DeltaTable) -> None:
        nonlocal small
        files = pa.table(table.get_add_actions(flatten=True))
        files = files.filter(pc.less(files["size_bytes"], largest)).sort_by("modification_time")
        schema = pa.schema(table.schema().to_arrow())
        actions: list[AddAction | RemoveAction] = []
        for values in partitions:
            mine = [
                file
                for file in files.to_pylist()
                if all(file[f"{_OF}{name}"] == value for name, value in values.items())
            ]
            small = small and sum(file["size_bytes"] for file in mine) <= most_bytes
            if not small:
                return
            if len(mine) > 1:
                rows = pa.concat_tables([_rows(folder, file, schema) for file in mine])
                actions += _in_place_of(folder, mine, rows, table, packed, changing=False)
        if actions:
            table.create_write_transaction(actions, "append", schema, table.metadata().partition_columns)

    _retrying(folder, commit)
    return small


def _holding(table: DeltaTable, any_of: Sequence[Sequence[Condition]]) -> pa.Table:
    """The files that may hold rows which satisfy all conditions of one of some lists."""
    files = pa.table(table.get_add_actions(flatten=True))
    paths = {path for where in any_of for path in chosen(files, where)["path"].to_pylist()}
    return files.filter(pc.is_in(files["path"], pa.array(sorted(paths), pa.string())))


def _rows(folder: str, file: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """All rows of a file, with all columns of the table."""
    with pa.memory_map(f"{folder}/{file['path']}") as source:
        stored = [name for name in schema.names if f"{_OF}{name}" not in file]
        columns, _ = columns_of_file(source, stored, schema)
        count = len(next(iter(columns.values())))
        for name in schema.names:
            if name not in columns:
                value = pa.scalar(file[f"{_OF}{name}"], schema.field(name).type)
                columns[name] = pa.chunked_array([pa.repeat(value, count)])
        return pa.table({name: columns[name] for name in schema.names})


def _without(
    folder: str,
    files: pa.Table,
    any_of: Sequence[Sequence[Condition]],
    only: Callable[[pa.Table], NDArray[np.bool_]] | None,
    table: DeltaTable,
    packed: bool,
) -> list[AddAction | RemoveAction]:
    """Write files anew without the rows that are meant, those that hold some of them."""
    schema = pa.schema(table.schema().to_arrow())
    actions: list[AddAction | RemoveAction] = []
    for file in files.to_pylist():
        rows = _rows(folder, file, schema)
        gone = _meant(rows, any_of, only)
        if gone.any():
            actions += _in_place_of(folder, [file], rows.filter(pa.array(~gone)), table, packed)
    return actions


def _meant(
    rows: pa.Table, any_of: Sequence[Sequence[Condition]], only: Callable[[pa.Table], NDArray[np.bool_]] | None
) -> NDArray[np.bool_]:
    found = np.zeros(rows.num_rows, np.bool_)
    for where in any_of:
        holds = np.ones(rows.num_rows, np.bool_)
        for condition in where:
            holds &= truth(rows[condition.column], condition)
        found |= holds
    if only is not None and found.any():
        if found.all():
            return only(rows)
        places = np.flatnonzero(found)
        found[places] = only(rows.take(pa.array(places)))
    return found


def _changed(rows: pa.Table, meant: NDArray[np.bool_], values: Mapping[str, Any]) -> pa.Table:
    for name, value in values.items():
        place = rows.column_names.index(name)
        column = rows[name].combine_chunks()
        rows = rows.set_column(place, name, pc.if_else(pa.array(meant), pa.scalar(value, column.type), column))
    return rows


def _in_place_of(
    folder: str,
    files: Sequence[Mapping[str, Any]],
    rows: pa.Table,
    table: DeltaTable,
    packed: bool,
    *,
    changing: bool = True,
    parent: str = "",
    partition: Mapping[str, Any] | None = None,
) -> list[AddAction | RemoveAction]:
    """Write rows, and give what the log has to say of their file and of those of their partition they stand for.

    `parent` and `partition` are the folder and the values of the partition, where the rows stand for no file.
    """
    if files:
        parent, partition = os.path.dirname(files[0]["path"]), files[0]
    given = {name.removeprefix(_OF): value for name, value in (partition or {}).items() if name.startswith(_OF)}
    texts, now = _texts(given), int(time.time() * 1000)
    actions: list[AddAction | RemoveAction] = [
        RemoveAction(file["path"], changing, now, size=file["size_bytes"], partition_values=texts) for file in files
    ]
    if rows.num_rows:
        place = Place.of(table, packed=packed, folder=folder)
        actions.append(place.file(rows, parent, given, changing=changing))
    return actions


def _parent(partition: Mapping[str, Any]) -> str:
    """The folder of a partition."""
    return "/".join(f"{name}={quote(str(value), safe='')}" for name, value in partition.items())


def _texts(partition: Mapping[str, Any]) -> dict[str, str | None]:
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


def compact(folder: str) -> None:
    """Merge a table's small files."""
    _retrying(folder, lambda table: table.optimize.compact())


def vacuum(folder: str) -> None:
    """Remove files that no version within Delta's own retention needs."""
    _retrying(folder, lambda table: table.vacuum(dry_run=False, full=True))


def _is_made(transaction: Transaction, table: DeltaTable) -> bool:
    last = table.transaction_version(transaction.app_id)
    return last is not None and last >= transaction.version


def _retrying(
    folder: str, commit: Callable[[DeltaTable], object], done: Callable[[DeltaTable], bool] = lambda _: False
) -> bool:
    """Commit unless that was done; after a conflict, look again. Whether this call saw its commit succeed."""
    with opened(folder) as table:
        for attempt in range(1, ATTEMPTS + 1):
            # What the log says and what the commit is checked against must be one version of the table.
            if done(table):
                return False
            try:
                commit(table)
                return True
            except CommitFailedError as conflict:
                if attempt == ATTEMPTS:
                    raise
                told = "a commit to %s met a rival (%s); attempt %d of %d"
                logger.info(told, folder, conflict, attempt + 1, ATTEMPTS)
            # Two writers that wait equally long would meet again.
            time.sleep(_FIRST_PAUSE * 2**attempt * (0.5 + random.random()))
            table.update_incremental()
    raise AssertionError("unreachable")

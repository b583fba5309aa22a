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
from contextlib import suppress
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
from patternlake.delta_tables.parquet_columns import columns_of_file, write_file
from patternlake.delta_tables.state_reader import Condition

logger = logging.getLogger(__name__)

ATTEMPTS = 8
_FIRST_PAUSE = 0.01
_FEW_ROWS = 10_000
"""A file of no more rows stays one when some of them are changed."""
_OF = "partition."
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

    def done(table: DeltaTable) -> bool:
        last = table.transaction_version(application)
        return last is not None and last >= version

    return _retrying(folder, commit, done)


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
    later.

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
        files = pa.table(table.get_add_actions(flatten=True))
        paths = {path for where in any_of for path in chosen(files, where)["path"].to_pylist()}
        candidates = files.filter(pc.is_in(files["path"], pa.array(sorted(paths), pa.string())))
        small = (pc.sum(candidates["size_bytes"]).as_py() or 0) <= most_bytes
        if not small:
            return
        schema = pa.schema(table.schema().to_arrow())
        actions: list[AddAction | RemoveAction] = []
        changed: dict[str, list[tuple[dict[str, Any], pa.Table]]] = {}
        for file in candidates.to_pylist():
            rows = _rows(folder, file, schema)
            meant = _meant(rows, any_of, only)
            if not meant.any():
                continue
            if rows.num_rows <= _FEW_ROWS:
                actions += _in_place_of(folder, [file], _changed(rows, meant, values), table, packed)
                continue
            actions += _in_place_of(folder, [file], rows.filter(pa.array(~meant)), table, packed)
            apart = rows.filter(pa.array(meant))
            apart = _changed(apart, np.ones(apart.num_rows, np.bool_), values)
            changed.setdefault(os.path.dirname(file["path"]), []).append((file, apart))
        for parent, pieces in changed.items():
            together = pa.concat_tables([rows for _, rows in pieces])
            actions += _in_place_of(folder, [], together, table, packed, parent=parent, partition=pieces[0][0])
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
        parent = "/".join(f"{name}={quote(str(rows[name][0].as_py()), safe='')}" for name in names)
        actions = _in_place_of(folder, [], rows, table, packed, parent=parent, partition=values)
        for file in files.to_pylist():
            stored = _rows(folder, file, schema)
            gone = _meant(stored, [where], only)
            if gone.any():
                kept = stored.filter(pa.array(~gone))
                actions += _in_place_of(folder, [file], kept, table, packed)
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
    texts = {name: None if value is None else str(value) for name, value in given.items()}
    now = int(time.time() * 1000)
    actions: list[AddAction | RemoveAction] = [
        RemoveAction(file["path"], changing, now, size=file["size_bytes"], partition_values=texts) for file in files
    ]
    if rows.num_rows:
        stored = rows.select([name for name in rows.column_names if name not in given])
        path = f"{parent}/{uuid.uuid4().hex}.parquet" if parent else f"{uuid.uuid4().hex}.parquet"
        os.makedirs(f"{folder}/{parent}", exist_ok=True)
        write_file(stored, f"{folder}/{path}", packed=packed)
        told = table.metadata().configuration.get(_COUNTED_COLUMNS)
        statistics = statistics_of(stored, None if told is None else told.split(","))
        size = os.path.getsize(f"{folder}/{path}")
        actions.append(AddAction(path, size, texts, now, changing, statistics))
    return actions


def compact(folder: str) -> None:
    """Merge a table's small files."""
    _retrying(folder, lambda table: table.optimize.compact())


def vacuum(folder: str) -> None:
    """Remove files that no version within Delta's own retention needs."""
    _retrying(folder, lambda table: table.vacuum(dry_run=False, full=True))


def _retrying(
    folder: str, commit: Callable[[DeltaTable], object], done: Callable[[DeltaTable], bool] = lambda _: False
) -> bool:
    """Commit unless that was done; after a conflict, look again. Whether this call saw its commit succeed."""
    table = DeltaTable(folder)
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
            logger.info("a commit to %s met a rival (%s); attempt %d of %d", folder, conflict, attempt + 1, ATTEMPTS)
        # Two writers that wait equally long would meet again.
        time.sleep(_FIRST_PAUSE * 2**attempt * (0.5 + random.random()))
        table.update_incremental()
    raise AssertionError("unreachable")

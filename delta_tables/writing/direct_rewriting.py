"""Rows of Delta tables that are changed, deleted or replaced in the driver's process: their files are written anew."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction
from numpy.typing import NDArray

from patternlake.delta_tables.committing.direct_commits import TableFolder
from patternlake.delta_tables.committing.unlisted_files import Place, parent_folder, partition_texts
from patternlake.delta_tables.reading.file_choice import choose_files, truth
from patternlake.delta_tables.reading.file_rows import OF_PARTITION
from patternlake.delta_tables.reading.parquet_columns import columns_of_file
from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.schema.layout import Layout, should_lie_by_key
from patternlake.delta_tables.writing.direct_writer import retrying

_FEW_ROWS = 10_000
"""A file of no more rows stays one when some of them are changed."""
_GATHERED_ROWS = 100_000
"""What stays of larger ones goes into one file, of each no more rows than these."""


def update(
    given: TableFolder,
    any_of: Sequence[Sequence[Condition]],
    values: Mapping[str, Any],
    *,
    only: Callable[[pa.Table], NDArray[np.bool_]] | None,
    most_bytes: int,
    layout: Layout = Layout.PLAIN,
) -> bool:
    """Set columns of some rows, by writing the files that hold them anew.

    Rows that are changed leave a large file: what is closed would else be written again with every row that is closed
    later. What stays of several such files becomes one, as it would else lie in as many files as there were changes.

    Parameters
    ----------
    given
        The Delta table.
    any_of
        The rows: those that satisfy all conditions of one of these lists.
    values
        By name of a column that is no partition: the value that it gets.
    only
        Of rows that satisfy the conditions, with all columns: which are meant; None: all of them.
    most_bytes
        Nothing is done where the files that may hold such rows take more.
    layout
        As for `merge`.

    Returns
    -------
    bool
        Whether it was done.
    """

    def anew(table: DeltaTable, files: pa.Table) -> list[AddAction | RemoveAction]:
        schema = pa.schema(table.schema().to_arrow())
        actions: list[AddAction | RemoveAction] = []
        apart: dict[str, list[tuple[dict[str, Any], pa.Table]]] = {}
        left: dict[str, list[tuple[dict[str, Any], pa.Table]]] = {}
        for file in files.to_pylist():
            rows = _rows(given, file, schema)
            meant = _meant(rows, any_of, only)
            if not meant.any():
                continue
            if rows.num_rows <= _FEW_ROWS:
                actions += _in_place_of(given, [file], _change(rows, meant, values), table, layout)
                continue
            parent = os.path.dirname(file["path"])
            gone = rows.filter(pa.array(meant))
            gone = _change(gone, np.ones(gone.num_rows, np.bool_), values)
            apart.setdefault(parent, []).append((file, gone))
            others = rows.filter(pa.array(~meant))
            if others.num_rows <= _GATHERED_ROWS:
                left.setdefault(parent, []).append((file, others))
            else:
                actions += _in_place_of(given, [file], others, table, layout)
        for pieces in left.values():
            former, kept = zip(*pieces, strict=True)
            actions += _in_place_of(given, former, _together(kept), table, layout)
        for parent, pieces in apart.items():
            together = _together([rows for _, rows in pieces])
            actions += _in_place_of(given, [], together, table, layout, parent=parent, partition=pieces[0][0])
        return actions

    return _rewritten(given, any_of, anew, most_bytes)


def delete(
    given: TableFolder, any_of: Sequence[Sequence[Condition]], *, most_bytes: int, layout: Layout = Layout.PLAIN
) -> bool:
    """Delete some rows, by writing the files that hold them anew without them.

    Parameters are those of `update`.

    Returns
    -------
    bool
        Whether it was done.
    """

    def anew(table: DeltaTable, files: pa.Table) -> list[AddAction | RemoveAction]:
        return _without(given, files, any_of, None, table, layout)

    return _rewritten(given, any_of, anew, most_bytes)


def replace(
    given: TableFolder,
    where: Sequence[Condition],
    rows: pa.Table,
    *,
    only: Callable[[pa.Table], NDArray[np.bool_]] | None,
    most_bytes: int,
    layout: Layout = Layout.PLAIN,
) -> bool:
    """Put rows of one partition in the place of those that satisfy conditions.

    Parameters are those of `update`; `rows` has all columns of the table, and at least one row.

    Returns
    -------
    bool
        Whether it was done.
    """

    def anew(table: DeltaTable, files: pa.Table) -> list[AddAction | RemoveAction]:
        partition = {name: rows[name][0].as_py() for name in table.metadata().partition_columns}
        values = {f"{OF_PARTITION}{name}": value for name, value in partition.items()}
        actions = _in_place_of(given, [], rows, table, layout, parent=parent_folder(partition), partition=values)
        return actions + _without(given, files, [where], only, table, layout)

    return _rewritten(given, [where], anew, most_bytes)


def merge(
    given: TableFolder, partitions: Sequence[Mapping[str, Any]], *, layout: Layout, largest: int, most_bytes: int
) -> bool:
    """Merge the small files of some partitions, each partition's into one; a single one that is to lie by key, too.

    Files of neighbouring partitions that become one lie in the first of these, and hold the rows of all.

    Parameters
    ----------
    given
        The Delta table.
    partitions
        By name of a partition column: its value, or a range of values of partitions that are to be one.
    layout
        How rows lie in files.
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
        unordered = should_lie_by_key(files, layout).to_pylist()
        listed = files.to_pylist()
        schema = pa.schema(table.schema().to_arrow())
        actions: list[AddAction | RemoveAction] = []
        for values in partitions:
            places = choose_partitions(listed, values)
            mine = [listed[place] for place in places]
            small = small and sum(file["size_bytes"] for file in mine) <= most_bytes
            if not small:
                return
            if len(mine) > 1 or any(unordered[place] for place in places):
                rows = _together([_rows(given, file, schema) for file in mine])
                actions += _in_place_of(given, mine, rows, table, layout, changing=False)
        _commit(given, table, actions)

    retrying(given.folder, commit)
    return small


def choose_partitions(files: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> list[int]:
    """The places of the files of a partition, or of neighbouring ones, as `merge` takes them; in their order."""
    partitions = [partition_of(file) for file in files]
    places = [place for place, partition in enumerate(partitions) if is_among(partition, values)]
    return sorted(places, key=lambda place: [partitions[place][name] for name in values])


def is_among(partition: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Tell whether a partition is one, or one of neighbours, as `merge` takes them."""
    pairs = [(partition[name], value) for name, value in values.items()]
    return all(mine in value if isinstance(value, range) else mine == value for mine, value in pairs)


def partition_of(file: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a file's partition, by the names of its columns."""
    return {name.removeprefix(OF_PARTITION): file[name] for name in file if name.startswith(OF_PARTITION)}


def _rewritten(
    given: TableFolder,
    any_of: Sequence[Sequence[Condition]],
    anew: Callable[[DeltaTable, pa.Table], list[AddAction | RemoveAction]],
    most_bytes: int,
) -> bool:
    """Commit what is made anew of the files that may hold some rows, unless they take too much; whether it was done."""
    small = True

    def commit(table: DeltaTable) -> None:
        nonlocal small
        files = _holding(table, any_of)
        small = (pc.sum(files["size_bytes"]).as_py() or 0) <= most_bytes
        if small:
            _commit(given, table, anew(table, files))

    retrying(given.folder, commit)
    return small


def _commit(given: TableFolder, table: DeltaTable, actions: list[AddAction | RemoveAction]) -> None:
    if actions:
        schema = pa.schema(table.schema().to_arrow())
        partitions, hooks = table.metadata().partition_columns, given.after_commit(table.version())
        table.create_write_transaction(actions, "append", schema, partitions, post_commithook_properties=hooks)


def _holding(table: DeltaTable, any_of: Sequence[Sequence[Condition]]) -> pa.Table:
    """The files that may hold rows which satisfy all conditions of one of some lists."""
    files = pa.table(table.get_add_actions(flatten=True))
    paths = {path for where in any_of for path in choose_files(files, where)["path"].to_pylist()}
    return files.filter(pc.is_in(files["path"], pa.array(sorted(paths), pa.string())))


def _rows(given: TableFolder, file: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """All rows of a file, with all columns of the table."""
    with given.open(file["path"]) as source:
        stored = [name for name in schema.names if f"{OF_PARTITION}{name}" not in file]
        columns, _ = columns_of_file(source, stored, schema)
        count = len(next(iter(columns.values())))
        for name in schema.names:
            if name not in columns:
                value = pa.scalar(file[f"{OF_PARTITION}{name}"], schema.field(name).type)
                columns[name] = pa.chunked_array([pa.repeat(value, count)])
        return pa.table({name: columns[name] for name in schema.names})


def _together(pieces: Sequence[pa.Table]) -> pa.Table:
    """Rows of several files; of a text that some have as numbers of a dictionary, and others not, as what it is."""
    if all(piece.schema.equals(pieces[0].schema) for piece in pieces):
        return pa.concat_tables(pieces)
    plain = pa.schema(
        [
            field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
            for field in pieces[0].schema
        ]
    )
    return pa.concat_tables([piece.cast(plain) for piece in pieces])


def _without(
    given: TableFolder,
    files: pa.Table,
    any_of: Sequence[Sequence[Condition]],
    only: Callable[[pa.Table], NDArray[np.bool_]] | None,
    table: DeltaTable,
    layout: Layout,
) -> list[AddAction | RemoveAction]:
    """Write files anew without the rows that are meant, those that hold some of them."""
    schema = pa.schema(table.schema().to_arrow())
    actions: list[AddAction | RemoveAction] = []
    for file in files.to_pylist():
        rows = _rows(given, file, schema)
        gone = _meant(rows, any_of, only)
        if gone.any():
            actions += _in_place_of(given, [file], rows.filter(pa.array(~gone)), table, layout)
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


def _change(rows: pa.Table, meant: NDArray[np.bool_], values: Mapping[str, Any]) -> pa.Table:
    for name, value in values.items():
        place = rows.column_names.index(name)
        column = rows[name].combine_chunks()
        rows = rows.set_column(place, name, pc.if_else(pa.array(meant), pa.scalar(value, column.type), column))
    return rows


def _in_place_of(
    given: TableFolder,
    files: Sequence[Mapping[str, Any]],
    rows: pa.Table,
    table: DeltaTable,
    layout: Layout,
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
    values, now = partition_of(partition or {}), int(time.time() * 1000)
    actions: list[AddAction | RemoveAction] = [
        RemoveAction(
            file["path"],
            changing,
            now,
            size=file["size_bytes"],
            partition_values=partition_texts(partition_of(file)),
        )
        for file in files
    ]
    if rows.num_rows:
        place = Place.of(table, layout=layout, folder=given.folder)
        actions.append(place.file(rows, parent, values, changing=changing))
    return actions

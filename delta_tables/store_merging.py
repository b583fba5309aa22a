"""Small files of tables in an object store, merged without Spark, so that who comes new has few objects to read.

delta-rs commits to the copy of a table's log on the local disk (see `log_copies`), which takes no request. Then the new
files are put, and at last the commit, on condition that nobody has put one of its number. Where somebody has, nothing
has happened but for files that no log names. Behind it a checkpoint is put, so that nobody reads the commits before.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, PostCommitHookProperties
from deltalake.transaction import AddAction, RemoveAction

from patternlake.delta_tables import store_tables
from patternlake.delta_tables.direct_rewriting import choose_partitions, partition_of
from patternlake.delta_tables.log_copies import LAST_CHECKPOINT
from patternlake.delta_tables.state_reader import ListedFiles
from patternlake.delta_tables.table_logs import look_anew
from patternlake.delta_tables.unlisted_files import Place, parent_folder, partition_texts

if TYPE_CHECKING:
    from patternlake.delta_tables.database import Database
    from patternlake.delta_tables.direct_reader import DirectReader
    from patternlake.delta_tables.table import Table

logger = logging.getLogger(__name__)

MOST_COMMITS = 8
"""So many commits behind the last checkpoint are worth a new one: each is a request of whoever comes new."""


def merge(
    database: Database, table: Table, partitions: Sequence[Mapping[str, Any]], *, largest: int, most_bytes: int
) -> bool:
    """Merge the small files of some partitions, each partition's into one, and put a checkpoint.

    Only where nobody's commits can be lost, as within `held_lease`.

    Parameters
    ----------
    database
        In an object store that is read directly.
    table
        The table.
    partitions
        As of `direct_rewriting.merge`.
    largest
        Bytes of a file above which it is no small one.
    most_bytes
        Nothing is done where a partition's small files take more.

    Returns
    -------
    bool
        Whether it was done, or a rival's commit came first.
    """
    reader = database.direct
    assert reader is not None
    with reader.copied_log(table.name) as (folder, opened):
        files = pa.table(opened.get_add_actions(flatten=True))
        files = files.filter(pc.less(files["size_bytes"], largest)).sort_by("modification_time")
        listed = files.to_pylist()
        crowded = [files.take(pa.array(choose_partitions(listed, values), pa.int64())) for values in partitions]
        if any((pc.sum(some["size_bytes"]).as_py() or 0) > most_bytes for some in crowded):
            return False
        place = Place.of(opened, layout=table.layout, folder=folder, held=False)
        actions: list[AddAction | RemoveAction] = []
        for some in crowded:
            if some.num_rows > 1:
                actions += _in_one(reader, table, some, place)
        if actions and _commit(database, table, folder, opened, actions):
            _put_checkpoint(database, table, folder, opened)
    look_anew(table.name)
    return True


def put_checkpoint(database: Database, table: Table) -> None:
    """Put a checkpoint of a table in an object store that is read directly."""
    reader = database.direct
    assert reader is not None
    with reader.copied_log(table.name) as (folder, opened):
        _put_checkpoint(database, table, folder, opened)
    look_anew(table.name)


def _in_one(reader: DirectReader, table: Table, files: pa.Table, place: Place) -> list[AddAction | RemoveAction]:
    """Write the rows of some files as one, beside the copy of the log; what the log has to say of them.

    It lies in the partition of the first of them.
    """
    options = tuple(sorted(reader.place[1].items()))
    listed = ListedFiles(reader.place[0], options, table.name, place.schema, files)
    rows = reader.rows_of(listed, place.schema.names)
    named = [(file, partition_of(file)) for file in files.to_pylist()]
    values = named[0][1]
    merged = place.file(rows, parent_folder(values), values, changing=False)
    gone = [
        RemoveAction(
            file["path"],
            False,
            merged.modification_time,
            size=file["size_bytes"],
            partition_values=partition_texts(mine),
        )
        for file, mine in named
    ]
    return [*gone, merged]


def _commit(
    database: Database, table: Table, folder: str, opened: DeltaTable, actions: Sequence[AddAction | RemoveAction]
) -> bool:
    """Commit to the copy of a log, and to the log itself; whether nobody else was first."""
    opened.create_write_transaction(
        list(actions),
        "append",
        pa.schema(opened.schema().to_arrow()),
        opened.metadata().partition_columns,
        post_commithook_properties=PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
    )
    opened.update_incremental()
    for action in actions:
        if isinstance(action, AddAction):
            _put(database, table, folder, action.path)
    name = f"{opened.version():020}.json"
    with open(f"{folder}/_delta_log/{name}", encoding="utf-8") as commit:
        made = store_tables.put_commit(database, table, name, commit.read().splitlines())
    if not made:
        logger.info("files of %s are merged another time: a rival's commit came first", table.log)
    return made


def _put_checkpoint(database: Database, table: Table, folder: str, opened: DeltaTable) -> None:
    opened.create_checkpoint()
    log = "_delta_log"
    begin = f"{opened.version():020}.checkpoint."
    for name in sorted(os.listdir(f"{folder}/{log}")):
        if name.startswith(begin):
            _put(database, table, folder, f"{log}/{name}")
    # Last: it tells that the checkpoint is there.
    _put(database, table, folder, f"{log}/{LAST_CHECKPOINT}")


def _put(database: Database, table: Table, folder: str, path: str) -> None:
    with open(f"{folder}/{path}", "rb") as file:
        store_tables.put_object(database, table, path, file.read())

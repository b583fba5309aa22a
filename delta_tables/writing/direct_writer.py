"""Commits to Delta tables in the driver's process, through delta-rs: no Spark job, no plan.

A commit is a new file of the table's log, and whoever makes it must not replace one that is there. delta-rs links the
file into its place, which fails where there is one. Spark's store for local folders looks whether there is one and then
renames, which on a local disk replaces what came in between; a lock keeps the threads of one JVM apart, and nobody
else. So a table is written this way only where all its commits are, those with `Table.direct`, or while `CommitLock`
keeps Spark's commits away. In an object store this is about a copy of the log, see `store_commits`.
"""

from __future__ import annotations

import json
import logging
import os
import random
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from urllib.parse import unquote

import pyarrow as pa
from deltalake import ColumnProperties, CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction

from patternlake.delta_tables.committing.direct_commits import TableFolder
from patternlake.delta_tables.committing.unlisted_files import Place, by_partition
from patternlake.delta_tables.reading.open_tables import log_of, open_table
from patternlake.delta_tables.reading.parquet_columns import names_of_floats
from patternlake.delta_tables.reading.written_rows import hold
from patternlake.delta_tables.schema.layout import Layout
from patternlake.udfs.errors import StateError
from patternlake.udfs.record_batches import in_schema

logger = logging.getLogger(__name__)

ATTEMPTS = 8
_FIRST_PAUSE = 0.01
_FEW_ROWS = 10_000
"""Of more, the file is written here, which saves more than delta-rs has to read anew of the log for it."""


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


def append(
    given: TableFolder, rows: pa.Table, *, application: str, version: int, layout: Layout = Layout.PLAIN
) -> bool:
    """Append rows once, however often it is called with this application and version.

    Parameters
    ----------
    given
        The Delta table.
    rows
        Columns of the table; NULL stands in those that are not there.
    application, version
        As Delta's ``txnAppId`` and ``txnVersion``.
    layout
        How more than a few rows lie in their files.

    Returns
    -------
    bool
        Whether this call made the commit. Where it is False there may be a commit of a rival's, or of this call's own
        whose end could not be told; who must know reads back.
    """
    transaction = Transaction(application, version)
    if rows.num_rows > _FEW_ROWS:
        return _add(given, _Written(given.folder, rows, layout), transaction)

    def commit(table: DeltaTable) -> None:
        properties = CommitProperties(app_transactions=[transaction])
        hooks = given.after_commit(table.version())
        written = _with_all_columns(rows, table)
        write_deltalake(
            table,
            written,
            mode="append",
            commit_properties=properties,
            post_commithook_properties=hooks,
            writer_properties=_properties(written.schema),
        )
        _hold(given.folder, table.version(), transaction, written)

    return retrying(given.folder, commit, partial(_is_made, transaction))


def _with_all_columns(rows: pa.Table, table: DeltaTable) -> pa.Table:
    """Rows in the schema of a table, NULL in columns that others may have added since they were made."""
    schema = pa.schema(table.schema().to_arrow())
    unknown = [name for name in rows.column_names if name not in schema.names]
    if unknown:
        raise StateError(f"rows have the unknown columns {unknown}; the table has {schema.names}")
    return in_schema(rows, schema)


def _hold(folder: str, version: int, transaction: Transaction, rows: pa.Table) -> None:
    """Keep the rows of a commit at hand, where they are one file."""
    # delta-rs does not say what it has called the file; its log does.
    with open(f"{log_of(folder)}{version:020}.json", encoding="utf-8") as commit:
        actions = [json.loads(line) for line in commit]
    made = [action["txn"] for action in actions if "txn" in action]
    paths = [action["add"]["path"] for action in actions if "add" in action]
    if len(paths) == 1 and [(each["appId"], each["version"]) for each in made] == [
        (transaction.app_id, transaction.version)
    ]:
        hold(f"{folder}/{unquote(paths[0])}", rows)


def is_appended(given: TableFolder, *, application: str, version: int) -> bool:
    """Whether an `append` or `add` of this application and version, or of a later one, has been made."""
    with open_table(given.folder) as table:
        return _is_made(Transaction(application, version), table)


def add(given: TableFolder, actions: Sequence[AddAction], *, application: str, version: int) -> bool:
    """Append the rows of files that are written, once; parameters and result are those of `append`."""
    return _add(given, lambda _: actions, Transaction(application, version))


class _Written:
    """Writes rows as files of a table, and gives what its log has to say of them, the same ones each time."""

    def __init__(self, folder: str, rows: pa.Table, layout: Layout) -> None:
        self._folder, self._rows, self._layout = folder, rows, layout
        self._actions: list[AddAction] = []

    def __call__(self, table: DeltaTable) -> list[AddAction]:
        if not self._actions:
            place = Place.of(table, layout=self._layout, folder=self._folder)
            rows = _with_all_columns(self._rows, table)
            self._actions = place.write(by_partition(rows, place.partitions))
        return self._actions


def _add(given: TableFolder, actions: Callable[[DeltaTable], Sequence[AddAction]], transaction: Transaction) -> bool:
    def commit(table: DeltaTable) -> None:
        table.create_write_transaction(
            list(actions(table)),
            "append",
            pa.schema(table.schema().to_arrow()),
            table.metadata().partition_columns,
            commit_properties=CommitProperties(app_transactions=[transaction]),
            post_commithook_properties=given.after_commit(table.version()),
        )

    return retrying(given.folder, commit, partial(_is_made, transaction))


def compact(folder: str) -> None:
    """Merge a table's small files."""

    def merge(table: DeltaTable) -> None:
        table.optimize.compact(writer_properties=_properties(pa.schema(table.schema().to_arrow())))

    retrying(folder, merge)


def _properties(schema: pa.Schema) -> WriterProperties:
    """How delta-rs writes rows: without bounds of floats, compressed as the files that are written here."""
    plain = ColumnProperties(statistics_enabled="NONE")
    return WriterProperties(compression="SNAPPY", column_properties=dict.fromkeys(names_of_floats(schema), plain))


def vacuum(folder: str) -> None:
    """Remove files that no version within Delta's own retention needs."""
    retrying(folder, lambda table: table.vacuum(dry_run=False, full=True))


def _is_made(transaction: Transaction, table: DeltaTable) -> bool:
    last = table.transaction_version(transaction.app_id)
    return last is not None and last >= transaction.version


def retrying(
    folder: str, commit: Callable[[DeltaTable], object], done: Callable[[DeltaTable], bool] = lambda _: False
) -> bool:
    """Commit unless that was done; after a conflict, look again.

    Parameters
    ----------
    folder
        Of the Delta table.
    commit
        Commits to the version of the table that it is given.
    done
        Whether that version has the commit already.

    Returns
    -------
    bool
        Whether this call saw its commit succeed.

    Raises
    ------
    CommitFailedError
        Rivals won every time.
    """
    with open_table(folder) as table:
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

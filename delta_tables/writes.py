"""The only module that writes to Delta: append, replace, update, delete.

Each is idempotent, and each is tried again when Delta says that a concurrent commit got in the way: the operation
reads the table anew, so that a retry works on what is there now. Where a table has a `CommitLock`, few rows are written
without Spark, and what Spark writes holds the lock meanwhile.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from delta.tables import DeltaTable

from patternlake.delta_tables import direct_writer
from patternlake.delta_tables.arrow_rows import FewRows, arrow_rows
from patternlake.delta_tables.row_files import RowPortions, WrittenByTasks
from patternlake.delta_tables.sessions import temporary_settings
from patternlake.delta_tables.table_logs import look_anew

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from patternlake.delta_tables.commit_lock import CommitLock

logger = logging.getLogger(__name__)

ATTEMPTS = 8
_FIRST_PAUSE = 0.1
_LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
# Measured: the default of 10,000 tasks lists an empty folder in 21 s on two cores.
_MOST_LISTING_TASKS = 64
_PATIENCE = 30.0
"""Seconds that a commit of files that are written waits for Spark's commits to end."""
_FORMAT_CHECK = "spark.databricks.delta.formatCheck.enabled"
"""Delta refuses to let files under a table be read as plain ones."""
_LAST_COMMIT = "spark.databricks.delta.lastCommitVersionInSession"
# All but ConcurrentTransactionException, which says that a rival did this very write. They share no base of their own.
_SOLVABLE = (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)


def append(
    table: str,
    rows: DataFrame | FewRows | RowPortions | WrittenByTasks,
    *,
    application: str,
    version: int,
    folder: str | None = None,
    lock: CommitLock | None = None,
    settings: Mapping[str, str] | None = None,
    only_directly: bool = False,
) -> bool | None:
    """Append rows once, however often it is called with this application and version.

    To Delta a repeated call is a success that writes nothing, whoever made the first one.

    Parameters
    ----------
    table
        Quoted name of the Delta table; columns are matched by name.
    rows
        All columns of the table. What is written as files before the commit is for a table that has a lock.
    application, version
        Delta's ``txnAppId`` and ``txnVersion``; versions of an application only grow.
    folder
        Folder of a table to which no commit is made through Spark, for the few rows that it takes at once; see
        `Database.direct_folder`.
    lock
        Of the table, where it has one.
    settings
        Of Spark, under which it writes the files.
    only_directly
        Whether to leave few rows that cannot be written without Spark unwritten.

    Returns
    -------
    bool or None
        Whether this call made a commit. Where Delta does not tell its session so, or nothing was written, it is False,
        and who must know reads back. None: the rows were left unwritten.

    Raises
    ------
    delta.exceptions.ConcurrentTransactionException
        A rival committed the same application while this call was writing.
    """
    if isinstance(rows, RowPortions | WrittenByTasks):
        assert lock is not None
        return _append_files(table, rows, application, version, lock)
    if folder is not None:
        few = rows.rows if isinstance(rows, FewRows) else arrow_rows(rows)
        return direct_writer.append(folder, few, application=application, version=version)
    if isinstance(rows, FewRows):
        if not rows.rows.num_rows:
            return False  # as where Spark or tasks write: no commit of nothing
        if lock is not None:
            with lock.alone() as held:
                if held:
                    return direct_writer.append(
                        lock.folder, rows.rows, application=application, version=version, layout=rows.layout
                    )
        if only_directly:
            return None
        rows = rows.frame()
    frame, session = rows, rows.sparkSession

    def write() -> None:
        session.conf.unset(_LAST_COMMIT)
        frame.writeTo(table).option("txnAppId", application).option("txnVersion", str(version)).append()

    with temporary_settings(session, settings or {}):
        _retrying(f"append to {table}", write, lock)
    return session.conf.get(_LAST_COMMIT, None) is not None


def _append_files(
    table: str, rows: RowPortions | WrittenByTasks, application: str, version: int, lock: CommitLock
) -> bool:
    """Write files of the rows, and commit them without Spark; or let Spark copy them where it holds the lock long."""
    folder = lock.folder
    if direct_writer.is_appended(folder, application=application, version=version):
        return False
    actions = rows.files(folder)
    if not actions:
        return False
    with lock.alone(patience=_PATIENCE) as held:
        if held:
            return direct_writer.add(folder, actions, application=application, version=version)
    logger.info("append to %s: another commit takes long; Spark copies the rows of %d files", table, len(actions))
    session = rows.spark
    paths = [f"{folder}/{action.path}" for action in actions]
    with temporary_settings(session, {_FORMAT_CHECK: "false"}):
        reader = session.read.schema(session.table(table).schema).option("basePath", folder)
        return bool(append(table, reader.parquet(*paths), application=application, version=version, lock=lock))


def replace(
    table: str,
    rows: DataFrame | FewRows,
    condition: str,
    *,
    lock: CommitLock | None = None,
    directly: Callable[[str], bool] | None = None,
) -> None:
    """Replace the rows that satisfy a condition by these, which must satisfy it, in one commit.

    Parameters
    ----------
    table
        Quoted name of the Delta table.
    rows
        All columns of the table.
    condition
        SQL over the table's columns, made of numbers and quoted names only.
    lock, directly
        As for `update`.
    """
    if _directly(lock, directly):
        return
    frame = rows.frame() if isinstance(rows, FewRows) else rows

    def write() -> None:
        frame.write.format("delta").mode("overwrite").option("replaceWhere", condition).saveAsTable(table)

    _retrying(f"replace in {table}", write, lock)


def update(
    spark: SparkSession,
    table: str,
    condition: Column,
    values: Mapping[str, Column],
    *,
    lock: CommitLock | None = None,
    directly: Callable[[str], bool] | None = None,
) -> None:
    """Set columns of the rows that satisfy a condition.

    Parameters
    ----------
    spark
        The session.
    table
        Quoted name of the Delta table.
    condition, values
        The rows, and the columns to set.
    lock
        Of the table, where it has one.
    directly
        Does the same without Spark, given the table's folder; tells whether it has.
    """
    if _directly(lock, directly):
        return
    _retrying(f"update of {table}", lambda: DeltaTable.forName(spark, table).update(condition, dict(values)), lock)


def update_matching(
    spark: SparkSession,
    table: str,
    rows: Callable[[], DataFrame],
    condition: Column,
    values: Mapping[str, Column],
    *,
    lock: CommitLock | None = None,
    directly: Callable[[str], bool] | None = None,
) -> None:
    """Set columns of the rows that belong to one of some given rows.

    Parameters
    ----------
    spark
        The session.
    table
        Quoted name of the Delta table, ``t`` in the condition.
    rows
        Makes the given rows, ``k`` in the condition; no two of them may belong to one row of the table.
    condition
        Of the rows of both.
    values
        The columns to set.
    lock, directly
        As for `update`.
    """
    if _directly(lock, directly):
        return

    def write() -> None:
        merge = DeltaTable.forName(spark, table).alias("t").merge(rows().alias("k"), condition)
        merge.whenMatchedUpdate(set=dict(values)).execute()

    _retrying(f"update of {table}", write, lock)


def delete(
    spark: SparkSession,
    table: str,
    condition: Column,
    *,
    lock: CommitLock | None = None,
    directly: Callable[[str], bool] | None = None,
) -> None:
    """Delete the rows that satisfy a condition; the lock, and what does the same without Spark, as for `update`."""
    if _directly(lock, directly):
        return
    _retrying(f"delete from {table}", lambda: DeltaTable.forName(spark, table).delete(condition), lock)


def add_columns(spark: SparkSession, table: str, columns: Sequence[str], *, lock: CommitLock | None = None) -> None:
    """Add columns to a table, each as SQL defines it; the lock as for `update`."""
    text = f"ALTER TABLE {table} ADD COLUMNS ({', '.join(columns)})"
    _retrying(f"new columns of {table}", lambda: spark.sql(text), lock)


def _directly(lock: CommitLock | None, write: Callable[[str], bool] | None) -> bool:
    """Write without Spark where the table's lock is to be had for that; whether it is done."""
    if lock is None or write is None:
        return False
    with lock.alone() as held:
        return held and write(lock.folder)


def _retrying(what: str, write: Callable[[], object], lock: CommitLock | None = None) -> None:
    """Run a write; on a conflict that another try can solve, run it again after a pause that doubles."""
    pause = _FIRST_PAUSE
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with nullcontext() if lock is None else lock.together():
                write()
            return
        except _SOLVABLE as conflict:
            if attempt == ATTEMPTS:
                raise
            logger.info("%s met %s; attempt %d of %d follows", what, type(conflict).__name__, attempt + 1, ATTEMPTS)
        finally:
            look_anew()
        # Two writers that wait equally long would meet again.
        time.sleep(pause * (0.5 + random.random()))
        pause *= 2


def tidy_directly(folder: str, *, merging: bool, removing: bool) -> None:
    """Merge a table's small files, and remove those that no version needs, where all its commits are made directly."""
    if merging:
        direct_writer.compact(folder)
    if removing:
        direct_writer.vacuum(folder)


def compact(
    spark: SparkSession,
    table: str,
    partitions: str | None,
    settings: Mapping[str, str],
    *,
    lock: CommitLock | None = None,
    directly: Callable[[str], bool] | None = None,
) -> None:
    """Merge a table's small files under some settings, in all partitions or those that a SQL condition names.

    The lock, and what does the same without Spark, are as for `update`.
    """
    if _directly(lock, directly):
        return
    optimize = DeltaTable.forName(spark, table).optimize()
    chosen = optimize if partitions is None else optimize.where(partitions)
    with temporary_settings(spark, settings):
        _retrying(f"compaction of {table}", chosen.executeCompaction, lock)


def merge_directly(lock: CommitLock | None, merge: Callable[[str], bool]) -> bool:
    """Merge files of the table in a folder without Spark, where its lock is to be had for that; whether it is done."""
    return _directly(lock, merge)


def vacuum(spark: SparkSession, table: str, *, lock: CommitLock | None = None) -> None:
    """Remove files that no version within Delta's own retention needs."""
    before = str(spark.conf.get(_LISTING_TASKS, str(_MOST_LISTING_TASKS)))
    spark.conf.set(_LISTING_TASKS, str(min(int(before), _MOST_LISTING_TASKS)))
    try:
        with _console_of_scala_closed(spark):
            _retrying(f"vacuum of {table}", DeltaTable.forName(spark, table).vacuum, lock)
    finally:
        spark.conf.set(_LISTING_TASKS, before)


@contextmanager
def _console_of_scala_closed(spark: SparkSession) -> Iterator[None]:
    """Keep what Scala code of this thread prints off standard output: Delta's vacuum prints what it deleted."""
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:  # a Connect session: what is printed is printed where the server is
        yield
        return
    # Each thread of the JVM has an output of its own, and py4j gives each thread of Python one thread of the JVM.
    console = getattr(getattr(jvm.scala, "Console$"), "MODULE$")
    before = console.out()
    console.setOutDirect(jvm.java.io.PrintStream(jvm.java.io.OutputStream.nullOutputStream()))
    try:
        yield
    finally:
        console.setOutDirect(before)

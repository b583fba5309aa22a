"""The only module that writes to Delta: append, replace, update, delete.

Each is idempotent, and each is tried again when Delta says that a concurrent commit got in the way: the operation
reads the table anew, so that a retry works on what is there now. Where a table has `DirectCommits`, rows that the
driver holds, and those that tasks make, are written without Spark.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
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

from patternlake.delta_tables.committing.direct_commits import DirectCommits, TableFolder
from patternlake.delta_tables.committing.sessions import temporary_settings
from patternlake.delta_tables.committing.unlisted_files import Place
from patternlake.delta_tables.reading.table_logs import look_anew
from patternlake.delta_tables.writing import direct_writer
from patternlake.delta_tables.writing.arrow_rows import FewRows
from patternlake.delta_tables.writing.row_files import RowPortions, WrittenByTasks

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


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
    commits: DirectCommits | None = None,
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
        All columns of the table. What is written as files before the commit is for a table with `commits`.
    application, version
        Delta's ``txnAppId`` and ``txnVersion``; versions of an application only grow.
    commits
        How commits to the table are made without Spark, if they may be.
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
        assert commits is not None
        return _append_files(table, rows, application, version, commits)
    if isinstance(rows, FewRows):
        if not rows.rows.num_rows:
            return False  # as where Spark or tasks write: no commit of nothing
        if commits is not None:
            append_few = partial(
                direct_writer.append, rows=rows.rows, application=application, version=version, layout=rows.layout
            )
            made = commits.commit(append_few)
            if made is not None:
                return made
        if only_directly:
            return None
        rows = rows.frame()
    frame, session = rows, rows.sparkSession

    def write() -> None:
        session.conf.unset(_LAST_COMMIT)
        frame.writeTo(table).option("txnAppId", application).option("txnVersion", str(version)).append()

    with temporary_settings(session, settings or {}):
        _retrying(f"append to {table}", write, commits)
    return session.conf.get(_LAST_COMMIT, None) is not None


def _append_files(
    table: str, rows: RowPortions | WrittenByTasks, application: str, version: int, commits: DirectCommits
) -> bool:
    """Write files of the rows, and commit them without Spark; or let Spark copy them where others commit for long."""

    def look(given: TableFolder) -> Place | None:
        there = direct_writer.is_appended(given, application=application, version=version)
        return None if there else given.place(rows.layout)

    place = commits.look(look)
    actions = [] if place is None else rows.files(place)
    if place is None or not actions:
        return False

    def add(given: TableFolder) -> bool:
        return direct_writer.add(given, actions, application=application, version=version)

    made = commits.commit(add, _PATIENCE)
    if made is not None:
        return made
    logger.info("append to %s: another commit takes long; Spark copies the rows of %d files", table, len(actions))
    session = rows.spark
    paths = [f"{place.folder}/{action.path}" for action in actions]
    with temporary_settings(session, {_FORMAT_CHECK: "false"}):
        reader = session.read.schema(session.table(table).schema).option("basePath", place.folder)
        return bool(append(table, reader.parquet(*paths), application=application, version=version, commits=commits))


def replace(
    table: str,
    rows: DataFrame | FewRows,
    condition: str,
    *,
    commits: DirectCommits | None = None,
    directly: Callable[[TableFolder], bool] | None = None,
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
    commits, directly
        As for `update`.
    """
    if _directly(commits, directly):
        return
    frame = rows.frame() if isinstance(rows, FewRows) else rows

    def write() -> None:
        frame.write.format("delta").mode("overwrite").option("replaceWhere", condition).saveAsTable(table)

    _retrying(f"replace in {table}", write, commits)


def update(
    spark: SparkSession,
    table: str,
    condition: Column,
    values: Mapping[str, Column],
    *,
    commits: DirectCommits | None = None,
    directly: Callable[[TableFolder], bool] | None = None,
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
    commits
        As for `append`.
    directly
        Does the same without Spark, given the table; tells whether it has.
    """
    if _directly(commits, directly):
        return
    _retrying(f"update of {table}", lambda: DeltaTable.forName(spark, table).update(condition, dict(values)), commits)


def update_matching(
    spark: SparkSession,
    table: str,
    rows: Callable[[], DataFrame],
    condition: Column,
    values: Mapping[str, Column],
    *,
    commits: DirectCommits | None = None,
    directly: Callable[[TableFolder], bool] | None = None,
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
    commits, directly
        As for `update`.
    """
    if _directly(commits, directly):
        return

    def write() -> None:
        merge = DeltaTable.forName(spark, table).alias("t").merge(rows().alias("k"), condition)
        merge.whenMatchedUpdate(set=dict(values)).execute()

    _retrying(f"update of {table}", write, commits)


def delete(
    spark: SparkSession,
    table: str,
    condition: Column,
    *,
    commits: DirectCommits | None = None,
    directly: Callable[[TableFolder], bool] | None = None,
) -> None:
    """Delete the rows that satisfy a condition; the last parameters as for `update`."""
    if _directly(commits, directly):
        return
    _retrying(f"delete from {table}", lambda: DeltaTable.forName(spark, table).delete(condition), commits)


def add_columns(
    spark: SparkSession, table: str, columns: Sequence[str], *, commits: DirectCommits | None = None
) -> None:
    """Add columns to a table, each as SQL defines it."""
    text = f"ALTER TABLE {table} ADD COLUMNS ({', '.join(columns)})"
    _retrying(f"new columns of {table}", lambda: spark.sql(text), commits)


def _directly(commits: DirectCommits | None, write: Callable[[TableFolder], bool] | None) -> bool:
    """Write without Spark where that may be; whether it is done."""
    return commits is not None and write is not None and bool(commits.commit(write))


def _retrying(what: str, write: Callable[[], object], commits: DirectCommits | None = None) -> None:
    """Run a write; on a conflict that another try can solve, run it again after a pause that doubles."""
    pause = _FIRST_PAUSE
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with nullcontext() if commits is None else commits.through_spark():
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
    commits: DirectCommits | None = None,
    directly: Callable[[TableFolder], bool] | None = None,
) -> None:
    """Merge a table's small files under some settings, in all partitions or those that a SQL condition names.

    The last parameters are as for `update`.
    """
    if _directly(commits, directly):
        return
    optimize = DeltaTable.forName(spark, table).optimize()
    chosen = optimize if partitions is None else optimize.where(partitions)
    with temporary_settings(spark, settings):
        _retrying(f"compaction of {table}", chosen.executeCompaction, commits)


def vacuum(spark: SparkSession, table: str, *, commits: DirectCommits | None = None) -> None:
    """Remove files that no version within Delta's own retention needs."""
    before = str(spark.conf.get(_LISTING_TASKS, str(_MOST_LISTING_TASKS)))
    spark.conf.set(_LISTING_TASKS, str(min(int(before), _MOST_LISTING_TASKS)))
    try:
        with _console_of_scala_closed(spark):
            _retrying(f"vacuum of {table}", DeltaTable.forName(spark, table).vacuum, commits)
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

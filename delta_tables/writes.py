"""The only module that writes to Delta: append, replace, update, delete.

Each is idempotent, and each is tried again when Delta says that a concurrent commit got in the way: the operation
reads the table anew, so that a retry works on what is there now.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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
from patternlake.delta_tables.arrow_rows import arrow_rows
from patternlake.delta_tables.sessions import temporary_settings

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

logger = logging.getLogger(__name__)

ATTEMPTS = 8
_FIRST_PAUSE = 0.1
_LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
# Measured: the default of 10,000 tasks lists an empty folder in 21 s on two cores.
_MOST_LISTING_TASKS = 64
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


def append(table: str, rows: DataFrame, *, application: str, version: int, folder: str | None = None) -> bool:
    """Append rows once, however often it is called with this application and version.

    To Delta a repeated call is a success that writes nothing, whoever made the first one.

    Parameters
    ----------
    table
        Quoted name of the Delta table; columns are matched by name.
    rows
        All columns of the table.
    application, version
        Delta's ``txnAppId`` and ``txnVersion``; versions of an application only grow.
    folder
        Folder of a table to which no commit is made through Spark, for the few rows that it takes at once; see
        `Database.direct_folder`.

    Returns
    -------
    bool
        Whether this call made a commit. Where Delta does not tell its session so, or nothing was written, it is False,
        and who must know reads back.

    Raises
    ------
    delta.exceptions.ConcurrentTransactionException
        A rival committed the same application while this call was writing.
    """
    if folder is not None:
        return direct_writer.append(folder, arrow_rows(rows), application=application, version=version)
    settings = rows.sparkSession.conf

    def write() -> None:
        settings.unset(_LAST_COMMIT)
        rows.writeTo(table).option("txnAppId", application).option("txnVersion", str(version)).append()

    _retrying(f"append to {table}", write)
    return settings.get(_LAST_COMMIT, None) is not None


def replace(table: str, rows: DataFrame, condition: str) -> None:
    """Replace the rows that satisfy a condition by these, which must satisfy it, in one commit.

    Parameters
    ----------
    table
        Quoted name of the Delta table.
    rows
        All columns of the table.
    condition
        SQL over the table's columns, made of numbers and quoted names only.
    """

    def write() -> None:
        rows.write.format("delta").mode("overwrite").option("replaceWhere", condition).saveAsTable(table)

    _retrying(f"replace in {table}", write)


def update(spark: SparkSession, table: str, condition: Column, values: Mapping[str, Column]) -> None:
    """Set columns of the rows that satisfy a condition."""
    _retrying(f"update of {table}", lambda: DeltaTable.forName(spark, table).update(condition, dict(values)))


def update_matching(
    spark: SparkSession, table: str, rows: DataFrame, condition: str, values: Mapping[str, Column]
) -> None:
    """Set columns of the rows that belong to one of some given rows.

    Parameters
    ----------
    spark
        The session.
    table
        Quoted name of the Delta table, ``t`` in the condition.
    rows
        The given rows, ``k`` in the condition; no two of them may belong to one row of the table.
    condition
        SQL text.
    values
        The columns to set.
    """

    def write() -> None:
        merge = DeltaTable.forName(spark, table).alias("t").merge(rows.alias("k"), condition)
        merge.whenMatchedUpdate(set=dict(values)).execute()

    _retrying(f"update of {table}", write)


def delete(spark: SparkSession, table: str, condition: Column) -> None:
    """Delete the rows that satisfy a condition."""
    _retrying(f"delete from {table}", lambda: DeltaTable.forName(spark, table).delete(condition))


def _retrying(what: str, write: Callable[[], object]) -> None:
    """Run a write; on a conflict that another try can solve, run it again after a pause that doubles."""
    pause = _FIRST_PAUSE
    for attempt in range(1, ATTEMPTS + 1):
        try:
            write()
            return
        except _SOLVABLE as conflict:
            if attempt == ATTEMPTS:
                raise
            logger.info("%s met %s; attempt %d of %d follows", what, type(conflict).__name__, attempt + 1, ATTEMPTS)
        # Two writers that wait equally long would meet again.
        time.sleep(pause * (0.5 + random.random()))
        pause *= 2


def tidy_directly(folder: str, *, merging: bool, removing: bool) -> None:
    """Merge a table's small files, and remove those that no version needs, where all its commits are made directly."""
    if merging:
        direct_writer.compact(folder)
    if removing:
        direct_writer.vacuum(folder)


def compact(spark: SparkSession, table: str, partitions: str | None, settings: Mapping[str, str]) -> None:
    """Merge a table's small files under some settings, in all partitions or those that a SQL condition names."""
    optimize = DeltaTable.forName(spark, table).optimize()
    chosen = optimize if partitions is None else optimize.where(partitions)
    with temporary_settings(spark, settings):
        _retrying(f"compaction of {table}", chosen.executeCompaction)


def vacuum(spark: SparkSession, table: str) -> None:
    """Remove files that no version within Delta's own retention needs."""
    before = str(spark.conf.get(_LISTING_TASKS, str(_MOST_LISTING_TASKS)))
    spark.conf.set(_LISTING_TASKS, str(min(int(before), _MOST_LISTING_TASKS)))
    try:
        with _console_of_scala_closed(spark):
            _retrying(f"vacuum of {table}", DeltaTable.forName(spark, table).vacuum)
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

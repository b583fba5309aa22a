"""The session that a command works with: the platform's where there is one, else a quiet local one."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from patternlake.delta_tables.committing.sessions import temporary_settings
from patternlake.delta_tables.schema.locations import plain
from patternlake.delta_tables.spark.own_process import settle
from patternlake.udfs.errors import StateError
from patternlake.udfs.record_batches import SETTINGS as RECORD_BATCHES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from patternlake.jobs.configuration.file import Configuration

# pyspark writes a JSON document to standard error, beside raising, for each error of these kinds.
_ECHOES = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
# Set by spark-submit, and by Databricks: a session with its own settings is there or can be had.
_PLATFORM = ("PYSPARK_GATEWAY_PORT", "DATABRICKS_RUNTIME_VERSION", "SPARK_REMOTE")
_SETTINGS = {
    # With each call on a column PySpark looks for the line that made it, to name it in errors; here that is a line of
    # PatternLake's. Measured: a call takes 1.5 ms with it, 0.6 without.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
MASTER = "PATTERNLAKE_MASTER"
"""The environment variable that names Spark's master."""


@contextmanager
def spark_for(
    configuration: Configuration | None, *, create: bool = False, verbose: bool = False
) -> Iterator[SparkSession]:
    """Give a session with the functions enabled; a local one is stopped afterwards.

    Under spark-submit and on Databricks it is the platform's session. Otherwise a local one is started, with the
    master that the environment variable PATTERNLAKE_MASTER names, or ``local[*]``; what Spark says while it starts
    and works goes to a file instead of the terminal, and is kept only if it does not start.

    Parameters
    ----------
    configuration
        Names the database and its location; None: no database is opened or made, and no function is there.
    create
        Make an empty database without a warning where there is none.
    verbose
        Let Spark's own log through.

    Raises
    ------
    StateError
        Spark did not start; the message names the file with its log.
    """
    import patternlake

    if not verbose:
        hush()
    if on_a_platform():
        from pyspark.sql import SparkSession

        spark = SparkSession.builder.getOrCreate()
        with temporary_settings(spark, RECORD_BATCHES):
            yield spark if configuration is None else patternlake.enable(spark, configuration, create=create)
        return
    master = os.environ.get(MASTER, "local[*]")
    with spark_output(verbose):
        if configuration is None:
            spark = patternlake.session(None, master, database=None, settings=_SETTINGS)
        else:
            spark = patternlake.session(
                configuration.location,
                master,
                database=configuration.database,
                create=create,
                settings=_SETTINGS,
                storage_options=configuration.storage_options,
            )
    spark.sparkContext.setLogLevel("WARN" if verbose else "OFF")
    settle(spark)
    # A catalog of Hive's outlives the process, and needs its folders.
    passing = spark.conf.get("spark.sql.catalogImplementation") == "in-memory"
    warehouse = str(spark.conf.get("spark.sql.warehouse.dir"))
    try:
        yield spark
    finally:
        spark.stop()
        if passing:
            _remove_empty_folders(Path(plain(unquote(warehouse))))


def _remove_empty_folders(warehouse: Path) -> None:
    """Remove the folders that Spark has made for databases, a lake's internal one too, and that nothing was put in."""
    for folder in (*warehouse.glob("*.db"), warehouse):
        with suppress(OSError):
            folder.rmdir()


def on_a_platform() -> bool:
    """Whether this process runs under spark-submit or on Databricks, with a session and file systems of theirs."""
    return any(os.environ.get(name) for name in _PLATFORM)


def hush() -> None:
    """Keep what other libraries log and warn about off standard error, in a process that is one command."""
    for name in (*_ECHOES, "py4j"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    # With no handler at all Python would write their warnings to standard error.
    logging.getLogger().addHandler(logging.NullHandler())
    if not sys.warnoptions:
        warnings.simplefilter("ignore")


@contextmanager
def spark_output(verbose: bool) -> Iterator[None]:
    """Start processes whose output goes to a file, however long they live; it is kept if Spark does not start.

    What this process has to say meanwhile, such as warnings, still goes to standard error.
    """
    if verbose:
        yield
        return
    handle, path = tempfile.mkstemp(prefix="patternlake-spark-", suffix=".log")
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    kept = False
    try:
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        with _writing_errors_to(saved[1]):
            yield
    except StateError as error:
        if not _running():
            kept = True
            raise StateError(f"{error} All that Spark said: {path}") from error
        raise
    finally:
        if not kept:
            Path(path).unlink(missing_ok=True)
        for descriptor, original in enumerate(saved, start=1):
            os.dup2(original, descriptor)
            os.close(original)
        os.close(handle)


@contextmanager
def _writing_errors_to(descriptor: int) -> Iterator[None]:
    """Let Python write standard error to a descriptor, unless it goes elsewhere already, as in tests."""
    own = sys.__stderr__
    if own is None or sys.stderr is not own:
        yield
        return
    with open(descriptor, "w", 1, own.encoding, own.errors, closefd=False) as written, redirect_stderr(written):
        yield


def _running() -> bool:
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is not None

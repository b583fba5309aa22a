"""Sessions of PatternLake's own: what a job writes does not depend on the settings of the session that it is run in.

An own session is a clone of the caller's: it sees the same catalogs, current database, temporary views and functions,
and has the caller's settings about where things are and how fast work goes. Every other setting of Spark SQL is back
at Spark's default, but for those that PatternLake needs otherwise. What is set in it, nobody else sees: neither the
caller nor a job in another thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from patternlake.udfs.errors import StateError
from patternlake.udfs.record_batches import SETTINGS as RECORD_BATCHES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: dict[str, str] = {
    # Spark's default is the zone of the driver's machine.
    "spark.sql.session.timeZone": "UTC",
    # Named although they are Spark's defaults: a platform may have other ones.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Measured: Spark's default, INT96, costs a fifth of writing events, and keeps no bounds of the times.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Arrow-fed Python functions over a Parquet scan can hang with columnar input (SPARK-58241).
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    **RECORD_BATCHES,
}
"""What holds in an own session, whatever the caller's says."""

# The settings of Spark SQL that say where things are, or how fast and on how much memory work goes. Only these are the
# caller's: of a list of those that change results, one would always be missing.
_CALLERS = (
    "spark.sql.adaptive.",
    "spark.sql.artifact.",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.broadcastTimeout",
    "spark.sql.catalog.",
    "spark.sql.codegen.",
    "spark.sql.defaultCatalog",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.files.maxPartition",
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.openCostInBytes",
    "spark.sql.hive.",
    "spark.sql.inMemoryColumnarStorage.",
    "spark.sql.join.",
    "spark.sql.parquet.compression.codec",
    "spark.sql.parquet.fieldId.",
    "spark.sql.parquet.output.committer.class",
    "spark.sql.shuffle.",
    "spark.sql.sources.commitProtocolClass",
    "spark.sql.sources.outputCommitterClass",
    "spark.sql.sources.parallelPartitionDiscovery.",
    "spark.sql.streaming.checkpointFileManagerClass",
    "spark.sql.streaming.streamingQueryListeners",
)
_CALLER = "_patternlake_caller"


@contextmanager
def own_session(spark: SparkSession, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Give a session of PatternLake's own for the length of a block; it is the thread's active one there.

    Parameters
    ----------
    spark
        The caller's session, with a JVM (not Spark Connect); nothing in it changes.
    settings
        Further settings; they win over `SETTINGS`.

    Raises
    ------
    StateError
        The session is one of Spark Connect.
    """
    from pyspark.sql import SparkSession

    classic = getattr(spark, "_jsparkSession", None)
    if classic is None:
        raise StateError(
            "this is a session of Spark Connect, in which PatternLake's tables can be read, but not opened or written; "
            "use a session in the driver, such as patternlake.session() gives"
        )
    own = SparkSession(spark.sparkContext, classic.cloneSession())
    # PySpark keeps the last session that made a frame for all threads; it may be that of a job in another one.
    last = _caller(SparkSession._activeSession)
    # Some texts, such as DDL, are read under the settings of the thread's active session.
    sessions = _sessions_of(own._jvm)
    before = sessions.getActiveSession()
    setattr(own, _CALLER, _caller(spark))
    _set(own, {**SETTINGS, **(settings or {})})
    sessions.setActiveSession(own._jsparkSession)
    try:
        yield own
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()
        SparkSession._activeSession = last


def made_within(session: SparkSession, own: SparkSession) -> None:
    """Tell that Spark made a session of an own one, as it does for a streaming query, so that it stays as unseen."""
    setattr(session, _CALLER, _caller(own))


@contextmanager
def temporary_settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session for a while."""
    before = {key: spark.conf.get(key, None) for key in values}
    try:
        for key, value in values.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, former in before.items():
            if former is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, former)


def _caller(session: Any) -> Any:
    """The session that an own one was made for; any other one itself."""
    return getattr(session, _CALLER, session)


@lru_cache(maxsize=4)
def _sessions_of(jvm: Any) -> Any:
    """The JVM's class of sessions: each name on the way to it is a call."""
    return jvm.org.apache.spark.sql.classic.SparkSession


_modifiable: set[str] = set()
"""Settings that were found to be such as a session may have of its own; others may become that when a library is
loaded."""


def _set(own: SparkSession, settings: Mapping[str, str]) -> None:
    # Straight to the JVM, and names as one text: PySpark's way makes several calls for each setting.
    conf: Any = own._jsparkSession.conf()
    for key in conf.getAll().keys().mkString("\n").split("\n"):
        if not key.startswith("spark.sql.") or key.startswith(_CALLERS) or key in settings:
            continue
        if key not in _modifiable and conf.isModifiable(key):
            _modifiable.add(key)
        if key in _modifiable:
            conf.unset(key)
    for key, value in settings.items():
        conf.set(key, value)

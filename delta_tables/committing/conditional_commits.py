"""Commits through Spark to tables on S3 that cannot replace another driver's.

Delta's own store for S3 looks whether a commit of a number is there, and then puts its own: of two drivers that do so
at the same time both are told that all went well, and one commit is lost. S3, and most stores that are made like it,
put an object only where there is none if they are asked to, and Hadoop asks them from 3.4.2 on. So Delta gets a store
of ours there, unless a user has chosen one. Stores of Azure, Google and HDFS need none: there Delta's own are safe.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patternlake.delta_tables.spark.java_classes import PACKAGE, define

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


logger = logging.getLogger(__name__)

_CLASS, _FILES = "ConditionalCommits", "WholeObjects"
_SCHEMES = ("s3a", "s3", "s3n")
_CONDITION = "fs.option.create.conditional.overwrite"
_OF_ALL = "spark.delta.logStore.class"
_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_HEEDED: set[str] = set()
"""Locations whose stores were seen to heed conditions."""


def commit_conditionally(spark: SparkSession, location: str) -> None:
    """Let Delta commit to the tables at a location on condition that nobody else has; idempotent, writes nothing.

    Parameters
    ----------
    spark
        A session.
    location
        Of a database. Elsewhere than on S3 nothing is done.
    """
    scheme = _scheme(location)
    if scheme not in _SCHEMES:
        return
    jvm: Any = spark._jvm
    settings, key = jvm.org.apache.spark.SparkEnv.get().conf(), _key(scheme)
    if settings.contains(key) or settings.contains(_OF_ALL):
        return
    store, path = _store(spark, location)
    if not store.hasPathCapability(path, _CONDITION):
        logger.warning(
            "what reads %s:// here, %s, cannot put an object on condition that there is none, so that only one "
            "driver may commit to %s at a time; Hadoop can from 3.4.2 on, where fs.s3a.create.conditional.enabled is "
            "not false",
            scheme, store.getClass().getName(), location,
        )  # fmt: skip
        return
    beside = "io.delta.storage.LogStore"
    define(jvm, spark.sparkContext._gateway, Path(__file__).with_name("java"), [_CLASS, _FILES], beside)
    settings.set(key, f"{PACKAGE}.{_CLASS}")
    # A log that is open keeps the store that it was opened with.
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def settings_of(spark: SparkSession, location: str) -> dict[str, str]:
    """Settings under which small files at a location, such as a commit's checksum, are put and not renamed.

    Empty where Delta has no store of ours, and where a user has chosen what writes them.
    """
    scheme = _scheme(location)
    if scheme not in _SCHEMES or spark.conf.get(_FILE_MANAGER, None) is not None:
        return {}
    jvm: Any = spark._jvm
    ours = jvm.org.apache.spark.SparkEnv.get().conf().get(_key(scheme), "") == f"{PACKAGE}.{_CLASS}"
    return {_FILE_MANAGER: f"{PACKAGE}.{_FILES}"} if ours else {}


def qualify(spark: SparkSession, location: str) -> str:
    """A location as Spark's catalog would register it: a URI of the file system that Spark reads it with."""
    store, path = _store(spark, location)
    return str(store.makeQualified(path).toUri().toString())


def is_safe_for_several(spark: SparkSession, location: str) -> bool:
    """Whether two drivers may commit to the tables at a location at once; on S3 this tries it out, once a process.

    Where a user has chosen Delta's store for S3, the user is trusted.
    """
    scheme = _scheme(location)
    if scheme not in _SCHEMES:
        return True
    jvm: Any = spark._jvm
    settings, key = jvm.org.apache.spark.SparkEnv.get().conf(), _key(scheme)
    if not settings.contains(key):
        return bool(settings.contains(_OF_ALL))
    if settings.get(key) != f"{PACKAGE}.{_CLASS}":
        return True
    if location in _HEEDED:
        return True
    store, tried = _store(spark, f"{location}/_locks/conditions")
    heeded = bool(getattr(jvm, PACKAGE).ConditionalCommits.heeded(store, tried))
    if heeded:
        _HEEDED.add(location)
    return heeded


def _scheme(location: str) -> str:
    return location.partition(":")[0].lower()


def _key(scheme: str) -> str:
    return f"spark.delta.logStore.{scheme}.impl"


def _store(spark: SparkSession, location: str) -> tuple[Any, Any]:
    """The file system that Spark reads a location with, and the location as its path."""
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    path = jvm.org.apache.hadoop.fs.Path(location)
    return path.getFileSystem(session.sessionState().newHadoopConf()), path

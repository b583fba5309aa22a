"""Which databases the functions of a Spark application answer from."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from patternlake.delta_tables.database import Database
from patternlake.delta_tables.direct_reader import DirectReader, UnreadableError
from patternlake.delta_tables.file_cache import DEFAULT_BYTES, TableCache
from patternlake.delta_tables.spark_reader import SparkReader
from patternlake.delta_tables.state_reader import Condition, StateReader
from patternlake.sql_ext.lake import Lake
from patternlake.udfs.errors import ArgumentError, StateError

logger = logging.getLogger(__name__)

_Read = TypeVar("_Read")

READER = "spark.patternlake.reader"
"""``auto`` (default): directly where that is possible, else through Spark; ``direct`` or ``spark`` forces either."""
CACHE_BYTES = "spark.patternlake.cacheBytes"
"""Bytes of state files that the driver's process keeps."""
_READERS = ("auto", "direct", "spark")
# Schemes as Hadoop spells them, and as delta-rs does.
_SCHEMES = {"s3a": "s3", "s3n": "s3", "wasbs": "abfss"}
_SPARK_ONLY = ("dbfs", "hdfs", "viewfs", "maprfs", "alluxio")


@dataclass
class _Application:
    """What is enabled in one Spark application."""

    readers: dict[str, tuple[str, DirectReader | None]] = field(default_factory=dict)
    current: str = ""


_APPLICATIONS: dict[str, _Application] = {}
_CACHE = TableCache()


def remember(database: Database, storage_options: Mapping[str, str] | None = None) -> str | None:
    """Let the functions of the session's application answer from a database from now on.

    Returns
    -------
    str or None
        Name of the database that they answered from before, if it was another one.
    """
    application = _APPLICATIONS.setdefault(_application_id(database.spark), _Application())
    place = _as_delta_rs(database.location)
    if database.name not in application.readers or storage_options is not None:
        direct = None if place is None else DirectReader(place, _CACHE, storage_options)
        application.readers[database.name] = (database.location, direct)
    before, application.current = application.current, database.name
    return before if before not in ("", database.name) else None


def lake_of(spark: SparkSession, database: str | None = None) -> Lake:
    """The lake that a call in a session asks.

    Parameters
    ----------
    spark
        The session.
    database
        Name of an enabled database; None: the one that was enabled last.

    Raises
    ------
    StateError
        None is enabled.
    """
    application = _APPLICATIONS.get(_application_id(spark))
    if application is None or not application.current:
        raise StateError("no database is enabled in this session; call patternlake.enable(spark, …) first")
    name = database or application.current
    if name not in application.readers:
        known = ", ".join(application.readers)
        raise ArgumentError(f"there is no enabled database {name!r}; enabled: {known}")
    _CACHE.resize(int(str(spark.conf.get(CACHE_BYTES, str(DEFAULT_BYTES)))))
    location, direct = application.readers[name]
    opened = Database(spark, name, location)
    return Lake(opened, _reader(spark, opened, direct))


def enabled(spark: SparkSession) -> list[str]:
    """Names of the databases that are enabled in the session's application."""
    return list(_APPLICATIONS.get(_application_id(spark), _Application()).readers)


def _reader(spark: SparkSession, database: Database, direct: DirectReader | None) -> StateReader:
    wanted = str(spark.conf.get(READER, "auto"))
    if wanted not in _READERS:
        raise ArgumentError(f"{READER} is {wanted!r}; one of {', '.join(_READERS)} would be right")
    if direct is None and wanted == "direct":
        raise ArgumentError(f"{READER} is 'direct', but only Spark can read {database.location}")
    if direct is not None and wanted == "direct":
        return direct

    def through_spark() -> SparkReader:
        # Lake.apart says why.
        session: Any = spark._jsparkSession
        return SparkReader(replace(database, spark=SparkSession(spark.sparkContext, session.cloneSession())))

    return through_spark() if direct is None or wanted == "spark" else _Fallback(direct, through_spark)


class _Fallback:
    """Reads directly, and through Spark what cannot be read so."""

    def __init__(self, direct: DirectReader, through_spark: Callable[[], SparkReader]) -> None:
        self._direct, self._through_spark = direct, through_spark

    def version(self, table: str) -> int:
        return self._read(lambda reader: reader.version(table))

    def size(self, table: str, where: Sequence[Condition] = ()) -> int:
        return self._read(lambda reader: reader.size(table, where))

    def rows(self, table: str, columns: Sequence[str], where: Sequence[Condition] = ()) -> pa.Table:
        return self._read(lambda reader: reader.rows(table, columns, where))

    def _read(self, read: Callable[[StateReader], _Read]) -> _Read:
        try:
            return read(self._direct)
        except UnreadableError as error:
            logger.info("%s; Spark reads it", error)
            return read(self._through_spark())


def _application_id(spark: SparkSession) -> str:
    return str(spark.sparkContext.applicationId)


def _as_delta_rs(location: str) -> str | None:
    """A location as delta-rs spells it; None where it cannot open such a one."""
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", location)
    if found is None or found[1] == "file":
        return location
    scheme = found[1].lower()
    if scheme in _SPARK_ONLY:
        return None
    return _SCHEMES.get(scheme, scheme) + location[len(scheme) :]

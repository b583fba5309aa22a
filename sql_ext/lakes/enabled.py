"""Which databases the functions of a Spark application answer from."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, ItemsView, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.databases.store_errors import list_folders
from patternlake.delta_tables.databases.store_options import options_to_read
from patternlake.delta_tables.databases.workers import refuse_connect
from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.file_cache import CACHE
from patternlake.delta_tables.reading.spark_reader import SparkReader
from patternlake.delta_tables.reading.state_reader import Condition, Fold, ListedFiles, Made, StateReader
from patternlake.delta_tables.reading.table_logs import Seen, UnreadableError, one_look
from patternlake.delta_tables.schema.locations import as_delta_rs, plain
from patternlake.sql_ext.lakes.lake import READER, Lake, in_own_session
from patternlake.sql_ext.lakes.learning import Learned
from patternlake.sql_ext.lakes.size_settings import read_size
from patternlake.udfs.errors import ArgumentError, StateError

logger = logging.getLogger(__name__)

_Read = TypeVar("_Read")

_DATABASE = "spark.patternlake.database"
"""Of a session: the database that its functions answer from."""
CACHE_BYTES = "spark.patternlake.cacheBytes"
"""Bytes of state files, rows and answers that the driver's process keeps; workers keep a part of that."""
DEFAULT_CACHE_BYTES = 256 << 20
_READERS = ("auto", "direct", "spark")


@dataclass(frozen=True)
class _Enabled:
    """A database that was enabled: where it is, what reads it directly, if anything can, and what is learned of it."""

    location: str
    direct: DirectReader | None
    learned: Learned


_APPLICATIONS: dict[str, dict[str, _Enabled]] = {}
"""By Spark application: its enabled databases by name, the last one last."""


def use(database: Database, storage_options: Mapping[str, str] | None = None) -> tuple[str, str] | None:
    """Let the functions of a session answer from a database; those of sessions that chose none as well.

    Returns
    -------
    (name, location) or None
        The database that the session's functions answered from before.
    """
    spark = database.spark
    known = _APPLICATIONS.setdefault(str(spark.sparkContext.applicationId), {})
    own = spark.conf.get(_DATABASE, None)
    before = (own, known[own].location) if own in known else None
    held = known.pop(database.name, None)
    direct = _reader_without_spark(database, storage_options)
    if (
        held is None
        or plain(held.location) != plain(database.location)
        or storage_options is not None
        or not _options(direct) <= _options(held.direct)
    ):
        held = _Enabled(database.location, direct, Learned(database.location))
    known[database.name] = held
    spark.conf.set(_DATABASE, database.name)
    return before


def lake_of(spark: SparkSession, database: str | None = None) -> Lake:
    """The lake that a call in a session asks.

    Parameters
    ----------
    spark
        The session.
    database
        Name of an enabled database; None: the session's own, or the one that was enabled last.

    Raises
    ------
    StateError
        None is enabled, or the session is one of Spark Connect.
    ArgumentError
        The database is not, or a setting has no such value.
    """
    refuse_connect(spark)
    if spark.sparkContext._jsc is None:
        raise StateError("this session of Spark has ended; patternlake.session(…) starts one")
    known = _APPLICATIONS.get(str(spark.sparkContext.applicationId), {})
    name = database or _find_chosen(spark, known)
    if name is None:
        raise StateError("no database is enabled in this session; call patternlake.enable(spark, …) first")
    if name not in known:
        raise ArgumentError(f"there is no enabled database {name!r}; enabled: {', '.join(known)}")
    CACHE.reserve(read_size(spark, CACHE_BYTES, DEFAULT_CACHE_BYTES))
    opened = Database(spark, name, known[name].location)
    return Lake(opened, _reader(opened, known[name].direct), CACHE, known[name].learned)


def find_place(spark: SparkSession) -> tuple[str, str] | None:
    """Name and location of the database that the functions of a session answer from; None: none is enabled.

    Raises
    ------
    StateError
        The session is one of Spark Connect.
    """
    refuse_connect(spark)
    known = _APPLICATIONS.get(str(spark.sparkContext.applicationId), {})
    name = _find_chosen(spark, known)
    return None if name is None else (name, known[name].location)


def lake_of_object(spark: SparkSession, name: object) -> tuple[Lake, object]:
    """The lake that holds an object, and the object's name in it.

    ``db.name`` is the object of an enabled database, unless the session's own has one that is called so.
    """
    lake = lake_of(spark)
    if not isinstance(name, str) or "." not in name:
        return lake, name
    database, rest = name.split(".", 1)
    known = _APPLICATIONS.get(str(spark.sparkContext.applicationId), {})
    if database not in known or lake.snapshot(None).publications.knows(name):
        return lake, name
    return lake_of(spark, database), rest


def _reader_without_spark(database: Database, storage_options: Mapping[str, str] | None) -> DirectReader | None:
    """What reads a database in this process; None where only Spark can."""
    if database.direct is not None and not database.direct.on_disk:
        # It knows the logs that were read when the database was opened.
        return database.direct
    place = as_delta_rs(database.location)
    options = options_to_read(database.spark, database.location, storage_options or {})
    return None if place is None else DirectReader(place, CACHE, options)


def _options(reader: DirectReader | None) -> ItemsView[str, str]:
    """The storage options that a reader has, such as keys that the environment gives anew."""
    return ({} if reader is None else reader.place[1]).items()


def _find_chosen(spark: SparkSession, known: Mapping[str, _Enabled]) -> str | None:
    """The database that a session's functions answer from."""
    own = spark.conf.get(_DATABASE, None)
    return own if own in known else next(reversed(list(known)), None)


def _reader(database: Database, direct: DirectReader | None) -> StateReader:
    spark = database.spark
    wanted = str(spark.conf.get(READER, "auto"))
    if wanted not in _READERS:
        raise ArgumentError(f"{READER} is {wanted!r}; one of {', '.join(_READERS)} would be right")
    if direct is None and wanted == "direct":
        raise ArgumentError(f"{READER} is 'direct', but only Spark can read {database.location}")
    if direct is not None and wanted == "direct":
        return direct

    return _through_spark(database) if direct is None or wanted == "spark" else _Fallback(direct, database)


def _through_spark(database: Database) -> SparkReader:
    own = in_own_session(database)
    return SparkReader(own.spark, own.log)


class _Fallback:
    """Reads directly, and through Spark what cannot be read so; for one call, which looks at each table once."""

    def __init__(self, direct: DirectReader, database: Database) -> None:
        self._direct, self._database = direct, database
        self._seen = Seen()

    @property
    def place(self) -> tuple[str, dict[str, str]]:
        """As of `DirectReader`."""
        return self._direct.place

    @property
    def on_disk(self) -> bool:
        """As of `DirectReader`."""
        return self._direct.on_disk

    @property
    def bytes_read(self) -> int:
        """As of `DirectReader`."""
        return self._direct.bytes_read

    def version(self, table: str) -> int:
        return self._read(lambda reader: reader.version(table))

    def identity(self, table: str) -> Hashable:
        return self._read(lambda reader: reader.identity(table))

    def size(
        self, table: str, where: Sequence[Condition] = (), columns: Sequence[str] = (), few: int | None = None
    ) -> int:
        return self._read(lambda reader: reader.size(table, where, columns, few))

    def rows(
        self, table: str, columns: Sequence[str], where: Sequence[Condition] = (), fold: Fold | None = None
    ) -> pa.Table:
        return self._read(lambda reader: reader.rows(table, columns, where, fold))

    def list_files(self, table: str, where: Sequence[Condition] = ()) -> ListedFiles | None:
        return self._read(lambda reader: reader.list_files(table, where))

    def once(self, table: str, key: Hashable, make: Callable[[], Made]) -> Made:
        return self._read(lambda reader: reader.once(table, key, make))

    def _read(self, read: Callable[[StateReader], _Read]) -> _Read:
        try:
            with one_look(self._seen):
                return read(self._direct)
        except UnreadableError as error:
            logger.info("%s; Spark reads it", error)
        except OSError as error:
            if self._direct.on_disk:
                raise
            # Spark would try for more than a minute what cannot be had.
            list_folders(self._database.spark, self._database.location)
            logger.warning("the store could not be read without Spark, which reads it, too: %s", error)
        return read(_through_spark(self._database))

"""Opens databases: finds or makes the place, has the tables prepared, and finds out who may read and write them."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from patternlake.delta_tables.committing.conditional_commits import commit_conditionally, qualify
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.committing.direct_commits import WRITER_VERSION
from patternlake.delta_tables.databases import known_tables, migrations, workers
from patternlake.delta_tables.databases.internal_database import describe, is_internal, place_of, wake_catalog
from patternlake.delta_tables.databases.preparing import prepare
from patternlake.delta_tables.databases.store_errors import list_folders
from patternlake.delta_tables.databases.store_options import is_object_store, options_to_read, tell_spark
from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.file_cache import CACHE
from patternlake.delta_tables.reading.table_logs import Seen, UnreadableError, one_look
from patternlake.delta_tables.schema.locations import (
    as_delta_rs,
    check_location,
    has_scheme,
    is_on_disk,
    path_on_disk,
    plain,
)
from patternlake.delta_tables.schema.names import log_name
from patternlake.delta_tables.schema.quoting import literal
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.writing import direct_writer
from patternlake.udfs.errors import ArgumentError, StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)
NEW_LAKES = logging.getLogger("patternlake.new_lakes")
"""Hears at level INFO of lakes that are made on purpose."""
_CARRIER = log_name(migrations.CARRIER)
_LOOKED_AT = 1000
_SHOWN = 3


def open_database(
    spark: SparkSession,
    name: str = "patternlake",
    location: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    *,
    named: bool = True,
    make: bool = True,
) -> Database:
    """Open a database; create, register or migrate what needs it.

    Idempotent, and a matter of a few catalog look-ups when everything is there.

    Parameters
    ----------
    spark
        A Delta-ready session.
    name
        Name of the catalog's database with the views; `internal_name` has the tables.
    location
        Folder or object-store path; relative paths are relative to the working directory. None: where the catalog
        puts the database.
    storage_options
        Of the object store, as of `store_options.tell_spark`.
    named
        Whether tables and views are called by name at once. If not, a catalog that ends with the session learns them
        when `Database.log` or `Database.view` first names one: jobs that find nothing new need none. Measured, with
        functions that are not enabled either: 12 seconds of a whole command that finds nothing instead of 16.
    make
        Whether to make one where there is none.

    Raises
    ------
    ArgumentError
        The name is not one that Spark's catalog takes, or the location has a character that readers cannot take.
    StateError
        The session is one of Spark Connect; or the database is newer than the code, is not PatternLake's, or is
        registered at another location; or one of its two names is taken; or its object store cannot be reached; or
        there is none, and none is to be made.
    """
    workers.refuse_connect(spark)
    if not re.fullmatch(r"[A-Za-z0-9_]+", name):
        raise ArgumentError(f"the database name '{name}' may hold letters, digits and _ only, at least one of them")
    if not make:
        refuse_no_lake(location or place_of(spark, name))
    folders = None
    if location is not None:
        place = location if has_scheme(location) else os.path.abspath(location)
        check_location(place)
        tell_spark(spark, place, storage_options or {})
        if is_object_store(place):
            # Both load classes of the JVM for a second or two when they are the first; a refused store is told first.
            with ThreadPoolExecutor(1) as beside:
                if named:
                    beside.submit(wake_catalog, spark, name)
                folders = list_folders(spark, place)
            if not make and folders is not None and _CARRIER not in folders:
                raise no_lake(location)
        if not named:
            found = _open_unnamed(Database(spark, name, place.rstrip("/")), folders, storage_options or {})
            if found is not None:
                return replace(found, register=_Once(partial(open_database, spark, name, location, storage_options)))
    rows = describe(spark, name, "" if location is None else f"LOCATION {literal(place)}")
    if is_internal(rows):
        raise StateError(
            f"the database '{name}' has the internal tables of the lake '{name.removesuffix('_internal')}'; "
            "give that name, or one of your own"
        )
    registered = next(row.info_value for row in rows if row.info_name == "Location")
    # Spark writes a location as a URI.
    spellings = (registered, unquote(registered))
    if location is None:
        place = spellings[1]
    elif plain(place) not in map(plain, spellings):
        raise StateError(
            f"the database '{name}' is registered in this session at {registered}, not at {place}; "
            "give the same location or another name, or the other location in a new process"
        )
    database = Database(spark, name, place.rstrip("/"))
    commit_conditionally(spark, registered)
    there = _on_disk(registered, database.location)
    if folders is None:
        folders = _list_tables_on_disk(registered)
    carried = folders is None or _CARRIER in folders
    with one_look(Seen()):
        if there is not None:
            reader = _readable(there)
        else:
            reader = _reader_of_store(database, storage_options or {}) if carried else None
        # What TIMESTAMP means, and what a view's text, is decided by the settings under which they are created.
        with replace(database, direct=reader).apart() as own:
            made = prepare(own, registered, folders)
    on_disk = there or _on_disk(registered, database.location)
    if on_disk is None:
        return replace(database, made=made, direct=reader or _reader_of_store(database, storage_options or {}))
    direct = _directly(on_disk)
    return replace(database, made=made, folder_on_disk=None if direct is None else on_disk, direct=direct)


def _open_unnamed(
    database: Database, folders: Collection[str] | None, storage_options: Mapping[str, str]
) -> Database | None:
    """A database that is whole and up to date, and of which a catalog that ends with the session has nothing; or None.

    Parameters
    ----------
    database
        Named and placed.
    folders
        As of `list_folders`.
    storage_options
        As of `open_database`.
    """
    session: Any = database.spark._jsparkSession
    catalog = session.sessionState().catalog()
    known = any(map(catalog.databaseExists, (database.name, database.internal)))
    if known or not known_tables.knows_enough(database.spark):
        return None
    registered = qualify(database.spark, database.location)
    there = _list_tables_on_disk(registered) if folders is None else folders
    if there is None or not {table.log for table in TABLES.values()}.issubset(there):
        return None
    commit_conditionally(database.spark, registered)
    on_disk = _on_disk(registered, database.location)
    with one_look(Seen()):
        direct = _reader_of_store(database, storage_options) if on_disk is None else _directly(on_disk)
        if direct is None or not migrations.is_current(direct):
            return None
    return replace(database, folder_on_disk=on_disk, direct=direct)


class _Once:
    """Does something when it is first called for, in whatever thread; who calls meanwhile waits."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work, self._lock, self._done = work, threading.Lock(), False

    def __call__(self) -> None:
        with self._lock:
            if not self._done:
                self._work()
                self._done = True


def tell_new_lake(database: Database) -> str:
    """Say that a lake was made where there was none, and which lakes are in the folders beside it.

    Parameters
    ----------
    database
        One that was `made`. Elsewhere than on this machine's disk no other lakes are looked for.
    """
    told = f"made a new lake at {database.location}; there was none"
    beside = _name_lakes_beside(database.location)
    if beside:
        told += f". Lakes beside it: {beside}; if you mean one of them, put `location` right and delete the new one"
    return told


def refuse_no_lake(location: str) -> None:
    """Refuse a folder of this machine that has no lake.

    Raises
    ------
    StateError
        It has none. What lies elsewhere is not looked at.
    """
    if is_on_disk(location) and not os.path.isdir(f"{os.path.abspath(path_on_disk(location))}/{_CARRIER}/_delta_log"):
        raise no_lake(location)


def no_lake(location: str) -> StateError:
    """Say that there is no lake at a location, and which ones are beside it."""
    beside = _name_lakes_beside(location)
    meant = f". Lakes beside it: {beside}; perhaps one of them is meant" if beside else ""
    return StateError(
        f"there is no lake at {location}: it has no table {_CARRIER}; the first run of a job makes one{meant}"
    )


def _name_lakes_beside(location: str) -> str:
    """Name the lakes in the folders beside a location; empty where there are none, or none are looked for."""
    if not is_on_disk(location):
        return ""
    path = Path(os.path.abspath(path_on_disk(location)))
    with suppress(OSError):
        folders = sorted(islice(path.parent.iterdir(), _LOOKED_AT))
        others = [each for each in folders if each != path and (each / _CARRIER / "_delta_log").is_dir()]
        return ", ".join(map(str, others[:_SHOWN])) + (", …" if len(others) > _SHOWN else "")
    return ""


def reader_without_spark(location: str | None) -> DirectReader | None:
    """What reads the tables of a database that is there and up to date, without Spark; None where only Spark can.

    Parameters
    ----------
    location
        As of `open_database`. One without a scheme is taken for a folder of this machine, where such a database is
        there; Spark may be configured to look for it elsewhere.
    """
    if location is None or not is_on_disk(location):
        return None
    path = os.path.abspath(path_on_disk(location))
    if not os.path.isdir(f"{path}/{_CARRIER}"):
        return None
    reader = _directly(path)
    if reader is None:
        return None
    return reader if migrations.is_current(reader) else None


def _on_disk(registered: str, location: str) -> str | None:
    """The path of a location that Spark has registered, where it is a folder whose commits can be made without Spark.

    Without a scheme of its own a location may lie in any file system, so what is registered decides.
    """
    if not registered.startswith("file:"):
        return None
    path = path_on_disk(location)
    tables = f"{path}/{_CARRIER}"
    return path if os.path.isdir(tables) and direct_writer.possible(tables) else None


def _list_tables_on_disk(registered: str) -> frozenset[str] | None:
    """List the folders of Delta tables at a location that Spark has registered; None where that is not on the disk."""
    if not registered.startswith("file:"):
        return None
    path = Path(path_on_disk(registered))
    if not path.is_dir():
        return frozenset()
    # A process that died may have left the folder of a log without its first commit.
    return frozenset(each.name for each in path.iterdir() if any(each.glob("_delta_log/*.json")))


def _directly(folder: str) -> DirectReader | None:
    """What reads the tables under a folder; None where one of them has been given features that need Spark."""
    reader = _reader(folder)
    try:
        versions = {name: reader.writer_version(name) for name in TABLES}
    except UnreadableError as error:
        logger.info("%s; Spark reads and writes", error)
        return None
    return reader if all(versions[name] <= WRITER_VERSION for name in TABLES if TABLES[name].direct) else None


def _reader_of_store(database: Database, storage_options: Mapping[str, str]) -> DirectReader | None:
    """What reads the tables of a database in an object store; None where there is none, or only Spark can read it."""
    place = as_delta_rs(database.location) if is_object_store(database.location) else None
    if place is None:
        return None
    return _readable(place, options_to_read(database.spark, database.location, storage_options))


def _readable(place: str, storage_options: Mapping[str, str] | None = None) -> DirectReader | None:
    """What reads the tables at a place; None where only Spark can."""
    reader = _reader(place, tuple(sorted((storage_options or {}).items())))
    try:
        reader.properties(migrations.CARRIER)
    except UnreadableError as error:
        logger.info("%s; Spark reads it", error)
        return None
    except OSError as error:
        logger.warning("the store could not be read without Spark, which reads it, too: %s", error)
        return None
    return reader


@lru_cache(maxsize=8)
def _reader(place: str, storage_options: tuple[tuple[str, str], ...] = ()) -> DirectReader:
    """One for all that open a database: to open the logs of its tables takes longer than to bring them up to date."""
    return DirectReader(place, CACHE, dict(storage_options))

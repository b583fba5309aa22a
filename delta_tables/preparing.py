"""Makes a database's tables and views be there: creates, registers, migrates; fast when nothing is missing."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from delta.tables import DeltaTable
from pyspark.errors import PySparkException

from patternlake.delta_tables import migrations, store_tables
from patternlake.delta_tables.catalogue import TABLES
from patternlake.delta_tables.quoting import identifier, literal
from patternlake.delta_tables.stream_views import view_streams
from patternlake.delta_tables.table import Table

if TYPE_CHECKING:
    from patternlake.delta_tables.database import Database

logger = logging.getLogger(__name__)

_THREADS = 8
_VIEWS_PROPERTY = "patternlake.views"
_PREPARING = threading.Lock()
"""Spark looks whether a view is there before it replaces it: of two threads that do so, one would fail."""
_THERE_ALREADY = "TABLE_OR_VIEW_ALREADY_EXISTS"


def prepare(database: Database, *, managed: bool, there: Collection[str] | None = None) -> bool:
    """Create or register what is missing in the session's catalog.

    Parameters
    ----------
    database
        Named and placed, not yet usable.
    managed
        Whether new tables go where the catalog puts them instead of under the database's location.
    there
        The folders that stand at the location, where it is in an object store; None elsewhere.

    Returns
    -------
    bool
        Whether there was no database, and an empty one was made.

    Raises
    ------
    StateError
        The database is newer than the code, or not PatternLake's.
    """
    with _PREPARING:
        present = _list_registered(database)
        new = not managed and present.isdisjoint(table.log for table in TABLES.values())
        if there is not None and new and store_tables.knows_enough(database.spark):
            return _prepare_in_store(database, there)
        return _prepare(database, managed, present)


def _prepare_in_store(database: Database, there: Collection[str]) -> bool:
    """As `_prepare`, of a database in an object store of which the session's catalog has nothing yet."""
    carrier = TABLES[migrations.CARRIER]
    others = [table for table in TABLES.values() if table is not carrier]
    with store_tables.stand_ins(database):
        _views(database, set())
    carried, version = carrier.log in there, migrations.SCHEMA_VERSION
    if carried:
        _register_at(database, carrier)
        version = migrations.version_of(database)
        migrations.check(database, version)
    missing = [table for table in others if table.log not in there]
    _each([partial(store_tables.make, database, table, {}) for table in missing])
    if not carried:
        # Last: the version says that all tables were made.
        store_tables.make(database, carrier, {migrations.PROPERTY: str(version)})
        _register_at(database, carrier)
    store_tables.register(database, carrier, others)
    if version != migrations.SCHEMA_VERSION:
        migrations.migrate(database, version)
    if carried:
        view_streams(database)
    return not carried


def _prepare(database: Database, managed: bool, present: set[str]) -> bool:
    carrier = TABLES[migrations.CARRIER]
    others = [table for table in TABLES.values() if table is not carrier]
    carried = carrier.log in present or _register(database, carrier)
    if carried:
        version = migrations.version_of(database)
        if version != migrations.SCHEMA_VERSION:
            migrations.check(database, version)
            _each([partial(_ensure, database, table, managed, {}) for table in others if table.log not in present])
            migrations.migrate(database, version)
    _each([partial(_ensure, database, table, managed, {}) for table in others if table.log not in present])
    if not carried:
        # Last: the version says that all tables were made.
        _ensure(database, carrier, managed, {migrations.PROPERTY: str(migrations.SCHEMA_VERSION)})
    if _views(database, present) and carried:
        view_streams(database)
    return not carried


def _list_registered(database: Database) -> set[str]:
    rows = database.spark.sql(f"SHOW TABLES IN {identifier(database.name)}").collect()
    return {row.tableName for row in rows}


def _register(database: Database, table: Table) -> bool:
    """Register a Delta table that stands under the location already; False if none does."""
    if not DeltaTable.isDeltaTable(database.spark, database.folder(table.log)):
        return False
    _register_at(database, table)
    return True


def _register_at(database: Database, table: Table) -> None:
    """Register a Delta table that stands under the location."""
    place, name = database.folder(table.log), database.log(table.name)
    database.spark.sql(f"CREATE TABLE IF NOT EXISTS {name} USING DELTA LOCATION {literal(place)}")


def _ensure(database: Database, table: Table, managed: bool, properties: dict[str, str]) -> None:
    if _register(database, table):
        return
    place = None if managed else database.folder(table.log)
    logger.info("creating table %s of database %s", table.log, database.name)
    try:
        database.spark.sql(table.create_text(database.log(table.name), place, properties))
    except PySparkException:
        # Another session may have created it in the meantime.
        if not _register(database, table):
            raise


def _views(database: Database, present: set[str]) -> bool:
    """Create the views, unless the catalog has them as this code defines them; whether they were created."""
    texts = {table.name: table.view(database.log) for table in TABLES.values() if table.view is not None}
    mark = hashlib.sha256("\n".join(texts.values()).encode()).hexdigest()
    last = migrations.CARRIER
    if texts.keys() <= present:
        rows = database.spark.sql(f"SHOW TBLPROPERTIES {identifier(database.name, last)}").collect()
        if any(row.key == _VIEWS_PROPERTY and row.value == mark for row in rows):
            return False

    def create(name: str) -> None:
        try:
            database.spark.sql(
                f"CREATE OR REPLACE VIEW {identifier(database.name, name)} COMMENT {literal(TABLES[name].comment)} "
                f"TBLPROPERTIES ({literal(_VIEWS_PROPERTY)} = {literal(mark)}) AS {texts[name]}"
            )
        except PySparkException as error:
            # Another process that shares the catalog has made it just now.
            if error.getCondition() != _THERE_ALREADY:
                raise

    _each([partial(create, name) for name in texts if name != last])
    # Last: its mark says that all views were made.
    create(last)
    return True


def _each(tasks: Iterable[Callable[[], object]]) -> None:
    """Run tasks in threads, each of which mostly waits for the catalog or for storage."""
    with ThreadPoolExecutor(_THREADS) as pool:
        for future in [pool.submit(task) for task in tasks]:
            future.result()

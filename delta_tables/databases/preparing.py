"""Makes a database's tables and views be there: creates, registers, migrates; fast when nothing is missing."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from delta.tables import DeltaTable
from pyspark.errors import PySparkException

from patternlake.delta_tables.databases import known_tables, migrations
from patternlake.delta_tables.databases.internal_database import VIEWS_PROPERTY, claim, forget_former, list_names
from patternlake.delta_tables.databases.stream_views import list_stream_views, view_streams
from patternlake.delta_tables.databases.views import View, columns_of_view
from patternlake.delta_tables.schema.names import INTERNAL_VIEWS
from patternlake.delta_tables.schema.quoting import literal
from patternlake.delta_tables.schema.table import Table
from patternlake.delta_tables.tables.catalogue import TABLES

if TYPE_CHECKING:
    from patternlake.delta_tables.committing.database import Database

logger = logging.getLogger(__name__)

_THREADS = 8
_PREPARING = threading.Lock()
"""Spark looks whether a view is there before it replaces it: of two threads that do so, one would fail."""
_THERE_ALREADY = "TABLE_OR_VIEW_ALREADY_EXISTS"


def prepare(database: Database, registered: str, there: Collection[str] | None = None) -> bool:
    """Create or register what is missing in the session's catalog.

    Parameters
    ----------
    database
        Named and placed, not yet usable.
    registered
        Its location as the catalog has it.
    there
        The folders of tables that stand at the location, where it is in an object store or on this machine's disk;
        None elsewhere.

    Returns
    -------
    bool
        Whether there was no database, and an empty one was made.

    Raises
    ------
    StateError
        The database is newer than the code, or not PatternLake's, or its tables have no place in the catalog.
    """
    with _PREPARING:
        shown = list_names(database.spark, database.name)
        internal = claim(database, registered, new=migrations.CARRIER not in shown)
        new = not shown and internal.isdisjoint(table.log for table in TABLES.values())
        if there is not None and new and known_tables.knows_enough(database.spark):
            made = _prepare_known(database, there)
        else:
            made = _prepare(database, shown, internal)
        forget_former(database, shown)
        return made


def _prepare_known(database: Database, there: Collection[str]) -> bool:
    """As `_prepare`, without Spark's look at tables, of a database of which the session's catalog has nothing yet."""
    carrier = TABLES[migrations.CARRIER]
    carried, version = carrier.log in there, migrations.SCHEMA_VERSION
    if carried and database.direct is not None:
        version = migrations.version_of(database)
        migrations.check(database, version)
    # Of an older version it is not known here which columns its tables have.
    readable = carried and database.direct is not None and version == migrations.SCHEMA_VERSION
    tables = [table for table in TABLES.values() if table is not carrier]
    missing = [table for table in tables if table.log not in there]
    catalog = known_tables.SessionCatalog(database)
    # That of events comes twice: with the attributes of streams it is the better one.
    views = {view.quoted: view for view in [*_list_views(database), *(list_stream_views(database) if readable else [])]}
    catalog.register_views(views.values())
    catalog.register_tables([carrier])
    if carried and database.direct is None:
        version = migrations.version_of(database)
        migrations.check(database, version)
    _each([partial(known_tables.make, database, table, {}) for table in missing])
    if not carried:
        # Last: the version says that all tables were made.
        known_tables.make(database, carrier, {migrations.PROPERTY: str(version)})
    catalog.register_tables(tables)
    if version != migrations.SCHEMA_VERSION:
        migrations.migrate(database, version)
    if carried and not readable:
        view_streams(database)
    return not carried


def _prepare(database: Database, shown: set[str], internal: set[str]) -> bool:
    """Create or register what neither the lake's own database has nor the internal one."""
    carrier = TABLES[migrations.CARRIER]
    others = [table for table in TABLES.values() if table is not carrier]
    carried = carrier.log in internal or _register(database, carrier)
    if carried:
        version = migrations.version_of(database)
        if version != migrations.SCHEMA_VERSION:
            migrations.check(database, version)
            _each([partial(_ensure, database, table, {}) for table in others if table.log not in internal])
            migrations.migrate(database, version)
    _each([partial(_ensure, database, table, {}) for table in others if table.log not in internal])
    if not carried:
        # Last: the version says that all tables were made.
        _ensure(database, carrier, {migrations.PROPERTY: str(migrations.SCHEMA_VERSION)})
    views = _list_views(database)
    there = {view.name for view in views} <= (shown - INTERNAL_VIEWS) | internal
    if not (there and _are_current(database, views)):
        _views(database, views)
        if carried:
            view_streams(database)
    return not carried


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


def _ensure(database: Database, table: Table, properties: dict[str, str]) -> None:
    if _register(database, table):
        return
    logger.info("creating table %s of database %s", table.log, database.name)
    try:
        database.spark.sql(table.create_text(database.log(table.name), database.folder(table.log), properties))
    except PySparkException:
        # Another session may have created it in the meantime.
        if not _register(database, table):
            raise


def _list_views(database: Database) -> list[View]:
    """List the views that do not depend on streams, of which the last has a mark of all."""
    texts = {name: table.view(database.log) for name, table in TABLES.items() if table.view is not None}
    mark = (VIEWS_PROPERTY, hashlib.sha256("\n".join(texts.values()).encode()).hexdigest())
    views = [
        View(database.database_of(name), name, TABLES[name].comment, mark, text, columns_of_view(TABLES[name]))
        for name, text in texts.items()
    ]
    return sorted(views, key=lambda view: view.name == migrations.CARRIER)


def _are_current(database: Database, views: Sequence[View]) -> bool:
    """Whether the views, which are all there, are as this code defines them."""
    rows = database.spark.sql(f"SHOW TBLPROPERTIES {views[-1].quoted}").collect()
    return any((row.key, row.value) == views[-1].mark for row in rows)


def _views(database: Database, views: Sequence[View]) -> None:
    """Create the views."""

    def create(view: View) -> None:
        try:
            database.spark.sql(view.create_text)
        except PySparkException as error:
            # Another process that shares the catalog has made it just now.
            if error.getCondition() != _THERE_ALREADY:
                raise

    *others, last = views
    _each([partial(create, view) for view in others])
    # Last: its mark says that all views were made.
    create(last)


def _each(tasks: Iterable[Callable[[], object]]) -> None:
    """Run tasks in threads, each of which mostly waits for the catalog or for storage."""
    with ThreadPoolExecutor(_THREADS) as pool:
        for future in [pool.submit(task) for task in tasks]:
            future.result()

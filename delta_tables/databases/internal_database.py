"""The catalog's database beside a lake's own that has the Delta tables and the views of internal state.

So `SHOW TABLES` of the lake's own database lists what an analyst asks, and nothing else. The tables lie where the lake
lies; the database's own folder, which the catalog chooses, stays empty: Spark deletes it with the database.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException

from patternlake.delta_tables.schema.locations import plain
from patternlake.delta_tables.schema.names import INTERNAL_VIEWS
from patternlake.delta_tables.schema.quoting import identifier, literal
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.udfs.errors import StateError

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from patternlake.delta_tables.committing.database import Database

logger = logging.getLogger(__name__)

VIEWS_PROPERTY = "patternlake.views"
"""Property of the views that do not depend on streams; its value marks all their texts."""
_PROPERTY = "patternlake.internal_of"
_LOGS = {table.log: table for table in TABLES.values()}


def list_names(spark: SparkSession, database: str) -> set[str]:
    """Names of the tables and views that the catalog has in a database."""
    rows = spark.sql(f"SHOW TABLES IN {identifier(database)}").collect()
    # Temporary views are the session's, whatever the database.
    return {row.tableName for row in rows if not row.isTemporary}


def place_of(spark: SparkSession, database: str) -> str:
    """Where the catalog has a database, or, where it has none of this name, where it would put it."""
    session: Any = spark._jsparkSession
    catalog = session.sessionState().catalog()
    if catalog.databaseExists(database):
        return unquote(str(catalog.getDatabaseMetadata(database).locationUri()))
    return default_place(spark, database)


def default_place(spark: SparkSession, database: str) -> str:
    """Where the catalog puts a database that is created without a location."""
    return f"{spark.conf.get('spark.sql.warehouse.dir')}/{database}.db"


def wake_catalog(spark: SparkSession, database: str) -> None:
    """Have the catalog look for a database, so that what the first looks load is there for those that follow."""
    spark.sql(f"SHOW DATABASES LIKE {literal(database)}").collect()
    spark.sql(f"DESCRIBE DATABASE EXTENDED {identifier(spark.catalog.currentDatabase())}").collect()


def describe(spark: SparkSession, database: str, clauses: str) -> list[Row]:
    """Describe a database, which is created with these clauses if the catalog has none of this name."""
    text = f"DESCRIBE DATABASE EXTENDED {identifier(database)}"
    try:
        return spark.sql(text).collect()
    except AnalysisException:
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {identifier(database)} {clauses}")
        return spark.sql(text).collect()


def is_internal(described: Iterable[Row]) -> bool:
    """Whether a database is the internal one of a lake, by what `DESCRIBE DATABASE EXTENDED` says."""
    return f"({_PROPERTY}," in _properties(described)


def claim(database: Database, registered: str, *, new: bool) -> set[str]:
    """Create the internal database, or make sure that it is this lake's; names that it has.

    Parameters
    ----------
    database
        The lake's.
    registered
        Its location as the catalog has it.
    new
        Whether the catalog has the lake's own database only since now. It may have dropped it before, with all files,
        so that tables are still registered that are no more.

    Raises
    ------
    StateError
        A database of this name has tables that are not PatternLake's.
    """
    spark, quoted = database.spark, identifier(database.internal)
    mark = f"{literal(_PROPERTY)} = {literal(_mark(registered))}"
    comment = literal(f"The Delta tables behind the views of {database.name}, and views of internal state.")
    described = describe(spark, database.internal, f"COMMENT {comment} WITH DBPROPERTIES ({mark})")
    names = list_names(spark, database.internal)
    same = f"({_PROPERTY},{_mark(registered)})" in _properties(described)
    if same and not (new and names):
        return names
    tables = [table for table in _describe(spark, database.internal, names) if table.name in _LOGS]
    ours = [table for table in tables if table.lies_at(database.folder(table.name))]
    if names and not ours and not is_internal(described):
        raise StateError(
            f"the database '{database.internal}' has {_show(names)}, and PatternLake did not create it; the lake "
            f"'{database.name}' needs a database of this name for its internal tables: give the lake another name"
        )
    gone = [
        table
        for table in tables
        if table not in ours or (new and not DeltaTable.isDeltaTable(spark, database.folder(table.name)))
    ]
    for table in gone:
        if not table.may_go:
            raise StateError(
                f"the table {table.name} of the database '{database.internal}' is not the one at {database.location}, "
                "and dropping it would delete its files; give the lake another name"
            )
        logger.info("unregistering table %s of database %s: it was at %s", table.name, database.internal, table.place)
        spark.sql(f"DROP TABLE IF EXISTS {identifier(database.internal, table.name)}")
    if not same:
        spark.sql(f"ALTER DATABASE {quoted} SET DBPROPERTIES ({mark})")
    return names - {table.name for table in gone}


def forget_former(database: Database, names: Collection[str]) -> None:
    """Take out of a lake's own database what a former PatternLake registered there; all files stay.

    Parameters
    ----------
    database
        The lake's, whose views are made.
    names
        What its own database has, of this use.
    """
    former = INTERNAL_VIEWS.union(_LOGS).intersection(names)
    if not former:
        return
    for entry in _describe(database.spark, database.name, former):
        name = identifier(database.name, entry.name)
        if entry.name in INTERNAL_VIEWS and entry.kind == "VIEW" and f"{VIEWS_PROPERTY}=" in entry.properties:
            database.spark.sql(f"DROP VIEW IF EXISTS {name}")
        elif entry.name in _LOGS and entry.may_go and entry.lies_at(database.folder(entry.name)):
            database.spark.sql(f"DROP TABLE IF EXISTS {name}")
        else:
            logger.info("%s stays registered: it may not be PatternLake's, or dropping it would delete its files", name)


@dataclass(frozen=True)
class _Entry:
    """A table or view as the catalog describes it."""

    name: str
    kind: str
    place: str
    properties: str

    @property
    def may_go(self) -> bool:
        """Whether it is a table whose files outlive it."""
        # Hive's metastore deletes the files of an external table where this property says so.
        return self.kind == "EXTERNAL" and "external.table.purge" not in self.properties

    def lies_at(self, folder: str) -> bool:
        """Whether it is the table of a folder."""
        return _same_place(self.place, folder)


def _describe(spark: SparkSession, database: str, names: Collection[str]) -> Iterator[_Entry]:
    """What the catalog has of tables and views, without a look at their files."""
    if not names:
        return
    rows = spark.sql(f"SHOW TABLE EXTENDED IN {identifier(database)} LIKE {literal('|'.join(names))}").collect()
    for row in rows:
        if row.isTemporary:
            continue
        told: dict[str, str] = {}
        for line in row.information.splitlines():
            name, _, value = line.partition(": ")
            # The text of a view comes later, and may have such lines, too.
            told.setdefault(name, value)
        yield _Entry(row.tableName, told.get("Type", ""), told.get("Location", ""), told.get("Table Properties", ""))


def _properties(described: Iterable[Row]) -> str:
    return next((str(row.info_value) for row in described if row.info_name == "Properties"), "")


def _mark(registered: str) -> str:
    # A digest: Spark hides properties with a value in which it sees a secret.
    return hashlib.sha256(plain(registered).encode()).hexdigest()


def _same_place(place: str, folder: str) -> bool:
    return plain(folder) in (plain(place), plain(unquote(place)))


def _show(names: Iterable[str]) -> str:
    first, *more = sorted(names)
    return f"the table or view {first}" if not more else f"{first} and {len(more)} other tables or views"

"""Tables that are made and registered without Spark's look at them, as what it would find is known.

Spark needs some fifty requests to create an empty table in an object store, ten to register one that is there, and
looks into a table's log for each view over it. None of this tells anything new: an empty table is one object, its first
commit, and which columns a table or a view has is known, those of attributes from publications. So the commit is put as
it is, and the session's catalog, which lies in this process, is told of tables and views directly.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from patternlake.delta_tables.committing.store_objects import put_commit
from patternlake.delta_tables.databases import migrations
from patternlake.delta_tables.databases.store_options import is_object_store
from patternlake.delta_tables.schema.locations import plain
from patternlake.delta_tables.schema.names import log_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from patternlake.delta_tables.committing.database import Database
    from patternlake.delta_tables.databases.views import View
    from patternlake.delta_tables.schema.table import Table

_DEFAULTS = "spark.databricks.delta.properties.defaults."
_CATALOG = ("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
_OUT = "view.query.out."
"""How properties begin by which Spark keeps the columns of a view's query."""


def knows_enough(spark: SparkSession) -> bool:
    """Whether Spark would make and register tables just as this module does.

    It would not with a metastore, with another catalog, or where a session's settings give all new tables properties.
    """
    conf: Any = spark._jsparkSession.conf()
    given = conf.getAll().keys().mkString("\n").split("\n")
    return (
        spark.conf.get("spark.sql.catalogImplementation") == "in-memory"
        and spark.conf.get(_CATALOG[0], None) == _CATALOG[1]
        and not any(name.startswith(_DEFAULTS) for name in given)
    )


def make(database: Database, table: Table, properties: Mapping[str, str]) -> None:
    """Put the first commit of a table, unless there is one.

    Parameters
    ----------
    database
        Where it belongs.
    table
        The table.
    properties
        Properties beyond the table's own.
    """
    actions = first_commit(database.spark, table, properties)
    lines = [json.dumps(action, separators=(",", ":"), ensure_ascii=False) for action in actions]
    log = database.folder(table.log, "_delta_log")
    if not is_object_store(log):
        # A store has no folders that are to be made first.
        os.makedirs(plain(log), exist_ok=True)
    put_commit(database.spark, f"{log}/{0:020}.json", lines)


def first_commit(spark: SparkSession, table: Table, properties: Mapping[str, str]) -> list[dict[str, Any]]:
    """The actions of the commit that Spark would make to create a table."""
    jvm: Any = spark._jvm
    now = time.time_ns() // 1_000_000
    partitions = list(table.partitions)
    settings = table.settings(properties)
    told = {
        "partitionBy": json.dumps(partitions, separators=(",", ":")), "clusterBy": "[]", "description": table.comment,
        "isManaged": "false", "properties": json.dumps(settings, separators=(",", ":")),
    }  # fmt: skip
    return [
        {
            "commitInfo": {
                "timestamp": now, "operation": "CREATE TABLE", "operationParameters": told,
                "isolationLevel": "Serializable", "isBlindAppend": True, "operationMetrics": {},
                "engineInfo": "PatternLake", "txnId": str(uuid.uuid4()),
            }
        },
        {
            "metaData": {
                "id": str(uuid.uuid4()), "description": table.comment, "format": {"provider": "parquet", "options": {}},
                "schemaString": str(jvm.org.apache.spark.sql.types.StructType.fromDDL(table.columns_text).json()),
                "partitionColumns": partitions, "configuration": settings, "createdTime": now,
            }
        },
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
    ]  # fmt: skip


class SessionCatalog:
    """The catalog of a session, told of tables and views as Spark would tell it, without a look at them.

    Parameters
    ----------
    database
        Where they belong, of which the catalog has neither tables nor views.
    """

    def __init__(self, database: Database) -> None:
        spark: Any = database.spark
        jvm = spark._jvm
        self._database = database
        self._catalog = spark._jsparkSession.sessionState().catalog()
        # Each part of a name is a message to the JVM, and so is each entry of a map.
        self._struct, self._some = jvm.org.apache.spark.sql.types.StructType, jvm.scala.Some
        self._identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier
        self._path, self._map = jvm.org.apache.hadoop.fs.Path, jvm.PythonUtils.toScalaMap
        self._json = jvm.com.fasterxml.jackson.databind.ObjectMapper()
        self._java_map = jvm.java.lang.Class.forName("java.util.Map")
        self._none = jvm.scala.Option.empty()
        self._external = jvm.org.apache.spark.sql.catalyst.catalog.CatalogTableType.EXTERNAL()
        # How Spark keeps a view, it shows; settings and current database stand in that.
        view = database.log(migrations.CARRIER)
        spark.sql(f"CREATE OR REPLACE VIEW {view} AS SELECT 1 AS one")
        try:
            name = self._identify(database.internal, log_name(migrations.CARRIER))
            self._known = _Record(self._catalog.getTableMetadata(name))
        finally:
            spark.sql(f"DROP VIEW {view}")

    def register_views(self, views: Iterable[View]) -> None:
        """Register views."""
        of_session = {name: value for name, value in pairs_of(self._known["properties"]) if not name.startswith(_OUT)}
        for view in views:
            names = [name for name, _ in view.columns]
            own = {f"{_OUT}numCols": str(len(names)), **{f"{_OUT}col.{n}": name for n, name in enumerate(names)}}
            text = self._some(view.text)
            entry = self._known.copy(
                identifier=self._identify(view.database, view.name),
                schema=self._struct.fromDDL(view.columns_text),
                properties=self._pairs({**of_session, **own, view.mark[0]: view.mark[1]}),
                comment=self._some(view.comment),
                viewText=text,
                viewOriginalText=text,
            )
            self._catalog.createTable(entry, True, False)

    def register_tables(self, tables: Iterable[Table]) -> None:
        """Register tables that are there."""
        storage, nothing = _Record(self._known["storage"]), self._pairs({})
        common = _Record(
            self._known.copy(
                tableType=self._external,
                provider=self._some("delta"),
                # Columns and properties are in the table's log.
                schema=self._struct(),
                properties=nothing,
                viewText=self._none,
                viewOriginalText=self._none,
                tracksPartitionsInCatalog=True,
            )
        )
        for table in tables:
            place = self._path(self._database.folder(table.log)).toUri()
            entry = common.copy(
                identifier=self._identify(self._database.internal, table.log),
                comment=self._some(table.comment),
                storage=storage.copy(locationUri=self._some(place)),
            )
            self._catalog.createTable(entry, True, False)

    def _identify(self, database: str, name: str) -> Any:
        return self._identifier(name, self._some(database))

    def _pairs(self, pairs: Mapping[str, str]) -> Any:
        return self._map(self._json.readValue(json.dumps(pairs), self._java_map))


def pairs_of(mapping: Any) -> Iterator[tuple[str, str]]:
    """Read a map of Scala's."""
    entries = mapping.iterator()
    while entries.hasNext():
        entry = entries.next()
        yield entry.productElement(0), entry.productElement(1)


class _Record:
    """A case class of Scala's, its fields by their names."""

    def __init__(self, record: Any) -> None:
        self._record = record
        fields = range(record.productArity())
        self._values = {record.productElementName(field): record.productElement(field) for field in fields}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def copy(self, **values: Any) -> Any:
        """A copy with other values of some fields."""
        return self._record.copy(*{**self._values, **values}.values())

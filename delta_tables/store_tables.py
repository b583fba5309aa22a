"""Tables of an object store, made and registered with as few requests as that takes.

Spark needs some fifty requests to create an empty table in a store, ten to register one that is there, and looks into
a table's log for each view over it. None of this tells anything new: an empty table is one object, its first commit,
and which columns a table has is known, those of attributes from publications. So the commit is put as it is, views are
made over stand-ins, and the session's catalog, which lies in this process, is told of the tables directly.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from patternlake.delta_tables.catalogue import TABLES
from patternlake.delta_tables.quoting import identifier, literal
from patternlake.delta_tables.tables import events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from patternlake.delta_tables.database import Database
    from patternlake.delta_tables.table import Table

_DEFAULTS = "spark.databricks.delta.properties.defaults."
_CATALOG = ("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
_THERE_ALREADY = "FileAlreadyExistsException"


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
    put_commit(database, table, f"{0:020}.json", lines)


def put_commit(database: Database, table: Table, name: str, lines: Iterable[str]) -> bool:
    """Put a commit of a table, unless there is one of its number, by the store that Delta itself commits with.

    Parameters
    ----------
    database, table
        Whose commit.
    name
        Of the object in the log.
    lines
        The actions, each as JSON.

    Returns
    -------
    bool
        Whether it was put; else another one is there.
    """
    spark: Any = database.spark
    jvm, session = spark._jvm, spark._jsparkSession
    # Delta's own choice for the scheme, or ours.
    stores = getattr(getattr(jvm.org.apache.spark.sql.delta.storage, "LogStore$"), "MODULE$")
    place = jvm.org.apache.hadoop.fs.Path(database.folder(table.log, "_delta_log", name))
    listed = jvm.java.util.ArrayList()
    for line in lines:
        listed.add(line)
    actions = jvm.scala.jdk.javaapi.CollectionConverters.asScala(listed.iterator())
    try:
        stores.apply(session).write(place, actions, False, session.sessionState().newHadoopConf())
    except Py4JJavaError as error:
        if _THERE_ALREADY not in str(error.java_exception.toString()):
            raise
        return False
    return True


def put_object(database: Database, table: Table, path: str, content: bytes) -> None:
    """Put an object of a table by one request, in the place of one that is there."""
    spark: Any = database.spark
    place = spark._jvm.org.apache.hadoop.fs.Path(database.folder(table.log, path))
    store = place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    builder = store.createFile(place)
    builder.overwrite(True)
    builder.recursive()
    # Hadoop would ask what is there.
    builder.opt("fs.s3a.create.performance", True)
    file = builder.build()
    try:
        file.write(bytearray(content))
    finally:
        file.close()


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


def register(database: Database, view: str, tables: Iterable[Table]) -> None:
    """Tell the session's catalog of tables as Spark would, without a look at them.

    Parameters
    ----------
    database
        Where they belong.
    view
        Plain name of a view in the catalog, whose entry is like that of a table but for what is set here.
    tables
        Those that are there.
    """
    spark: Any = database.spark
    jvm, catalog = spark._jvm, spark._jsparkSession.sessionState().catalog()
    some, none = jvm.scala.Some, jvm.scala.Option.empty()

    def identify(name: str, database_name: str) -> Any:
        return jvm.org.apache.spark.sql.catalyst.TableIdentifier(name, some(database_name))

    known = _copy_with(
        catalog.getTableMetadata(identify(view, database.name)),
        tableType=jvm.org.apache.spark.sql.catalyst.catalog.CatalogTableType.EXTERNAL(),
        provider=some("delta"),
        # Columns and properties are in the table's log.
        schema=jvm.org.apache.spark.sql.types.StructType(),
        properties=getattr(getattr(jvm.scala.collection.immutable, "Map$"), "MODULE$").empty(),
        comment=none,
        viewText=none,
        viewOriginalText=none,
        tracksPartitionsInCatalog=True,
    )
    for table in tables:
        place = jvm.org.apache.hadoop.fs.Path(database.folder(table.log)).toUri()
        storage = _copy_with(known.storage(), locationUri=some(place))
        catalog.createTable(
            _copy_with(known, identifier=identify(table.log, database.internal), storage=storage), True, False
        )


def _copy_with(record: Any, **values: Any) -> Any:
    """A copy of a case class of Scala's, with other values of some of its fields."""
    fields = range(record.productArity())
    given = [values.get(record.productElementName(field)) for field in fields]
    return record.copy(
        *(record.productElement(field) if value is None else value for field, value in zip(fields, given, strict=True))
    )


@contextmanager
def stand_ins(database: Database, attributes: Mapping[str, str]) -> Iterator[None]:
    """Have empty views with the names and columns of all tables in the catalog, for the length of a block.

    Parameters
    ----------
    database
        Where they belong.
    attributes
        Of the columns of `events` that are those of attributes: name and type.
    """
    spark = database.spark
    try:
        for table in TABLES.values():
            told = [(c.name, c.type, c.comment) for c in table.columns]
            if table is events.TABLE:
                told += [(name, type_, "") for name, type_ in attributes.items()]
            columns = ", ".join(f"{identifier(name)} COMMENT {literal(comment)}" for name, _, comment in told)
            values = ", ".join(f"CAST(NULL AS {type_}) AS {identifier(name)}" for name, type_, _ in told)
            spark.sql(f"CREATE OR REPLACE VIEW {database.log(table.name)} ({columns}) AS SELECT {values}")
        yield
    finally:
        for table in TABLES.values():
            spark.sql(f"DROP VIEW IF EXISTS {database.log(table.name)}")

"""Schema versions of a database: what to do to bring an older one up to this code's.

The version stands as a property of the publications table. A migration works on the tables that exist, may be run
again after a crash, and never changes what an answer says.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from delta.tables import DeltaTable
from pyspark.sql import functions as F

from patternlake.delta_tables.committing.commit_lock import lock_of
from patternlake.delta_tables.reading.table_logs import UnreadableError, one_look
from patternlake.delta_tables.schema.names import log_name
from patternlake.delta_tables.schema.quoting import identifier, literal
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.event_statistics import ATTRIBUTES
from patternlake.udfs.attributes import column_of, stored_type, types_of_attributes
from patternlake.udfs.errors import StateError

if TYPE_CHECKING:
    from patternlake.delta_tables.committing.database import Database
    from patternlake.delta_tables.reading.direct_reader import DirectReader

logger = logging.getLogger(__name__)

PROPERTY = "patternlake.schema_version"
CARRIER = "publications"
SCHEMA_VERSION = 17


def _smaller_blocks(database: Database) -> None:
    """Version 2: a block of `events` is 2^17 positions; it was 2^20."""
    block = "CAST(shiftright(position - 1, 17) AS INT)"
    database.spark.sql(f"UPDATE {database.log('events')} SET block = {block} WHERE block <> {block}")


def _given_numbers(database: Database) -> None:
    """Version 4: numbers of streams and queries are given out by `object_numbers`; they were bits of a CRC-32."""
    begun = {name: database.log(name) for name in ("publications", "intents")}
    number = "CAST(crc32(object) & 2147483647 AS INT)"
    for name, table in begun.items():
        if "object_id" not in database.table(name).columns:
            database.spark.sql(f"ALTER TABLE {table} ADD COLUMNS (object_id INT AFTER stream_id)")
        own = f"CASE WHEN job IN ('trends', 'groups') THEN {number} ELSE stream_id END"
        database.spark.sql(f"UPDATE {table} SET object_id = {own} WHERE object_id IS NULL")
    used = " UNION ".join(
        f"SELECT 'stream' AS kind, stream_id AS number, stream AS name FROM {table} "
        f"UNION SELECT job, object_id, object FROM {table} WHERE job IN ('trends', 'groups')"
        for table in begun.values()
    )
    numbers = database.log("object_numbers")
    database.spark.sql(
        f"INSERT INTO {numbers} (kind, number, name) SELECT kind, number, if(count(*) = 1, min(name), NULL) "
        f"FROM ({used}) LEFT ANTI JOIN {numbers} USING (kind, number) GROUP BY kind, number"
    )
    shared = f"SELECT kind, number, array_sort(collect_list(name)) AS names FROM ({used}) GROUP BY ALL"
    for row in database.spark.sql(f"SELECT * FROM ({shared}) WHERE size(names) > 1").collect():
        logger.warning(
            "the %s of database %s shared the number %d, and their rows are mixed: %s; rebuild each of them",
            row.kind,
            database.name,
            row.number,
            ", ".join(map(repr, row.names)),
        )


def _bound_operands(database: Database) -> None:
    """Version 11: in `pattern_matches` the operands that bind the positions are called so; they were takers."""
    table = TABLES["pattern_matches"]
    rows = database.table(table.name)
    if "takers" in rows.columns:
        place = DeltaTable.forName(database.spark, database.log(table.name)).detail().collect()[0].location
        # In one commit: Delta changes no name of a column in place but for readers of a later version of its protocol.
        written = rows.withColumnRenamed("takers", "operands").write.format("delta").mode("overwrite")
        written.option("overwriteSchema", "true").partitionBy(*table.partitions).save(place)


def _typed_attributes(database: Database) -> None:
    """Version 16: attributes of `events` are columns of their own types; they were a map of texts."""
    table = TABLES["events"]
    rows = database.table(table.name)
    if "attributes" not in rows.columns:
        return
    configured = f"SELECT DISTINCT stream_id, configuration FROM {database.log(CARRIER)} WHERE job = 'ingest'"
    columns: dict[str, tuple[str, str, set[int]]] = {}
    for row in database.spark.sql(configured).collect():
        for name, type_ in types_of_attributes(json.loads(row.configuration)).items():
            columns.setdefault(column_of(name, type_), (name, type_, set()))[2].add(row.stream_id)
    values = [F.col(identifier(name)) for name in table.column_names]
    for column, (name, type_, streams) in sorted(columns.items()):
        text = F.when(F.col("stream_id").isin(*streams), F.try_element_at("attributes", F.lit(name)))
        values.append(text.try_cast(stored_type(type_)).alias(column))
    place = DeltaTable.forName(database.spark, database.log(table.name)).detail().collect()[0].location
    # In one commit, as Delta drops no column in place but for readers of a later version of its protocol.
    written = rows.select(*values).write.format("delta").mode("overwrite")
    written.option("overwriteSchema", "true").partitionBy(*table.partitions).save(place)


def _add_columns(added: Mapping[str, Mapping[str, str]], database: Database) -> None:
    """Add columns to tables: by table, name to type. Those that are there stay as they are."""
    for table, columns in added.items():
        there = database.table(table).columns
        missing = ", ".join(f"{column} {type_}" for column, type_ in columns.items() if column not in there)
        if missing:
            database.spark.sql(f"ALTER TABLE {database.log(table)} ADD COLUMNS ({missing})")


def _keep(database: Database) -> None:
    """Leave tables as they are: new ones are there by now, and the version alone keeps older PatternLakes away."""


MIGRATIONS: dict[int, Callable[[Database], None]] = {
    2: _smaller_blocks,
    # How the values of attributes lie.
    3: partial(_add_columns, {"event_statistics": {"attributes": ATTRIBUTES}}),
    4: _given_numbers,
    # What repeats are known by.
    5: partial(_add_columns, {"events": {"event_id": "STRING"}}),
    # Moves are counted between states of whole subscriptions, with how much of their deadlines was gone.
    6: partial(
        _add_columns,
        {
            "machine_transitions": {
                "left_state": "STRING",
                "age": "INT",
                "following_state": "STRING",
                "following_age": "INT",
            },
            "machine_instances": {"age": "INT"},
        },
    ),
    # `forecasts`, `alerts` and `alert_deliveries`: who knows no alerts would maintain the database without them.
    7: _keep,
    # `pattern_state` and `pattern_matches`: who knows no kept patterns would maintain the database without them.
    8: _keep,
    # `observed_selectivities`: who does not know it would never make it smaller.
    9: _keep,
    # A batch of a kept pattern may write anew all that it keeps: who does not know would count the former as well.
    10: _keep,
    11: _bound_operands,
    # `values` of `pattern_matches` held aggregates, those of other matches at times. No answer shows these any more:
    # what MEASURES read now stands there, which no query of that time had.
    12: _keep,
    # The versions of the tables that a publication rests on; publications that are there record none.
    13: partial(_add_columns, {"publications": {"versions": "STRING"}}),
    # When a partition began: its pace depends on that. Moves are counted by what is left of deadlines at the event, and
    # open waits are counted, so `predict` takes the events of all subscriptions anew; until then, forecasts ask for it.
    14: partial(_add_columns, {"machine_instances": {"first_time": "TIMESTAMP"}}),
    # Alerts count what was held back, which the new table `held_alerts` has. Forecasts that were told by now have no
    # time, and hold nothing back.
    15: partial(_add_columns, {"alerts": {"watermark": "TIMESTAMP", "held_back": "BIGINT"}}),
    16: _typed_attributes,
    # Files of `events` may hold the positions of several blocks, of which the column tells the first: readers of former
    # versions look for positions by their block, and would miss them.
    17: _keep,
}
"""By the version that each leads to; every version from 2 to `SCHEMA_VERSION` has one."""


def version_of(database: Database) -> int:
    """Read the schema version of a database whose publications table is registered.

    Raises
    ------
    StateError
        The table does not carry a version: it is not PatternLake's.
    """
    found = properties(database).get(PROPERTY)
    if found is not None:
        return int(found)
    raise StateError(
        f"the table {database.log(CARRIER)} at {database.location} carries no {PROPERTY}: it was not made by "
        "PatternLake; give another database or location"
    )


def properties(database: Database) -> Mapping[str, str]:
    """Read the properties of `CARRIER`; without Spark where that is possible, which runs a job where it is new."""
    try:
        if database.direct is not None:
            return database.direct.properties(CARRIER)
    except UnreadableError as error:
        logger.info("%s; Spark reads it", error)
    rows = database.spark.sql(f"SHOW TBLPROPERTIES {database.log(CARRIER)}").collect()
    return {row.key: row.value for row in rows}


def is_current(reader: DirectReader) -> bool:
    """Whether the tables that a reader reads are of this code's version."""
    return reader.properties(CARRIER).get(PROPERTY) == str(SCHEMA_VERSION)


def check(database: Database, version: int) -> None:
    """Refuse a database that is newer than the code.

    Raises
    ------
    StateError
        It is.
    """
    if version > SCHEMA_VERSION:
        raise StateError(
            f"the database '{database.name}' at {database.location} has schema version {version}, but this "
            f"PatternLake knows versions up to {SCHEMA_VERSION}; update PatternLake"
        )


def migrate(database: Database, version: int) -> None:
    """Bring a database from an older version to this code's, one numbered migration after another.

    All tables of this code are there; those that the older version had are as it left them.
    """
    with _no_direct_commits(database), one_look(None):
        for target in range(version + 1, SCHEMA_VERSION + 1):
            logger.info("migrating database %s to schema version %d", database.name, target)
            MIGRATIONS[target](database)
            database.spark.sql(
                f"ALTER TABLE {database.log(CARRIER)} SET TBLPROPERTIES ({literal(PROPERTY)} = {literal(str(target))})"
            )


@contextmanager
def _no_direct_commits(database: Database) -> Iterator[None]:
    """Keep commits without Spark away from all tables for the length of a block."""
    folder = database.location.removeprefix("file:")
    with ExitStack() as held:
        if os.path.isdir(f"{folder}/{log_name(CARRIER)}"):
            for table in TABLES:
                held.enter_context(lock_of(folder, log_name(table)).together())
        yield

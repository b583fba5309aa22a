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


def _described_attributes(database: Database) -> None:
    """Version 3: `event_statistics` tells how the values of attributes lie."""
    table = database.log("event_statistics")
    if "attributes" not in database.table("event_statistics").columns:
        database.spark.sql(f"ALTER TABLE {table} ADD COLUMNS (attributes {ATTRIBUTES})")


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


def _event_ids(database: Database) -> None:
    """Version 5: `events` keeps what repeats are known by."""
    if "event_id" not in database.table("events").columns:
        database.spark.sql(f"ALTER TABLE {database.log('events')} ADD COLUMNS (event_id STRING)")


def _ages(database: Database) -> None:
    """Version 6: moves are counted between states of whole subscriptions, with how much of their deadlines was gone."""
    added = {
        "machine_transitions": {
            "left_state": "STRING", "age": "INT", "following_state": "STRING", "following_age": "INT",
        },
        "machine_instances": {"age": "INT"},
    }  # fmt: skip
    for name, columns in added.items():
        there = database.table(name).columns
        missing = ", ".join(f"{column} {type_}" for column, type_ in columns.items() if column not in there)
        if missing:
            database.spark.sql(f"ALTER TABLE {database.log(name)} ADD COLUMNS ({missing})")


def _alerts(database: Database) -> None:
    """Version 7: `forecasts`, `alerts` and `alert_deliveries`, which are there by now; older tables stay as they are.

    A PatternLake that knows no alerts would maintain such a database without them.
    """


def _kept_patterns(database: Database) -> None:
    """Version 8: `pattern_state` and `pattern_matches`, which are there by now; older tables stay as they are.

    A PatternLake that knows no kept patterns would maintain such a database without them.
    """


def _observed_selectivities(database: Database) -> None:
    """Version 9: `observed_selectivities`, which is there by now; older tables stay as they are.

    A PatternLake that does not know it would never make it smaller.
    """


def _kept_anew(database: Database) -> None:
    """Version 10: a batch of a kept pattern may write anew all that it keeps; tables stay as they are.

    A PatternLake that does not know it would count what was kept before as well.
    """


def _bound_operands(database: Database) -> None:
    """Version 11: in `pattern_matches` the operands that bind the positions are called so; they were takers."""
    table = TABLES["pattern_matches"]
    rows = database.table(table.name)
    if "takers" in rows.columns:
        place = DeltaTable.forName(database.spark, database.log(table.name)).detail().collect()[0].location
        # In one commit: Delta changes no name of a column in place but for readers of a later version of its protocol.
        written = rows.withColumnRenamed("takers", "operands").write.format("delta").mode("overwrite")
        written.option("overwriteSchema", "true").partitionBy(*table.partitions).save(place)


def _stored_aggregates(database: Database) -> None:
    """Version 12: `values` of `pattern_matches` held aggregates, those of other matches at times; tables stay as they
    are, since no answer shows these any more.

    What MEASURES read now stands there, which no query of that time had.
    """


def _recorded_versions(database: Database) -> None:
    """Version 13: publications record the versions of the tables that they rest on; those that are there, none."""
    if "versions" not in database.table("publications").columns:
        database.spark.sql(f"ALTER TABLE {database.log('publications')} ADD COLUMNS (versions STRING)")


def _waits(database: Database) -> None:
    """Version 14: `machine_instances` tells of a partition when it began; its pace depends on that.

    Moves are counted by what is left of deadlines at the event, and open waits are counted, so `predict` takes the
    events of all subscriptions anew; until then, forecasts ask for it.
    """
    if "first_time" not in database.table("machine_instances").columns:
        database.spark.sql(f"ALTER TABLE {database.log('machine_instances')} ADD COLUMNS (first_time TIMESTAMP)")


def _quiet_alerts(database: Database) -> None:
    """Version 15: alerts count what was held back, which `held_alerts` has; it is there by now.

    Forecasts that were told by now have no time, and hold nothing back.
    """
    there = database.table("alerts").columns
    added = {"watermark": "TIMESTAMP", "held_back": "BIGINT"}
    missing = ", ".join(f"{column} {type_}" for column, type_ in added.items() if column not in there)
    if missing:
        database.spark.sql(f"ALTER TABLE {database.log('alerts')} ADD COLUMNS ({missing})")


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


def _merged_blocks(database: Database) -> None:
    """Version 17: files of `events` may hold the positions of several blocks, of which the column tells the first.

    Nothing changes but what readers of former versions would miss: they look for positions by their block.
    """


MIGRATIONS: dict[int, Callable[[Database], None]] = {
    2: _smaller_blocks,
    3: _described_attributes,
    4: _given_numbers,
    5: _event_ids,
    6: _ages,
    7: _alerts,
    8: _kept_patterns,
    9: _observed_selectivities,
    10: _kept_anew,
    11: _bound_operands,
    12: _stored_aggregates,
    13: _recorded_versions,
    14: _waits,
    15: _quiet_alerts,
    16: _typed_attributes,
    17: _merged_blocks,
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

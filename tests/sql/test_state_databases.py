"""A database: creating, registering, migrating, refusing."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sql.empty_database import lay, opened

from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.databases import migrations
from patternlake.delta_tables.databases.opening import open_database
from patternlake.delta_tables.schema.quoting import identifier
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.jobs.configuration.file import Configuration
from patternlake.udfs.errors import ArgumentError, StateError


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Database:
    """A database in a folder whose name needs quoting."""
    return open_database(spark, "state_databases", str(tmp_path_factory.mktemp("a lake's; folder é")))


SHOWN = {
    *("alert_deliveries", "alerts", "event_statistics", "events", "forecast_evaluation", "forecasts", "group_matches"),
    *("pattern_matches", "publications", "quarantine", "streams", "subscription_matches", "subscriptions"),
}
"""What a lake without streams lists."""
HIDDEN = {
    *("group_state", "held_alerts", "machine_instances", "machine_states", "machine_transitions"),
    *("observed_selectivities", "pattern_state", "sketch_nodes", "trend_edges", "trend_vertices"),
}
"""The views of internal state."""


def _names(database: Database, name: str = "") -> set[str]:
    rows = database.spark.sql(f"SHOW TABLES IN {identifier(name or database.name)}").collect()
    return {row.tableName for row in rows if not row.isTemporary}  # those of the session, not of the database


def _forget(database: Database) -> None:
    """Drop the database, with which Spark deletes the folder of the lake."""
    database.spark.sql(f"DROP DATABASE {identifier(database.name)} CASCADE")


def test_the_database_lists_what_analysts_ask_and_another_one_the_rest(lake: Database) -> None:
    assert _names(lake) == SHOWN
    assert _names(lake, "state_databases_internal") == HIDDEN | {table.log for table in TABLES.values()}


def test_tables_have_comments_and_partitions(lake: Database) -> None:
    described = {row.col_name: row.comment for row in lake.spark.sql(f"DESCRIBE {lake.log('events')}").collect()}
    assert described["position"] == "arrival rank in the stream, from 1"
    detail = lake.spark.sql(f"DESCRIBE DETAIL {lake.log('events')}").collect()[0]
    assert detail.partitionColumns == ["stream_id", "block"]


def test_opening_again_changes_nothing(lake: Database) -> None:
    before = lake.spark.sql(f"DESCRIBE HISTORY {lake.log('publications')}").count()
    again = open_database(lake.spark, lake.name, lake.location)
    assert again == lake
    assert lake.spark.sql(f"DESCRIBE HISTORY {lake.log('publications')}").count() == before


def test_threads_of_one_session_open_a_database_at_once(lake: Database) -> None:
    wanted = _names(lake)
    # The other database lists tables by now whose files are gone.
    _forget(lake)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: open_database(lake.spark, lake.name, lake.location), range(4))) == [lake] * 4
    assert _names(lake) == wanted


def test_a_new_session_registers_the_tables_that_stand_at_the_location(lake: Database) -> None:
    # An external table's files outlive its entry in the catalog.
    lake.spark.sql(f"DROP DATABASE {identifier(lake.internal)} CASCADE")
    assert open_database(lake.spark, lake.name, lake.location) == lake
    assert lake.table("publications").count() == 0
    assert lake.spark.sql(f"DESCRIBE HISTORY {lake.log('publications')}").count() == 1


def test_a_missing_table_is_made_again(lake: Database) -> None:
    lake.spark.sql(f"DROP VIEW {lake.view('quarantine')}")
    open_database(lake.spark, lake.name, lake.location)
    assert lake.spark.table(lake.view("quarantine")).count() == 0


def test_another_location_under_the_same_name_is_refused(lake: Database, tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"is registered in this session at .*not at"):
        open_database(lake.spark, lake.name, str(tmp_path / "elsewhere"))


@pytest.mark.parametrize("folder", ["a[1]", "b^c", "d|e", "f\\g"])
def test_a_location_that_readers_cannot_take_is_refused_before_anything_is_made(
    spark: SparkSession, tmp_path: Path, folder: str
) -> None:
    with pytest.raises(ArgumentError, match=r"holds .* give a folder without them"):
        open_database(spark, "state_odd_place", str(tmp_path / folder / "lake"))
    assert list(tmp_path.iterdir()) == []
    assert not spark.catalog.databaseExists("state_odd_place")


def _lies_at(database: Database, table: str) -> str:
    return str(database.spark.sql(f"DESCRIBE DETAIL {database.log(table)}").collect()[0].location)


def test_a_database_that_was_dropped_may_be_opened_at_another_place(spark: SparkSession, tmp_path: Path) -> None:
    places = [str(tmp_path / folder) for folder in ("first", "second")]
    for place in places:
        database = opened(spark, "state_moved", place)
        assert _lies_at(database, "events") == f"file:{place}/events_log"
        assert database.table("events").count() == 0
        for name in _names(database):
            spark.sql(f"DROP VIEW {identifier(database.name, name)}")
        # With the folder of a database Spark deletes what is in it.
        spark.sql(f"ALTER DATABASE state_moved SET LOCATION '{tmp_path}/nothing'")
        _forget(database)
    assert (tmp_path / "first" / "events_log").is_dir()


def test_what_a_former_version_registered_beside_the_views_goes(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = lay(spark, tmp_path / "lake")
    spark.sql(f"CREATE DATABASE state_former LOCATION '{place}'")
    elsewhere = shutil.copytree(f"{place}/intents_log", tmp_path / "intents")
    for table in TABLES.values():
        folder = elsewhere if table.name == "intents" else f"{place}/{table.log}"
        spark.sql(f"CREATE TABLE state_former.{table.log} USING DELTA LOCATION '{folder}'")
    kept = "CREATE VIEW state_former.trend_edges AS SELECT 1 AS mine"
    ours = "CREATE VIEW state_former.{} TBLPROPERTIES ('patternlake.views' = 'x') AS SELECT 1 AS former"
    for text in (kept, ours.format("machine_states"), ours.format("events"), ours.format("publications")):
        spark.sql(text)
    database = open_database(spark, "state_former", place)
    # One table lies elsewhere, and one view is somebody else's.
    assert _names(database) == {*SHOWN, "intents_log", "trend_edges"}
    assert _names(database, "state_former_internal") == HIDDEN | {table.log for table in TABLES.values()}
    assert spark.table(database.view("events")).columns[0] == "stream"
    assert all((tmp_path / "lake" / table.log / "_delta_log").is_dir() for table in TABLES.values())
    assert database.table("events").count() == 0
    _forget(database)


def test_a_table_that_would_take_its_files_along_stays_registered(spark: SparkSession) -> None:
    # As former versions made all tables of a database without a location.
    spark.sql("CREATE DATABASE state_managed")
    described = spark.sql("DESCRIBE DATABASE state_managed").collect()
    folder = next(row.info_value for row in described if row.info_name == "Location").removeprefix("file:")
    lay(spark, folder)
    shutil.rmtree(f"{folder}/events_log")
    text = TABLES["events"].create_text("state_managed.events_log", "anywhere", {})
    spark.sql(text.replace("LOCATION 'anywhere'", ""))
    database = open_database(spark, "state_managed")
    assert _names(database) == {*SHOWN, "events_log"}
    assert _lies_at(database, "events") == f"file:{folder}/events_log"
    assert spark.table("state_managed.events_log").count() == database.table("events").count() == 0
    _forget(database)


def test_a_database_of_somebody_else_is_not_taken_for_the_internal_one(spark: SparkSession, tmp_path: Path) -> None:
    place = lay(spark, tmp_path / "lake")
    spark.sql("CREATE DATABASE state_beside_internal")
    spark.sql("CREATE VIEW state_beside_internal.mine AS SELECT 1 AS x")
    with pytest.raises(StateError, match="'state_beside_internal' has the table or view mine, and PatternLake did not"):
        open_database(spark, "state_beside", place)
    spark.sql("DROP VIEW state_beside_internal.mine")
    # An empty one is as good as none.
    database = open_database(spark, "state_beside", place)
    with pytest.raises(StateError, match="has the internal tables of the lake 'state_beside'; give that name"):
        open_database(spark, "state_beside_internal")
    _forget(database)


def test_without_a_location_the_catalog_says_where(spark: SparkSession) -> None:
    database = open_database(spark, "state_of_catalog")
    assert "state_of_catalog" in database.location
    assert open_database(spark, "state_of_catalog") == database
    assert _lies_at(database, "events") == f"{database.location}/events_log"
    assert _names(database) == SHOWN
    _forget(database)


def test_a_newer_database_is_refused_with_both_versions(lake: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", 0)
    with pytest.raises(StateError, match="has schema version 17, but this PatternLake knows versions up to 0"):
        open_database(lake.spark, lake.name, lake.location)


def test_an_older_database_is_migrated_step_by_step(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "older")
    older = opened(spark, "state_older", place)
    done: list[int] = []
    later = [migrations.SCHEMA_VERSION + 1, migrations.SCHEMA_VERSION + 2]
    monkeypatch.setattr(migrations, "MIGRATIONS", {v: lambda _, v=v: done.append(v) for v in later})
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", later[-1])
    open_database(spark, "state_older", place)
    assert done == later
    assert migrations.version_of(older) == later[-1]
    open_database(spark, "state_older", place)
    assert done == later


NOTHING = Configuration.from_text("streams: {s: {source: {format: parquet, path: data}, time: at, name: what}}")
"""A stream and no kept pattern."""
ADDED = {3: ("event_statistics", "attributes"), 5: ("events", "event_id"), 15: ("alerts", "held_back")}
"""By schema version: a column that it brought."""
MADE = {
    7: ("forecasts", "alerts", "alert_deliveries"),
    8: ("pattern_state", "pattern_matches"),
    15: ("held_alerts",),
}
"""By schema version: the tables that it brought."""
POSITIONS = [1, 1 << 17, (1 << 17) + 1, 1 << 20, (1 << 20) + 1]


def _of_version(spark: SparkSession, version: int, place: Path) -> str:
    """Tables as a former version made them; version 1 has events in blocks of 2 to the 20."""
    lay(spark, place)

    def log(name: str) -> str:
        return f"delta.`{place}/{name}_log`"

    for table, column in (added for later, added in ADDED.items() if version < later):
        spark.sql(f"ALTER TABLE {log(table)} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
        spark.sql(f"ALTER TABLE {log(table)} DROP COLUMN {column}")
    if version == 1:
        values = ", ".join(f"(1, {(position - 1) >> 20}, {position}, 'a')" for position in POSITIONS)
        spark.sql(f"INSERT INTO {log('events')} (stream_id, block, position, name) VALUES {values}")
    spark.sql(f"ALTER TABLE {log(migrations.CARRIER)} SET TBLPROPERTIES ('{migrations.PROPERTY}' = '{version}')")
    for name in (name for later, names in MADE.items() if version < later for name in names):
        shutil.rmtree(place / f"{name}_log")
    return str(place)


@pytest.mark.parametrize("version", [1, *(pytest.param(former, marks=pytest.mark.slow) for former in (2, 3, 6, 7))])
def test_a_database_of_a_former_version_gets_what_later_ones_brought(
    spark: SparkSession, tmp_path: Path, version: int
) -> None:
    place = _of_version(spark, version, tmp_path / "former")
    database = open_database(spark, f"state_version_{version}", place)
    assert migrations.version_of(database) == migrations.SCHEMA_VERSION
    rows = database.table("events").orderBy("position").select("position", "block").collect()
    in_smaller_blocks = list(zip(POSITIONS, [0, 0, 1, 7, 8], strict=True)) if version == 1 else []
    assert [tuple(row) for row in rows] == in_smaller_blocks
    for table, column in ADDED.values():
        assert column in database.table(table).columns
        assert column in spark.table(database.view(table)).columns
    for name in (name for names in MADE.values() for name in names):
        assert spark.table(database.view(name)).count() == 0
    _forget(database)


def test_a_database_of_version_8_gets_a_table_of_observed_selectivities(spark: SparkSession, tmp_path: Path) -> None:
    database = open_database(spark, "state_version_8", str(tmp_path / "version_8"))
    name = "observed_selectivities"
    spark.sql(f"DROP VIEW {database.view(name)}")
    spark.sql(f"DROP TABLE {database.log(name)}")
    shutil.rmtree(tmp_path / "version_8" / f"{name}_log")
    publications = database.log(migrations.CARRIER)
    spark.sql(f"ALTER TABLE {publications} SET TBLPROPERTIES ('{migrations.PROPERTY}' = '8')")
    spark.catalog.clearCache()
    database = open_database(spark, database.name, database.location)
    assert migrations.version_of(database) == migrations.SCHEMA_VERSION
    assert spark.table(database.view(name)).count() == 0
    _forget(database)


def test_a_database_of_version_10_calls_operands_what_it_called_takers(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "version_10"
    lay(spark, place)
    table = TABLES["pattern_matches"]
    log = f"delta.`{place}/{table.log}`"
    now = spark.sql(f"DESCRIBE DETAIL {log}").collect()[0]
    values = (
        "SELECT 3 AS pattern_id, 5 AS stream_id, array('a') AS part, 1L AS batch_id, 1L AS first_position, "
        "2L AS last_position, TIMESTAMP '2025-03-03 09:00' AS first_time, TIMESTAMP '2025-03-03 09:01' AS last_time, "
        "array(1L, 2L) AS positions, array(1, 0) AS operands, map('x', array(2L)) AS bindings, NULL AS values"
    )
    spark.sql(f"INSERT INTO {log} {values}")
    former = spark.table(log).withColumnRenamed("operands", "takers")
    writer = former.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.partitionBy("pattern_id").save(f"{place}/{table.log}")
    publications = f"delta.`{place}/{TABLES[migrations.CARRIER].log}`"
    spark.sql(f"ALTER TABLE {publications} SET TBLPROPERTIES ('{migrations.PROPERTY}' = '10')")

    database = open_database(spark, "state_version_10", str(place))
    assert migrations.version_of(database) == migrations.SCHEMA_VERSION
    row = database.table(table.name).collect()[0]
    assert tuple(row.asDict()) == table.column_names
    assert (row.pattern_id, row.positions, row.operands, row.bindings) == (3, [1, 2], [1, 0], {"x": [2]})
    detail = spark.sql(f"DESCRIBE DETAIL {log}").collect()[0]
    assert (detail.partitionColumns, detail.properties) == (now.partitionColumns, now.properties)
    comments = {row.col_name: row.comment for row in spark.sql(f"DESCRIBE TABLE {log}").collect()}
    assert comments["positions"] == "positions of all events, in the order of events"
    assert database.direct is not None
    assert database.direct.rows(table.name, ("operands",))["operands"].to_pylist() == [[1, 0]]
    migrations.MIGRATIONS[11](database)
    assert database.table(table.name).count() == 1, "done again after a crash it changes nothing"
    _forget(database)


def test_a_foreign_table_is_not_taken_for_a_database(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).write.format("delta").save(str(tmp_path / "foreign" / "publications_log"))
    with pytest.raises(StateError, match=r"carries no patternlake\.schema_version"):
        open_database(spark, "state_foreign", str(tmp_path / "foreign"))


@pytest.mark.parametrize("name", ["", "a b", "a`b", "a.b"])
def test_a_name_that_the_catalog_would_not_take_is_refused(spark: SparkSession, name: str) -> None:
    with pytest.raises(ArgumentError, match="may hold letters, digits and _ only"):
        open_database(spark, name)

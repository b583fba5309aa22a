"""The view of a stream: its events, with attributes as columns of their own types."""

from __future__ import annotations

import shutil
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from sql.clicks_and_weather import CLICKS_AND_WEATHER

from patternlake.delta_tables.databases import migrations
from patternlake.delta_tables.databases.opening import open_database
from patternlake.delta_tables.schema.timestamps import ISO
from patternlake.delta_tables.tables.events import view_text
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.runs.running import run
from patternlake.udfs.attributes import attribute_of, is_attribute

NAME = "stream_views"
OTHERS = """
  events:
    source: {{format: json, path: {folder}/data}}
    time: at
    name: page
  my clicks:
    source: {{format: json, path: {folder}/data}}
    time: at
    name: page
  käufe:
    source: {{format: json, path: {folder}/data}}
    time: at
    name: page
"""
STREAMS = "database: {name}\nlocation: {folder}/lake\nstreams:" + CLICKS_AND_WEATHER + OTHERS
ROWS = """
{"at": "2025-07-01 10:00:00", "page": "view", "user": "ann", "number": 7, "share": 1.0}
{"at": "2025-07-01 10:01:00", "page": "pay", "user": "ann", "price": 12.5, "paid": 3.25, "number": 8, "share": 1.0, \
"seen": "2025-07-01 09:00:00"}
"""


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("views")
    (folder / "data").mkdir()
    (folder / "data" / "rows.json").write_text(ROWS.lstrip())
    run(spark, Configuration.from_text(STREAMS.format(name=NAME, folder=folder)), "ingest")
    return folder


def clock(hour: int, minute: int) -> datetime:
    return datetime(2025, 7, 1, hour, minute, tzinfo=timezone.utc).astimezone().replace(tzinfo=None)


def test_attributes_are_columns_of_their_own_types(spark: SparkSession, folder: Path) -> None:
    view = spark.table(f"{NAME}.clicks")
    assert view.dtypes == [
        ("position", "bigint"),
        ("time", "timestamp"),
        ("key", "string"),
        ("name", "string"),
        ("a b", "int"),
        ("paid", "decimal(9,2)"),
        ("price", "double"),
        ("seen", "timestamp"),
    ]
    assert [tuple(row) for row in view.orderBy("position").collect()] == [
        (1, clock(8, 0), "ann", "view", 7, None, None, None),
        (2, clock(8, 1), "ann", "pay", 8, Decimal("3.25"), 12.5, clock(7, 0)),
    ]


def test_a_probabilistic_stream_shows_step_and_probability(spark: SparkSession, folder: Path) -> None:
    columns = spark.table(f"{NAME}.weather").columns
    assert columns == ["position", "time", "key", "name", "step", "probability"]


def test_a_name_that_a_table_has_or_the_catalog_cannot_take_gets_no_view(spark: SparkSession, folder: Path) -> None:
    assert "attributes" in spark.table(f"{NAME}.events").columns
    names = {row.viewName for row in spark.sql(f"SHOW VIEWS IN {NAME}").collect()}
    assert "clicks" in names
    assert not {"my clicks", "käufe"} & names


def test_a_lake_whose_attributes_are_texts_is_migrated(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "lake"
    shutil.copytree(folder / "lake", place)
    log = f"{place}/events_log"
    rows = spark.read.format("delta").load(log)
    columns = [name for name in rows.columns if is_attribute(name)]
    assert columns == ["price:double", "paid:decimal%289%2c2%29", "seen:timestamp", "a%20b:int"]
    texts = {"seen": F.date_format(F.col("`seen:timestamp`"), ISO)}
    pairs = [
        part
        for name, column in zip(map(attribute_of, columns), columns, strict=True)
        for part in (F.lit(name), texts.get(name, F.col(f"`{column}`").cast("string")))
    ]
    former = rows.withColumn("attributes", F.create_map(*pairs)).drop(*columns)
    writer = former.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.partitionBy("stream_id", "block").save(log)
    properties = f"('{migrations.PROPERTY}' = '15')"
    spark.sql(f"ALTER TABLE delta.`{place}/publications_log` SET TBLPROPERTIES {properties}")

    database = open_database(spark, f"{NAME}_of_texts", str(place))
    assert migrations.version_of(database) == migrations.SCHEMA_VERSION
    assert {*database.columns("events")} == {*rows.columns}
    for view in ("clicks", "weather", "events", "quarantine"):
        there, here = (spark.table(f"{name}.{view}") for name in (NAME, database.name))
        assert here.dtypes == there.dtypes
        assert sorted(map(repr, here.collect())) == sorted(map(repr, there.collect()))
    migrations.MIGRATIONS[16](database)
    assert database.table("events").count() == rows.count(), "done again after a crash it changes nothing"
    spark.sql(f"DROP DATABASE {database.name} CASCADE")


def test_the_view_of_all_events_has_attributes_as_texts(spark: SparkSession, folder: Path) -> None:
    rows = spark.sql(f"SELECT stream, position, attributes FROM {NAME}.events ORDER BY stream, position").collect()
    assert [tuple(row) for row in rows] == [
        ("clicks", 1, {"a b": "7"}),
        ("clicks", 2, {"price": "12.5", "paid": "3.25", "seen": "2025-07-01T07:00:00.000000Z", "a b": "8"}),
        *[(stream, position, {}) for stream in ("events", "käufe", "my clicks", "weather") for position in (1, 2)],
    ]


@pytest.mark.parametrize("known", [0, 2, 4])
def test_attributes_that_came_after_the_view_are_in_its_map(spark: SparkSession, folder: Path, known: int) -> None:
    database = open_database(spark, NAME, f"{folder}/lake")
    attributes = [("price", "double"), ("paid", "decimal(9,2)"), ("seen", "timestamp"), ("a b", "int")]
    with database.apart() as own:
        rows = own.spark.sql(view_text(database.log, attributes[:known])).collect()
    assert sorted(map(repr, rows)) == sorted(map(repr, spark.table(f"{NAME}.events").collect()))


def test_values_of_an_attribute_that_streams_have_with_different_types_are_texts(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rows.json").write_text('{"at": "2025-07-01 10:00:00", "page": "view", "x": "3.20"}\n')
    stream = "{{source: {{format: json, path: {folder}/data}}, time: at, name: page, attributes: {{x: {type}}}}}"
    types = {"exact": "'decimal(38,2)'", "near": "double", "text": "string"}
    streams = "\n".join(f"  {name}: {stream.format(folder=tmp_path, type=kind)}" for name, kind in types.items())
    text = f"database: {NAME}_of_types\nlocation: {tmp_path}/lake\nstreams:\n{streams}\n"
    run(spark, Configuration.from_text(text), "ingest")
    rows = spark.sql(f"SELECT stream, attributes FROM {NAME}_of_types.events ORDER BY stream").collect()
    assert [tuple(row) for row in rows] == [("exact", {"x": "3.20"}), ("near", {"x": "3.2"}), ("text", {"x": "3.20"})]
    spark.sql(f"DROP DATABASE {NAME}_of_types CASCADE")


def test_a_new_session_has_the_views(spark: SparkSession, folder: Path) -> None:
    columns = spark.table(f"{NAME}.clicks").columns
    # The files of an external table outlive its entry in the catalog.
    spark.sql(f"DROP DATABASE {NAME}_internal CASCADE")
    for row in spark.sql(f"SHOW VIEWS IN {NAME}").where("NOT isTemporary").collect():
        spark.sql(f"DROP VIEW {NAME}.{row.viewName}")
    open_database(spark, NAME, f"{folder}/lake")
    assert spark.table(f"{NAME}.clicks").where("price > 10").count() == 1
    assert spark.table(f"{NAME}.clicks").columns == columns


def test_what_was_there_before_is_left_alone(spark: SparkSession, folder: Path) -> None:
    spark.sql(f"DROP VIEW {NAME}.clicks")
    spark.sql(f"CREATE VIEW {NAME}.clicks AS SELECT 1 AS mine")
    (folder / "data" / "more.json").write_text(ROWS.lstrip())
    summaries = run(spark, Configuration.from_text(STREAMS.format(name=NAME, folder=folder)), "ingest", object="clicks")
    assert summaries[0].rows_in == 2
    assert spark.table(f"{NAME}.clicks").columns == ["mine"]


def test_a_changed_stream_changes_its_view(spark: SparkSession, folder: Path) -> None:
    share = "    probability: share\n"
    text = STREAMS.format(name=NAME, folder=folder).replace(share, f"{share}    attributes: {{number: int}}\n")
    run(spark, Configuration.from_text(text), "ingest", object="weather", rebuild=True)
    assert spark.table(f"{NAME}.weather").columns[-1] == "number"

"""Databases whose tables are put and registered without Spark's look at them are those that Spark makes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sql.clicks_and_weather import CLICKS_AND_WEATHER

from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.databases import known_tables, migrations
from patternlake.delta_tables.databases.opening import open_database
from patternlake.delta_tables.databases.stream_views import _PROPERTY as _STREAM
from patternlake.delta_tables.schema.table import Table
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.runs.running import run
from patternlake.udfs.errors import StateError

STREAMS = "database: {name}\nlocation: {folder}\nstreams:" + CLICKS_AND_WEATHER
ROW = {
    "at": "2025-07-01 10:00:00", "page": "view", "user": "ann", "number": 7, "share": 1.0, "price": 12.5, "paid": 3.25,
    "seen": "2025-07-01 09:00:00",
}  # fmt: skip
UNLIKE = ("patternlake.views", _STREAM, "view.sqlConfig.spark.databricks.delta.lastCommitVersionInSession")
"""Properties of views that differ: marks, and what Spark keeps of a session that has just made tables."""
PASSING = ("id", "createdTime", "timestamp", "txnId", "engineInfo")


def actions(folder: Path, table: Table) -> dict[str, dict[str, Any]]:
    text = (folder / table.log / "_delta_log" / f"{0:020}.json").read_text()
    return {kind: action for line in text.splitlines() for kind, action in json.loads(line).items()}


def lasting(action: dict[str, Any]) -> dict[str, Any]:
    """Without what each commit has anew, and with properties in any order."""
    found = {name: value for name, value in action.items() if name not in PASSING}
    if "operationParameters" in found:
        told = found["operationParameters"]
        found["operationParameters"] = {**told, "properties": json.loads(told["properties"])}
    return found


@contextmanager
def left_to_spark() -> Iterator[None]:
    """Whoever opens a database meanwhile, has Spark make and register its tables."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_tables, "knows_enough", lambda _: False)
        yield


def columns(lake: Database) -> dict[str, Any]:
    """Of each table and its view: the columns with their types and comments."""

    def described(name: str) -> list[Any]:
        return [row.asDict() for row in lake.spark.sql(f"DESCRIBE {name}").collect()]

    return {
        table.name: (described(lake.log(table.name)), table.view and described(lake.view(table.name)))
        for table in TABLES.values()
    }


def entries(database: Database, *streams: str) -> dict[str, list[Any]]:
    """What the catalog itself holds of each table and view, but for its name, place and age."""
    spark: Any = database.spark
    catalog, jvm = spark._jsparkSession.sessionState().catalog(), spark._jvm
    views = [table.name for table in TABLES.values() if table.view is not None]
    names = [(database.internal, table.log) for table in TABLES.values()]
    names += [(database.database_of(name), name) for name in (*views, *streams)]
    found = {}
    for place, name in names:
        held = catalog.getTableMetadata(jvm.org.apache.spark.sql.catalyst.TableIdentifier(name, jvm.scala.Some(place)))
        parts = (
            held.schema().json(), held.provider(), held.partitionColumnNames(), held.comment(), held.viewText(),
            held.viewOriginalText(), held.tableType(), held.storage().properties(), held.tracksPartitionsInCatalog(),
        )  # fmt: skip
        texts = [each if isinstance(each, str | bool) else each.toString() for each in parts]
        # Marks are of texts, in which the database has its name.
        properties = dict(known_tables.pairs_of(held.properties()))
        assert bool({"patternlake.views", _STREAM} & properties.keys()) == held.viewText().isDefined()
        kept = {key: value for key, value in properties.items() if key not in UNLIKE}
        found[name] = [
            *(text.replace(database.name, "LAKE") if isinstance(text, str) else text for text in texts), kept,
        ]  # fmt: skip
    return found


@pytest.fixture(scope="module")
def of_spark(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Database:
    with left_to_spark():
        return open_database(spark, "made_by_spark", str(tmp_path_factory.mktemp("made_by_spark") / "lake"))


@pytest.fixture(scope="module")
def put(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Database:
    return open_database(spark, "made_by_puts", str(tmp_path_factory.mktemp("made_by_puts") / "lake"))


def test_first_commits_are_those_of_spark(of_spark: Database, put: Database) -> None:
    for table in TABLES.values():
        theirs, ours = (actions(Path(each.location), table) for each in (of_spark, put))
        assert {kind: lasting(action) for kind, action in ours.items()} == {
            kind: lasting(action) for kind, action in theirs.items()
        }


def test_tables_and_views_are_those_of_spark(of_spark: Database, put: Database) -> None:
    assert columns(put) == columns(of_spark)
    assert entries(put) == entries(of_spark)
    for table in TABLES.values():
        assert put.table(table.name).count() == 0
        if table.view is not None:
            assert put.spark.table(put.view(table.name)).count() == 0


def test_views_of_streams_are_those_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rows.json").write_text(json.dumps(ROW))
    with left_to_spark():
        theirs = open_database(spark, "streams_by_spark", str(tmp_path))
    run(spark, Configuration.from_text(STREAMS.format(name=theirs.name, folder=tmp_path)), ["ingest"])
    ours = open_database(spark, "streams_by_puts", str(tmp_path))
    assert not ours.made
    assert entries(ours, "clicks", "weather") == entries(theirs, "clicks", "weather")
    for view in ("clicks", "weather", "events"):
        rows = [spark.table(lake.view(view)).collect() for lake in (ours, theirs)]
        assert len(rows[0]) > 0
        assert rows[0] == rows[1]


def test_what_a_process_left_that_died_before_its_first_commit_is_made(spark: SparkSession, tmp_path: Path) -> None:
    for table in TABLES.values():
        (tmp_path / table.log / "_delta_log").mkdir(parents=True)
    database = open_database(spark, "begun", str(tmp_path))
    assert database.made
    assert {table.name: database.table(table.name).count() for table in TABLES.values()} == dict.fromkeys(TABLES, 0)


def test_a_database_that_is_there_is_registered_and_stays(put: Database) -> None:
    folder = Path(put.location)
    before = {table.log: actions(folder, table) for table in TABLES.values()}
    again = open_database(put.spark, "again", str(folder))
    assert not again.made
    assert {table.log: actions(folder, table) for table in TABLES.values()} == before
    assert columns(again) == columns(put)
    put.spark.sql(f"INSERT INTO {again.log('object_numbers')} (kind, number, name) VALUES ('stream', 7, 'seven')")
    assert [row["name"] for row in put.table("object_numbers").collect()] == ["seven"]


def test_a_database_that_is_newer_is_refused(put: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", migrations.SCHEMA_VERSION - 1)
    with pytest.raises(StateError, match="but this PatternLake knows versions up to"):
        open_database(put.spark, "newer", put.location)


def test_of_two_that_make_a_table_one_is_heeded(of_spark: Database) -> None:
    table = TABLES["streams"]
    before = actions(Path(of_spark.location), table)
    known_tables.make(of_spark, table, {})
    assert actions(Path(of_spark.location), table) == before


def test_where_new_tables_are_given_properties_spark_makes_them(spark: SparkSession) -> None:
    own = spark.newSession()
    assert known_tables.knows_enough(own)
    own.conf.set("spark.databricks.delta.properties.defaults.enableDeletionVectors", "true")
    assert not known_tables.knows_enough(own)

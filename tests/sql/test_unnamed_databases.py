"""A database that jobs open without names: the catalog learns them when the first of them is asked for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession
from sql.clicks_and_weather import CLICKS_AND_WEATHER
from sql.empty_database import lay

from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.databases import known_tables, migrations
from patternlake.delta_tables.databases.opening import open_database
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.runs.running import perform
from patternlake.jobs.runs.steps import steps
from patternlake.udfs.errors import StateError

ROW = {
    "at": "2025-07-01 10:00:00", "page": "view", "user": "ann", "number": 7, "share": 1.0, "price": 12.5, "paid": 3.25,
    "seen": "2025-07-01 09:00:00",
}  # fmt: skip


def unnamed(spark: SparkSession, location: Path | str) -> Database:
    return open_database(spark, f"unnamed_{uuid4().hex}", str(location), named=False)


def is_known(database: Database) -> bool:
    """Whether the catalog has heard of a database, and of its internal one."""
    catalog = database.spark.catalog
    known = [catalog.databaseExists(name) for name in (database.name, database.internal)]
    assert len({*known}) == 1
    return known[0]


def test_what_is_whole_is_opened_without_a_word_to_the_catalog(spark: SparkSession, tmp_path: Path) -> None:
    database = unnamed(spark, lay(spark, tmp_path / "a lake é"))
    assert database.folder_on_disk == str(tmp_path / "a lake é")
    assert database.direct is not None
    assert database.direct.rows("events", ["position"], []).num_rows == 0
    assert not is_known(database)


@pytest.mark.parametrize("ask", [Database.log, Database.view, Database.table])
def test_whoever_names_a_table_finds_it(spark: SparkSession, tmp_path: Path, ask: object) -> None:
    database = unnamed(spark, lay(spark, tmp_path))
    assert callable(ask)
    ask(database, "streams")
    assert is_known(database)
    assert spark.sql(f"SELECT * FROM {database.view('streams')}").collect() == []
    assert {row.tableName for row in spark.sql(f"SHOW TABLES IN {database.internal}").collect()} >= {
        table.log for table in TABLES.values()
    }


def test_a_copy_in_a_session_of_its_own_names_them_too(spark: SparkSession, tmp_path: Path) -> None:
    database = unnamed(spark, lay(spark, tmp_path))
    with database.apart() as own:
        assert not is_known(database)
        assert own.table("events").count() == 0
    assert is_known(database)


def test_what_is_not_whole_is_made_so_at_once(spark: SparkSession, tmp_path: Path) -> None:
    assert unnamed(spark, tmp_path / "new").made
    lay(spark, tmp_path / "less")
    shutil.rmtree(tmp_path / "less" / "alerts_log")
    database = unnamed(spark, tmp_path / "less")
    assert is_known(database)
    assert database.table("alerts").count() == 0


def test_other_versions_are_told_at_once(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = lay(spark, tmp_path)
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", migrations.SCHEMA_VERSION - 1)
    with pytest.raises(StateError, match="but this PatternLake knows versions up to"):
        unnamed(spark, place)


def test_where_the_catalog_outlives_the_session_it_is_told_at_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = lay(spark, tmp_path)
    monkeypatch.setattr(known_tables, "knows_enough", lambda _: False)
    assert is_known(unnamed(spark, place))


def test_a_name_that_the_catalog_has_for_another_place_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    first = open_database(spark, f"unnamed_{uuid4().hex}", lay(spark, tmp_path / "first"))
    with pytest.raises(StateError, match="is registered in this session at"):
        open_database(spark, first.name, lay(spark, tmp_path / "second"), named=False)
    assert open_database(spark, first.name, first.location, named=False).log("events") == first.log("events")


def test_jobs_name_nothing_where_nothing_is_new_and_what_they_need_where_something_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    def rows_in() -> list[int]:
        return [each.rows_in for each in perform(database, configuration, steps(configuration, "all"))]

    (tmp_path / "data").mkdir()
    text = f"location: {tmp_path}/lake\nstreams:" + CLICKS_AND_WEATHER.format(folder=tmp_path)
    configuration = Configuration.from_text(text)
    lay(spark, tmp_path / "lake")
    for number in range(2):
        (tmp_path / "data" / f"{number}.json").write_text(json.dumps(ROW))
        database = unnamed(spark, tmp_path / "lake")
        assert sum(rows_in()) > 0
        assert is_known(database)
        assert spark.table(f"{database.name}.clicks").count() == number + 1
    database = unnamed(spark, tmp_path / "lake")
    assert sum(rows_in()) == 0
    assert not is_known(database)

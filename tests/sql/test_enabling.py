"""`enable`: what it takes, what it tells, and which database is the current one afterwards."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import patternlake
from patternlake.delta_tables.databases import workers
from patternlake.jobs.configuration.file import Configuration
from patternlake.udfs.errors import ArgumentError, ConfigurationError, StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("enabling")


@pytest.fixture(scope="module")
def lakes(spark: SparkSession, folder: Path) -> Iterator[tuple[str, str]]:
    """Two databases at places of their own."""
    names = ("enabled_first", "enabled_second")
    for name in names:
        patternlake.enable(spark.newSession(), name, str(folder / name), create=True)
    yield names
    for name in names:
        spark.sql(f"DROP DATABASE {name} CASCADE")


def _told(session: SparkSession, *given: object, **named: object) -> list[str]:
    """The warnings of a call of `enable`, which belong to this file's line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert patternlake.enable(session, *given, **named) is session  # type: ignore[arg-type]
    mine = [each for each in caught if each.category is UserWarning]
    assert all(each.filename == __file__ for each in mine)
    return [str(each.message) for each in mine]


def test_a_location_without_a_database_is_told_with_the_way_out(
    spark: SparkSession, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = str(folder / "mistyped")
    (told,) = _told(spark.newSession(), "enabled_empty", place)
    assert told.startswith(f"there was no database at {place}, so an empty one was made")
    assert "patternlake.run(spark, configuration) fills it" in told
    assert "DROP DATABASE `enabled_empty` CASCADE" in told
    assert told in caplog.text
    # It is there from then on.
    assert _told(spark.newSession(), "enabled_empty", place) == []
    spark.sql("DROP DATABASE enabled_empty CASCADE")
    assert _told(spark.newSession(), "enabled_empty", str(folder / "wanted"), create=True) == []
    spark.sql("DROP DATABASE enabled_empty CASCADE")


def test_a_run_that_makes_a_lake_says_so_and_names_those_beside_it(
    spark: SparkSession, folder: Path, lakes: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    conf = folder / "mistyped.yaml"
    place = folder / "enabled_frist"
    (folder / "nothing").mkdir()
    source = "{source: {format: csv, path: nothing, options: {header: true}}, schema: at STRING, time: at, name: at}"
    conf.write_text(f"database: enabled_mistyped\nlocation: {place}\nstreams:\n  some: {source}\n")
    patternlake.run(spark.newSession(), conf, "ingest")
    (told,) = (each for each in caplog.messages if "new lake" in each)
    assert told.startswith(f"made a new lake at {place}; there was none. Lakes beside it: {folder / lakes[0]}, ")
    assert f"{folder / lakes[1]}" in told
    assert told.endswith("; if you mean one of them, put `location` right and delete the new one")
    patternlake.run(spark.newSession(), conf, "ingest")
    assert sum("new lake" in each for each in caplog.messages) == 1
    spark.sql("DROP DATABASE enabled_mistyped CASCADE")


def test_the_database_is_the_current_one_unless_another_was_chosen(
    spark: SparkSession, folder: Path, lakes: tuple[str, str]
) -> None:
    first, second = lakes
    session = spark.newSession()
    assert _told(session, first, str(folder / first)) == []
    assert session.catalog.currentDatabase() == first
    assert session.sql("SELECT * FROM quarantine").columns == [
        "stream",
        "reason",
        "detail",
        "row",
        "origin",
        "batch_id",
    ]
    (told,) = _told(session, second, str(folder / second))
    assert f"answered from database '{first}' at {folder / first}; from here on they answer from '{second}'" in told
    assert session.catalog.currentDatabase() == second
    # Once more is no change.
    assert _told(session, second, str(folder / second)) == []
    session.sql("CREATE DATABASE enabled_chosen")
    session.catalog.setCurrentDatabase("enabled_chosen")
    another, stays = _told(session, first, str(folder / first))
    assert f"from here on they answer from '{first}'" in another
    assert stays == (
        f"'enabled_chosen' was chosen as the current database and stays it: the views are {first}.events, "
        f"{first}.quarantine and so on, or events and quarantine after USE {first}; functions need no prefix"
    )
    assert session.catalog.currentDatabase() == "enabled_chosen"
    assert session.sql(f"SELECT * FROM {first}.events").count() == 0
    assert _told(session, first, str(folder / first)) == []
    session.sql("DROP DATABASE enabled_chosen")


def test_another_spelling_of_the_same_place_is_no_change(
    spark: SparkSession, folder: Path, lakes: tuple[str, str]
) -> None:
    place = folder / lakes[0]
    session = spark.newSession()
    assert _told(session, lakes[0], str(place)) == []
    session.sql("CREATE DATABASE enabled_aside")
    session.catalog.setCurrentDatabase("enabled_aside")
    for spelling in (f"file:{place}", place.as_uri(), f"{place}/", None):
        assert _told(session, lakes[0], spelling) == [], spelling
    session.sql("DROP DATABASE enabled_aside")


@pytest.mark.parametrize("kind", ["text", "path", "configuration"])
def test_a_configuration_says_which_database_and_where(
    spark: SparkSession, folder: Path, lakes: tuple[str, str], kind: str
) -> None:
    file = folder / "lake.yaml"
    file.write_text(f"database: {lakes[0]}\nlocation: {lakes[0]}\n")
    given = {"text": str(file), "path": file, "configuration": Configuration.load(file)}[kind]
    session = spark.newSession()
    assert _told(session, given) == []
    assert session.catalog.currentDatabase() == lakes[0]
    with pytest.raises(ArgumentError, match="location 'x' beside a configuration"):
        patternlake.enable(session, given, "x")  # type: ignore[arg-type]


def test_a_location_is_of_no_use_to_a_session_without_a_database() -> None:
    with pytest.raises(ArgumentError, match=r"location './lake' without a database; leave it out, too: location=None"):
        patternlake.session(database=None)


def test_a_configuration_that_is_not_there_is_named(spark: SparkSession) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.yaml: there is no such configuration file"):
        patternlake.enable(spark, "nowhere.yaml")


def test_workers_without_the_environment_are_told(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers.check(spark)
    bare = tmp_path / "python"
    # The same interpreter without its packages: -S leaves them out.
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(bare))
    with pytest.raises(StateError) as caught:
        workers.check(spark)
    told = str(caught.value)
    assert told.startswith(f"Spark's workers run the Python '{bare}', the driver runs '{sys.executable}'")
    assert f"set PYSPARK_PYTHON={sys.executable} before the session does" in told
    with pytest.raises(StateError, match="Spark's workers run the Python"):
        patternlake.run(spark, Configuration.from_text(f"database: unmade\nlocation: {tmp_path}/lake"))
    with pytest.raises(StateError, match="Spark's workers run the Python"):
        patternlake.enable(spark, "unmade", f"{tmp_path}/lake")
    # Nothing was made or registered by what was refused.
    assert not (tmp_path / "lake").exists()
    assert not spark.catalog.databaseExists("unmade")


def test_an_interpreter_that_is_not_there_is_told(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "no-such-python")
    with pytest.raises(StateError, match="Spark's workers run the Python 'no-such-python'"):
        workers.check(spark)


def test_a_session_of_connect_is_refused_with_what_is_needed() -> None:
    connect = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    needed = r"a session of Spark Connect, and PatternLake needs a classic one.*patternlake\.session\(\)"
    with pytest.raises(StateError, match=needed):
        patternlake.enable(connect)
    with pytest.raises(StateError, match=needed):
        patternlake.run(connect, Configuration.from_text("database: lake"))
    with pytest.raises(StateError, match=needed):
        patternlake.match_seq(connect, "letters", "A ; B")

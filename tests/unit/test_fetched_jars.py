"""The jars of packages are remembered from one start of Spark to the next; Ivy is asked where that could be wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from patternlake.sql_ext.spark_start.fetched_jars import recall, remember

DELTA = {"spark.jars.packages": "io.delta:delta-spark_4.2_2.13:4.4.0", "spark.app.name": "patternlake"}
STARTED = """
import sys
from patternlake.sql_ext.session import bare_session
spark = bare_session("local[1]", {"spark.sql.warehouse.dir": sys.argv[1]})
spark.sql("CREATE TABLE names USING DELTA AS SELECT 'ann' AS name")
conf, name = spark.sparkContext.getConf(), spark.table("names").first()["name"]
print(conf.get("spark.jars.packages"), conf.get("spark.jars").count("delta-spark"), name)
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), "SPARK_HOME": str(tmp_path / "spark")}


@pytest.fixture
def jars(tmp_path: Path) -> str:
    """Two files, in a folder whose name has a space."""
    folder = tmp_path / "my jars"
    folder.mkdir()
    files = [folder / "delta.jar", folder / "storage.jar"]
    for file in files:
        file.touch()
    return ",".join(file.as_uri() for file in files)


def test_what_was_found_for_settings_is_recalled_for_the_same_ones(environment: dict[str, str], jars: str) -> None:
    assert recall(DELTA, environment) is None
    remember(DELTA, environment, jars)
    assert recall(DELTA, environment) == jars
    assert recall({**DELTA, "spark.app.name": "another"}, environment) == jars


@pytest.mark.parametrize(
    "other",
    [
        {"spark.jars.packages": "io.delta:delta-spark_4.2_2.13:4.5.0"},
        {"spark.jars.packages": f"{DELTA['spark.jars.packages']},a:b:1"},
        {"spark.jars.excludes": "org.slf4j:slf4j-api"},
        {"spark.jars.repositories": "mirror"},
        {"spark.jars.ivy": "elsewhere"},
    ],
)
def test_for_others_ivy_is_asked(environment: dict[str, str], jars: str, other: dict[str, str]) -> None:
    remember(DELTA, environment, jars)
    assert recall({**DELTA, **other}, environment) is None
    remember({**DELTA, **other}, environment, jars)
    assert recall({**DELTA, **other}, environment) == jars


def test_so_it_is_for_another_spark(environment: dict[str, str], jars: str) -> None:
    remember(DELTA, environment, jars)
    assert recall(DELTA, {**environment, "SPARK_HOME": "/opt/other"}) is None


@pytest.mark.parametrize(
    "settings",
    [
        {"spark.jars": "mine.jar"},
        {"spark.jars.ivySettings": "mine.xml"},
        {"spark.jars.packages": "a:b:1.+"},
        {"spark.jars.packages": "a:b:[1,2)"},
        {"spark.jars.packages": "a:b:latest.release"},
        {"spark.jars.packages": "a:b:1-SNAPSHOT"},
    ],
)
def test_nothing_is_remembered_where_jars_may_be_others_each_time(
    environment: dict[str, str], jars: str, settings: dict[str, str]
) -> None:
    remember({**DELTA, **settings}, environment, jars)
    assert recall({**DELTA, **settings}, environment) is None
    assert not Path(environment["XDG_CACHE_HOME"]).exists()


def test_nor_where_sparks_defaults_or_the_environment_name_jars(environment: dict[str, str], jars: str) -> None:
    remember(DELTA, environment, jars)
    assert recall(DELTA, {**environment, "PYSPARK_SUBMIT_ARGS": "--master local[2] pyspark-shell"}) == jars
    for named in ("--jars mine.jar", "--packages a:b:1", "--conf spark.jars=mine.jar"):
        assert recall(DELTA, {**environment, "PYSPARK_SUBMIT_ARGS": f"{named} pyspark-shell"}) is None
    conf = Path(environment["SPARK_HOME"]) / "conf"
    conf.mkdir(parents=True)
    (conf / "spark-defaults.conf").write_text("spark.driver.memory 2g\n")
    assert recall(DELTA, environment) == jars
    (conf / "spark-defaults.conf").write_text("spark.jars mine.jar\n")
    assert recall(DELTA, environment) is None
    (conf / "other.conf").write_text("spark.driver.memory 2g\n")
    instead = f"--properties-file {conf / 'other.conf'} pyspark-shell"
    assert recall(DELTA, {**environment, "PYSPARK_SUBMIT_ARGS": instead}) == jars


def test_a_jar_that_is_gone_is_fetched_anew(environment: dict[str, str], jars: str, tmp_path: Path) -> None:
    remember(DELTA, environment, jars)
    (tmp_path / "my jars" / "storage.jar").unlink()
    assert recall(DELTA, environment) is None


@pytest.mark.parametrize("note", ["", "{}", "[]", "null", '{"spark.jars": null}'])
def test_so_is_what_a_broken_note_tells(environment: dict[str, str], jars: str, note: str) -> None:
    remember(DELTA, environment, jars)
    (written,) = Path(environment["XDG_CACHE_HOME"], "patternlake").iterdir()
    written.write_text(note)
    assert recall(DELTA, environment) is None


def test_without_a_place_for_a_cache_sessions_start_as_ever(environment: dict[str, str], jars: str) -> None:
    Path(environment["XDG_CACHE_HOME"]).touch()
    remember(DELTA, environment, jars)
    assert recall(DELTA, environment) is None


@pytest.mark.processes
def test_a_second_session_takes_the_jars_of_the_first(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    told = []
    for number in range(2):
        warehouse = tmp_path / str(number)
        command = [sys.executable, "-c", STARTED, str(warehouse)]
        ended = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        told.append(ended.stdout.split())
    assert told[0][0].startswith("io.delta:delta-spark")
    assert told[1][0] == "None"
    assert [each[1:] for each in told] == [["1", "ann"]] * 2

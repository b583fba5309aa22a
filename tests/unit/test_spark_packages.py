"""Packages that a user asks for are fetched beside Delta's."""

from __future__ import annotations

from pathlib import Path

import pytest

from patternlake.sql_ext.spark_start.spark_packages import find_packages

KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"


@pytest.mark.parametrize("line", ["{key} {value}", "  {key}={value}", "{key} : {value}  ", "{key}\t{value}"])
def test_the_defaults_of_spark_are_read(tmp_path: Path, line: str) -> None:
    text = line.format(key="spark.jars.packages", value=f"{KAFKA}, a:b:1")
    lines = ["# spark.jars.packages no:no:1", "spark.jars.packagesX no:no:2", text]
    (tmp_path / "spark-defaults.conf").write_text("\n".join(lines))
    assert find_packages({}, {"SPARK_CONF_DIR": str(tmp_path)}) == [KAFKA, "a:b:1"]


def test_defaults_stand_in_the_conf_folder_of_spark(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(f"spark.jars.packages {KAFKA}")
    assert find_packages({}, {"SPARK_HOME": str(tmp_path)}) == [KAFKA]
    assert find_packages({}, {"SPARK_HOME": str(tmp_path / "conf")}) == [], "there is no such file"


def test_a_file_that_is_named_stands_for_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.jars.packages a:b:1")
    (tmp_path / "my own.conf").write_text(f"spark.jars.packages {KAFKA}")
    environment = {"SPARK_CONF_DIR": str(tmp_path)}
    assert find_packages({}, environment) == ["a:b:1"]
    named = f"--properties-file '{tmp_path}/my own.conf' pyspark-shell"
    assert find_packages({}, {**environment, "PYSPARK_SUBMIT_ARGS": named}) == [KAFKA]


def test_settings_win_and_deltas_own_package_is_chosen_by_its_version(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.jars.packages a:b:1")
    settings = {"spark.jars.packages": f"io.delta:delta-spark_4.2_2.13:4.0.0,{KAFKA}"}
    assert find_packages(settings, {"SPARK_CONF_DIR": str(tmp_path)}) == [KAFKA]


def test_without_packages_there_are_none() -> None:
    assert find_packages({}, {}) == []

"""When a JVM is told to take the archive of classes, and that it takes it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from patternlake.sql_ext.spark_start.class_archive import conf_folder_in_use, options, place

STARTED = """
import os, psutil, sys
from patternlake.sql_ext.session import bare_session
spark = bare_session("local[1]")
java = psutil.Process(spark.sparkContext._gateway.proc.pid)
print(any(each.path == sys.argv[1] for each in java.memory_maps()))
spark.stop()
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """One with an archive, below a folder whose name has a space and a quote."""
    found = {"XDG_CACHE_HOME": str(tmp_path / 'my "cache"'), "SPARK_HOME": str(tmp_path / "spark")}
    archive = place(found)
    archive.parent.mkdir(parents=True)
    archive.touch()
    return found


def test_an_archive_that_is_there_is_taken_and_what_java_says_of_it_is_kept_from_standard_output(
    environment: dict[str, str],
) -> None:
    taken = options(environment)
    assert taken.endswith(" -Xlog:cds=off -Xlog:cds+dynamic=off")
    assert taken.startswith('"-XX:SharedArchiveFile=')
    assert 'my \\"cache\\"/patternlake/classes-' in taken


def test_none_is_named_where_there_is_none(environment: dict[str, str]) -> None:
    place(environment).unlink()
    assert options(environment) == ""


def test_each_spark_has_an_archive_of_its_own(environment: dict[str, str]) -> None:
    assert place({**environment, "SPARK_HOME": "/opt/other"}) != place(environment)
    assert options({**environment, "SPARK_HOME": "/opt/other"}) == ""


@pytest.mark.parametrize(
    "option", ["-Xshare:off", "-XX:SharedArchiveFile=mine.jsa", "-XX:ArchiveClassesAtExit=mine.jsa"]
)
@pytest.mark.parametrize("variable", ["SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"])
def test_what_users_say_of_archives_holds(environment: dict[str, str], variable: str, option: str) -> None:
    assert options({**environment, variable: f"-Xss4m {option}"}) == ""
    assert options({**environment, variable: "-Xss4m"}) != ""


def test_a_conf_folder_with_files_stands_in_the_class_path_where_java_takes_no_archive(
    environment: dict[str, str], tmp_path: Path
) -> None:
    conf = tmp_path / "spark" / "conf"
    conf.mkdir(parents=True)
    assert conf_folder_in_use(environment) is None
    assert options(environment) != ""
    (conf / "spark-defaults.conf").touch()
    assert conf_folder_in_use(environment) == conf
    assert options(environment) == ""
    assert options({**environment, "SPARK_CONF_DIR": str(tmp_path / "elsewhere")}) != ""


def command(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "patternlake.sql_ext.archive_classes"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.processes
def test_the_command_makes_an_archive_and_the_next_session_maps_it(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / 'a "cache"')}
    made = command(environment)
    assert made.returncode == 0, made.stderr
    archive = place(environment)
    assert made.stdout == f"{archive}\n"
    left = [each for each in archive.parent.iterdir() if each.suffix != ".json"]
    assert left == [archive], "nothing of the small database is left"
    asked = [sys.executable, "-c", STARTED, str(archive)]
    said = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True)
    assert said.stdout == "True\n"


def test_where_no_archive_can_be_made_the_command_says_why(tmp_path: Path) -> None:
    (tmp_path / "hive-site.xml").touch()
    refused = command({**os.environ, "SPARK_CONF_DIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"error: Spark's conf folder {tmp_path} is not empty")
    assert not (tmp_path / "cache").exists()


def test_a_cache_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = command({**os.environ, "XDG_CACHE_HOME": str(tmp_path / "file")})
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"error: {tmp_path / 'file' / 'patternlake'} cannot be made, ")


def test_a_user_without_a_home_is_asked_for_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert options({}) == ""
    refused = command({**os.environ, "XDG_CACHE_HOME": "here"})
    assert refused.returncode == 1
    assert refused.stderr == (
        "error: here/patternlake is no folder for an archive of classes: set XDG_CACHE_HOME or HOME to one\n"
    )

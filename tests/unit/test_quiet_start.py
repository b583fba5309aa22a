"""What is said while a child process starts, and where it goes. Nothing here starts Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from patternlake.sql_ext.spark_start.quiet_start import _Held, users_log4j2


def spoken(tmp_path: Path, tell: bool) -> str:
    """What of a child's two words reaches standard error, if the first one is held and then told or dropped."""
    file = tmp_path / "stderr"
    saved = os.dup(2)
    with file.open("wb") as opened:
        os.dup2(opened.fileno(), 2)
        held = _Held()
        os.dup2(saved, 2)
    speak = "import sys; sys.stderr.write('early '); sys.stderr.flush(); input(); sys.stderr.write('late')"
    child = subprocess.Popen([sys.executable, "-c", speak], stdin=subprocess.PIPE, stderr=held.writable)
    held.close_writable()
    while not held._blocks:
        time.sleep(0.01)
    held.release(tell=tell)
    child.communicate(b"\n")
    held._reader.join()
    return file.read_text()


def test_what_is_held_is_dropped_when_all_is_well_and_later_words_come_through(tmp_path: Path) -> None:
    assert spoken(tmp_path, tell=False) == "late"


def test_nothing_of_a_failed_start_is_lost(tmp_path: Path) -> None:
    assert spoken(tmp_path, tell=True) == "early late"


@pytest.mark.parametrize(
    ("environment", "own"),
    [
        ({}, False),
        ({"SPARK_SUBMIT_OPTS": "-Xss4m"}, False),
        ({"SPARK_SUBMIT_OPTS": "-Xss4m -Dlog4j2.configurationFile=mine.xml"}, True),
        ({"JAVA_TOOL_OPTIONS": "-Dlog4j.configurationFile=mine.xml"}, True),
        ({"LOG4J_CONFIGURATION_FILE": "mine.xml"}, True),
    ],
)
def test_a_log4j2_configuration_of_the_users_is_seen(environment: dict[str, str], own: bool) -> None:
    assert users_log4j2(environment) == own


@pytest.mark.parametrize("name", ["log4j2.properties", "log4j2.xml"])
def test_so_is_one_in_sparks_conf_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "conf").mkdir()
    for environment in ({"SPARK_HOME": str(tmp_path)}, {"SPARK_CONF_DIR": str(tmp_path / "conf")}):
        assert not users_log4j2(environment)
    (tmp_path / "conf" / "log4j2.properties.template").touch()
    assert not users_log4j2({"SPARK_HOME": str(tmp_path)}), "Spark ships the template"
    (tmp_path / "conf" / name).touch()
    for environment in ({"SPARK_HOME": str(tmp_path)}, {"SPARK_CONF_DIR": str(tmp_path / "conf")}):
        assert users_log4j2(environment)

"""A project that was copied, or is reached by a link: no file is read again, one that may be another is refused."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from sql.empty_database import lay

from patternlake.delta_tables.databases.opening import open_database
from patternlake.jobs.sources.errors import ChangedSourceError
from patternlake.udfs.errors import StateError
from tests.sql.ingesting import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path) -> Lake:
    """A project's folder with data, some of it read, and the lake."""
    folder = tmp_path / "project"
    folder.mkdir()
    lake = Lake(open_database(spark, f"moved_{uuid4().hex}", lay(spark, folder / "lake")), folder)
    lake.stream |= {"allowed_lateness": "none"}
    (lake.data / "day=1").mkdir()
    lake.write("day=1/a ü.csv", "2024-01-01,a,k,1", "2024-01-02,b,k,1")
    lake.write("day=1/b.csv", "2024-01-03,c,k,1")
    lake.ingest()
    return lake


def _reached(lake: Lake, folder: Path) -> Lake:
    """The same project in another folder."""
    found = object.__new__(Lake)
    vars(found).update(vars(lake))
    found.db = open_database(lake.spark, f"moved_{uuid4().hex}", str(folder / "lake"))
    found.folder, found.data = folder, folder / "data"
    found.stream = {**lake.stream, "source": {**lake.stream["source"], "path": str(folder / "data")}}
    return found


@pytest.mark.parametrize("way", ["copy", "link"])
def test_a_project_in_another_folder_reads_only_what_is_new(project: Lake, tmp_path: Path, way: str) -> None:
    other = tmp_path / "else where" / "é"
    other.parent.mkdir()
    if way == "copy":
        shutil.copytree(project.folder, other)
    else:
        other.symlink_to(project.folder)
    reached = _reached(project, other)
    reached.write("day=1/c.csv", "2024-01-04,d,k,1")
    assert reached.ingest().rows_in == 1
    assert reached.ingest().batches == 0
    assert reached.events("name") == [("a",), ("b",), ("c",), ("d",)]
    if way == "link":
        project.write("day=1/d.csv", "2024-01-05,e,k,1")
        assert project.ingest().rows_in == 1, "back at the first folder"
    os.utime(reached.data / "day=1" / "b.csv", (1, 1))
    with pytest.raises(ChangedSourceError, match="changed after it was read"):
        reached.ingest()


def test_a_copy_that_has_nothing_new_stays_known(project: Lake, tmp_path: Path) -> None:
    shutil.copytree(project.folder, tmp_path / "copy")
    copy = _reached(project, tmp_path / "copy")
    assert [copy.ingest().batches, copy.ingest().batches] == [0, 0]
    copy.write("day=1/c.csv", "2024-01-04,d,k,1")
    assert copy.ingest().rows_in == 1


def test_a_copy_of_a_copy_that_had_nothing_new_reads_only_what_is_new(project: Lake, tmp_path: Path) -> None:
    shutil.copytree(project.folder, tmp_path / "copy")
    assert _reached(project, tmp_path / "copy").ingest().batches == 0
    shutil.copytree(tmp_path / "copy", tmp_path / "second copy")
    second = _reached(project, tmp_path / "second copy")
    assert second.ingest().batches == 0
    second.write("day=1/c.csv", "2024-01-04,d,k,1")
    assert second.ingest().rows_in == 1
    shutil.copytree(second.folder, tmp_path / "third copy")
    assert _reached(project, tmp_path / "third copy").ingest().batches == 0


def test_files_of_the_same_names_and_other_times_are_refused_until_a_rebuild(project: Lake, tmp_path: Path) -> None:
    shutil.copytree(project.folder, tmp_path / "copy")
    for file in (tmp_path / "copy" / "data").rglob("*.csv"):
        os.utime(file, (1, 1))
    copy = _reached(project, tmp_path / "copy")
    told = r"where 2 files have names of files that were read \(day=1/a ü.csv, day=1/b.csv\) but were modified"
    with pytest.raises(StateError, match=told):
        copy.ingest()
    assert copy.ingest(rebuild=True).rows_in == 3
    assert copy.events("name") == [("a",), ("b",), ("c",)]


def test_files_of_other_names_in_another_folder_are_new(project: Lake, tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    lake = Lake(project.db, tmp_path / "second")
    lake.write("a.csv", "2024-01-01,a,k,1")
    lake.ingest()
    (lake.folder / "more").mkdir()
    (lake.folder / "more" / "z.csv").write_text("at,what,who,x\n2024-01-09,z,k,1\n")
    lake.stream["source"]["path"] = "more"
    assert lake.ingest().rows_in == 1
    assert lake.events("name") == [("a",), ("z",)]

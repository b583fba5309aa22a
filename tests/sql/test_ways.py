"""Every job and function has three ways, and all give the same: in the driver's process, in tasks, through Spark alone.

Which one is taken follows from sizes and places; here each is forced.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sql.small_world import JOBS, NAMES, QUESTIONS, World

from patternlake.delta_tables.databases import opening
from patternlake.jobs.batches import few
from patternlake.jobs.maintain import attribute_counts
from patternlake.jobs.runs import steps
from patternlake.jobs.sources import text_files
from patternlake.sql_ext import functions
from patternlake.sql_ext.lakes.lake import DRIVER_BYTES, READER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAYS = {
    "driver": {},
    "tasks": {DRIVER_BYTES: "0", READER: "direct"},
    "spark": {DRIVER_BYTES: "0", READER: "spark"},
}
"""Each with the settings under which functions go it."""


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(spark, tmp_path_factory.mktemp("ways"))


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """One of the ways, which jobs go meanwhile."""
    with pytest.MonkeyPatch.context() as patched:
        take_way(request.param, patched)
        yield request.param


def test_every_job_is_run_and_every_function_is_asked() -> None:
    there = {path.stem for path in Path(*functions.__path__).glob("*.py")} - {"__init__"}
    assert {name for name in there if not any(name in question.lower() for question in QUESTIONS)} == set()
    assert {*JOBS, "maintain"} == {*steps.JOBS}


def take_way(way: str, patched: pytest.MonkeyPatch) -> None:
    """Let jobs go a way from here on."""
    if way != "driver":
        for module, name in (
            (few, "FEW_EVENTS"),
            (few, "FEW_BYTES"),
            (text_files, "FEW_BYTES"),
            (attribute_counts, "_FEW_EVENTS"),
        ):
            assert hasattr(module, name)
            patched.setattr(module, name, -1)
    if way == "spark":
        # As of an object store that only Spark can open: nothing is read or written without it.
        patched.setattr(opening, "_on_disk", lambda registered, location: None)


@pytest.mark.processes
def test_jobs_write_and_functions_answer_the_same_on_every_way(world: World, way: str) -> None:
    here = world.seen("driver", WAYS["driver"], maintained=True)
    assert len(here["SELECT * FROM events"][1]) == len(NAMES)
    assert [question for question in QUESTIONS if not here[question][1]] == []
    there = world.seen(way, WAYS[way], maintained=True)
    assert [question for question in QUESTIONS if there[question] != here[question]] == []

"""match_paths through SQL, on published events: in the driver's process and by Spark's tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from naive import paths as naive
from naive.kleene import Event
from naive.path_cases import path_of, rounded_path
from sql.sketch_lake import SketchLake, call, shared
from sql.test_match_funnel import by_tasks_where, partitions_of, plain, shop, worked

import patternlake
from patternlake.sql_ext.answering import stream_facts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


def via(event: Event) -> str:
    return str(event.values["via"])


@pytest.mark.parametrize("way", ["driver", "tasks"])
def test_paths_are_those_of_the_oracle(lake: SketchLake, way: str) -> None:
    stream = shop(lake)
    partitions = partitions_of(stream)
    with by_tasks_where(lake, way):
        around, whole, grouped = lake.ask(
            [
                call("match_paths", stream.name, "b", 1, 2, within="20 MILLISECOND", max_paths=5),
                call("match_paths", stream.name),
                call("match_paths", stream.name, "a", 0, 1, "via", fold=False),
            ]
        )
    names = "abcdx"
    window = naive.Window(20_000)
    assert [path_of(plain(row)) for row in around] == [
        rounded_path(path) for path in naive.paths(partitions, names, "b", 1, 2, window, most=5)
    ]
    assert [path_of(plain(row)) for row in whole] == [rounded_path(path) for path in naive.paths(partitions, names)]
    assert [path_of(plain(row)) for row in grouped] == [
        rounded_path(path) for path in naive.paths(partitions, names, "a", 0, 1, fold=False, by=via)
    ]


def test_python_takes_the_same_arguments(lake: SketchLake) -> None:
    found = patternlake.match_paths(lake.spark, worked(lake).name, around="D", before=1, after=1, top=1)
    assert [(row["path"], row["occurrences"]) for row in found.collect()] == [(["…", "D", "…"], 1)]


def test_as_many_names_are_kept_as_are_asked_for(lake: SketchLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few names are counted for other questions."""
    monkeypatch.setattr(stream_facts, "MOST_NAMES", 2)
    (found,) = lake.ask([call("match_paths", worked(lake).name, "D", 1, 1)])
    assert [(row["path"], row["occurrences"]) for row in found] == [(["A", "D", "C"], 1)]


def test_what_a_call_may_not_say_is_named(lake: SketchLake) -> None:
    (message,) = lake.errors([call("match_paths", worked(lake).name, before=5)])
    assert "before => 5 without around" in message

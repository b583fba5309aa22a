"""Ageing of a sketch beside rebuilds, runs that died, plans that are old, and times before 1970."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sql.sketch_lake import AGES, DATABASE, DAY, E, SketchLake, Stream, aging, nodes_by_place, shared

from patternlake.delta_tables.tables.publications import PublicationsWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SKETCH = {"events_per_leaf": 2, "fpq": 1e-4}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


def die_before_publishing(stream: Stream, monkeypatch: pytest.MonkeyPatch, job: str) -> None:
    def publish(*given: object, **named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PublicationsWriter, "publish", publish)
        with pytest.raises(KeyboardInterrupt):
            stream.run(job, rebuild=True)


def stored(stream: Stream, from_batch: int) -> dict[tuple[int, int], int]:
    """How many rows a batch wrote, whoever sees them, by segment and level."""
    number = stream.publications()[-1]["stream_id"]
    rows = stream.lake.rows(
        f"SELECT segment, level, count(*) AS n FROM {DATABASE}_internal.sketch_nodes_log "
        f"WHERE stream_id = {number} AND from_batch = {from_batch} GROUP BY segment, level"
    )
    return {(row["segment"], row["level"]): row["n"] for row in rows}


def test_moments_before_a_rebuild_know_what_had_aged_until_then(lake: SketchLake) -> None:
    stream = lake.stream("aged and rebuilt", aging(), sketch=SKETCH)
    before = stream.moments[0]
    stream.run("maintain", age=AGES)
    asked = [stream.exists("H ; I", as_of=before), stream.exists("K ; J", as_of=before)]
    assert lake.said(asked) == [None, None]
    stream.run("sketch", rebuild=True)
    assert lake.said(asked) == [None, None]
    exactly = stream.seq("G ; H WITHIN 4 DAYS", verify=True, from_position=17, as_of=before)
    assert lake.steps([exactly]) == [[(18, 21)]]


def test_ageing_leaves_the_nodes_of_a_rebuild_that_is_not_published_yet(
    lake: SketchLake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stream = lake.stream("aged meanwhile", aging(), sketch=SKETCH)
    stream.run("maintain", age=AGES)
    last = stream.publications()[-1]["batch_id"]
    die_before_publishing(stream, monkeypatch, "sketch")
    written = stored(stream, last + 1)
    assert {segment for segment, _ in written} == {0, 1, 2, 3, 4}
    stream.run("maintain", age=AGES)
    assert stored(stream, last + 1) == written

    # What is to be published of an age waits for the batch that is open.
    stream.run("maintain", age=[{"after": "20 days", "drop": True}])
    assert f"has an unfinished batch {last + 1}; it is aged after that" in caplog.text
    assert stream.publications()[-1]["batch_id"] == last


def test_times_before_1970_age_again_after_the_first_drop(lake: SketchLake) -> None:
    begin = -40 * 366
    stream = lake.stream("long ago", aging(begin=begin), sketch=SKETCH)
    stream.run("maintain", age=AGES)
    assert min(segment for segment, _, _ in nodes_by_place(stream)) == 1
    stream.deliver([E((begin + 40 + day) * DAY, "L") for day in range(8)])
    stream.run("maintain", age=AGES)
    assert min(segment for segment, _, _ in nodes_by_place(stream)) == 2


def test_a_plan_that_is_older_than_the_ageing_counts_on_no_node_that_is_gone(lake: SketchLake) -> None:
    stream = lake.stream("aged under a plan", aging(), sketch=SKETCH)
    asked = f"SELECT match_exists('{stream.name}', 'H ; I', key => k, verify => false) AS said"
    planned = lake.spark.sql(f"{asked} FROM VALUES (CAST(NULL AS STRING)) AS t(k)")
    stream.run("maintain", age=AGES)
    assert [row["said"] for row in planned.collect()] == [None]

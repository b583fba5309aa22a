"""Jobs of different objects at once: what they publish is what they publish one after another."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sql.empty_database import lay

from patternlake.delta_tables.batches.object_state import load_object_state
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.databases.opening import open_database
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.writing import writes
from patternlake.delta_tables.writing.writes import append
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.runs import running
from patternlake.jobs.runs import steps as job_steps
from tests.faults.lakes import frame_texts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

CONFIGURATION = """
database: {name}
location: {name}
streams:
  s: &stream
    source: {{format: csv, path: data, options: {{header: true, pathGlobFilter: "s*.csv"}}}}
    time: at
    name: what
    key: who
    attributes: {{x: double}}
    timezone: Asia/Tokyo
    step: floor(x / 3)
    probability: "0.5"
    allowed_lateness: 10 seconds
  z:
    <<: *stream
    source: {{format: csv, path: data, options: {{header: true, pathGlobFilter: "z*.csv"}}}}
    timezone: America/New_York
sketches:
  s: {{events_per_leaf: 16, levels: 3, expected_events: 1000, memory: 1MB}}
  z: {{events_per_leaf: 8, levels: 3, expected_events: 1000, memory: 1MB, keyed: true}}
trends:
  t1: {{stream: s, query: "PATTERN a+ s[] WHERE s[i].x > s[i-1].x + 20 WITHIN 100 EVENTS SLIDE 50 EVENTS"}}
  t2: {{stream: s, query: "PATTERN a+ s[] WHERE s[i].x > s[i-1].x + 30 WITHIN 100 EVENTS SLIDE 50 EVENTS"}}
  t3: {{stream: z, query: "PATTERN a+ s[] WHERE s[i].x > s[i-1].x + 20 WITHIN 100 EVENTS SLIDE 50 EVENTS"}}
patterns:
  p1: {{stream: s, query: "a ; b+ PARTITION BY key WITHIN 9 EVENTS"}}
  p2: {{stream: z, query: "a ; d WITHIN 1 MIN"}}
groups:
  g1: {{stream: s, pattern: "d, c, b+", within: 3}}
  g2: {{stream: z, pattern: "a, b+", within: 3}}
subscriptions:
  m: {{stream: s, query: "h ; a, b WITHIN 1 MIN"}}
  n: {{stream: z, query: "c ; d WITHIN 1 MIN", forecasts: keep}}
alerts:
  told: {{of: subscription, name: m}}
  ended: {{of: pattern, name: p1}}
evaluate:
  train: ["2012-12-31", "2013-01-01 03:01:00"]
  test: ["2013-01-01 03:01:00", "2014-01-01"]
"""
_NAMES = [*("abcd"[n % 4] for n in range(64)), *("abcdefgh"[n % 8] for n in range(96))]
_CUT = 90
LONG = 240


class DiedError(Exception):
    """Stands for what a job dies of."""


class World:
    """Lakes over the same files."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        (folder / "data").mkdir()

    def deliver(self, number: int) -> None:
        """Write a file of each stream."""
        for stream in "sz":
            rows = [
                f"2013-01-01 12:{n // 60:02}:{n % 60:02},{name},{stream}{n % 3},{n}" for n, name in enumerate(_NAMES)
            ]
            some = rows[:_CUT] if number == 1 else rows[_CUT:]
            path = self.folder / "data" / f"{stream}{number}.csv"
            path.write_text("\n".join(["at,what,who,x", *some, f"never,a,k1,{number}000"]) + "\n")

    def configuration(self, name: str) -> Configuration:
        return Configuration.from_text(CONFIGURATION.format(name=name), folder=self.folder)

    def database(self, name: str) -> Database:
        return open_database(self.spark, name, str(self.folder / name))

    def run(self, name: str, job: str = job_steps.ALL, *, side_by_side: int) -> list[Summary]:
        if not (self.folder / name).exists():
            lay(self.spark, self.folder / name)
        return running.run(self.spark, self.configuration(name), job, side_by_side=side_by_side)

    def rows(self, name: str, only: Collection[str] = tuple(TABLES)) -> Mapping[str, list[str]]:
        """All rows of tables, published or not, and of their views."""
        db = self.database(name)
        tables = {f"{table}_log": db.table(table) for table in only}
        views = {table: self.spark.table(db.view(table)) for table in only if TABLES[table].view}
        # How far the tables of a job are when one of its objects is published, depends on what the others have written.
        return {name: frame_texts(frame.drop("versions")) for name, frame in {**tables, **views}.items()}


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    return World(spark, tmp_path)


def counts(summaries: list[Summary]) -> list[tuple[Any, ...]]:
    return [
        (each.job, each.object, each.batch_id, each.rows_in, each.rows_out, each.rows_quarantined) for each in summaries
    ]


def differing(one: Mapping[str, list[str]], other: Mapping[str, list[str]]) -> list[str]:
    assert one.keys() == other.keys()
    return [table for table in one if one[table] != other[table]]


def test_what_is_published_side_by_side_is_what_is_published_one_after_another(world: World) -> None:
    active = world.spark.getActiveSession()
    for number in (1, 2):
        world.deliver(number)
        alone = world.run("sides_alone", side_by_side=1)
        beside = world.run("sides_beside", side_by_side=4)
        assert counts(beside) == counts(alone)
        assert [each.batches for each in alone if each.job != "maintain"] == [1] * (len(alone) - 2)
        assert differing(world.rows("sides_beside"), world.rows("sides_alone")) == []
    rows = world.rows("sides_alone")
    # What a run never writes could not differ: all but what questions observe, and how alerts got to somebody outside.
    assert {table.removesuffix("_log") for table, found in rows.items() if not found} == {
        "observed_selectivities",
        "alert_deliveries",
        "held_alerts",
    }
    assert [each.batches for each in world.run("sides_beside", side_by_side=4)] == [0] * len(beside)
    assert world.spark.getActiveSession() is active


def test_queries_that_close_rows_of_one_table_at_the_same_moment_meet_no_conflict(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each reads and writes partitions of its own."""
    together = threading.Barrier(3)
    update, updated = writes.update, []

    def meeting(spark: Any, table: str, *given: Any, **named: Any) -> None:
        together.wait(LONG)
        updated.append(table)
        update(spark, table, *given, **named)

    for number in (1, 2):
        world.deliver(number)
        for name, job in (("apart", "ingest"), ("apart", "trends"), ("meeting", "ingest")):
            world.run(f"sides_{name}", job, side_by_side=1)
        if number == 1:
            world.run("sides_meeting", "trends", side_by_side=3)
    monkeypatch.setattr(writes, "update", meeting)
    with caplog.at_level(logging.INFO, "patternlake.delta_tables.writing.writes"):
        world.run("sides_meeting", "trends", side_by_side=3)
    assert len(updated) == 6, "vertices and edges of three queries"
    assert caplog.records == []
    written = ("trend_vertices", "trend_edges")
    assert differing(world.rows("sides_meeting", written), world.rows("sides_apart", written)) == []


def test_an_error_of_one_object_leaves_those_at_work_beside_it_to_their_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside_ended = threading.Event()

    def dying(table: str, rows: Any, *, application: str, **keys: Any) -> bool:
        if '"t2"' in application and "trend_edges" in table:
            assert beside_ended.wait(LONG)
            raise DiedError("no space left")
        done = append(table, rows, application=application, **keys)
        if '"t3"' in application and "publications" in table:
            beside_ended.set()
        return done

    world.deliver(1)
    world.run("sides_failing", "ingest", side_by_side=2)
    with monkeypatch.context() as patch:
        patch.setattr(writes, "append", dying)
        with pytest.raises(DiedError, match="no space left"):
            world.run("sides_failing", "trends", side_by_side=3)
    db = world.database("sides_failing")
    object_state = {
        name: load_object_state(db, "trends", name, stream) for name, stream in (("t1", "s"), ("t2", "s"), ("t3", "z"))
    }
    assert object_state["t2"].latest is None
    assert [intent.batch_id for intent in object_state["t2"].pending] == [1]
    assert object_state["t3"].latest is not None
    # The next run takes over what died, and does no more.
    done = {each.object: (each.batch_id, each.batches) for each in world.run("sides_failing", "trends", side_by_side=3)}
    assert done["t2"] == (1, 1)
    assert done["t3"] == (None, 0)

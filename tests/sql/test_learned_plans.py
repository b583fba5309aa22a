"""What runs of match_pattern observe is kept, plans the next ones, and never changes a row; through SQL."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Any

import pytest
from naive.observed_shares import Run, share
from sql.pattern_lake import PatternStream
from sql.sketch_lake import DATABASE, E, SketchLake, Stream, by_tasks, call, shared

import patternlake
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.databases.opening import open_database
from patternlake.delta_tables.reading.spark_reader import SparkReader
from patternlake.delta_tables.schema import timestamps
from patternlake.delta_tables.schema.quoting import literal
from patternlake.delta_tables.tables.observed_selectivities import ObservedSelectivities, read_observations
from patternlake.jobs.batches import few
from patternlake.sql_ext.lakes import enabled
from patternlake.sql_ext.lakes.enabled import lake_of
from patternlake.sql_ext.lakes.lake import LEARN
from patternlake.sql_ext.lakes.learning import Learned
from patternlake.udfs.kleene.plans.observations import JudgedCondition, Observation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SKEWED = "A ; B ; C WHERE A.s = B.s AND B.x < C.x WITHIN 30 EVENTS"
"""An equality is guessed to hold more rarely than an order; here it is the other way round."""
ATTRIBUTES = {"x": "double", "s": "string"}
GUESSED, LEARNED = "plan ((A B) C) (cheapest)", "plan (A (B C)) (cheapest)"
VIEW = f"{DATABASE}_internal.observed_selectivities"


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


def skewed(lake: SketchLake, name: str) -> Stream:
    """A and B always agree in `s`, and hardly a B is less than a C."""
    if name not in lake.streams:
        made = lake.streams[name] = Stream(lake, name, {}, {"attributes": ATTRIBUTES})
        made.write(skewed_events())
        made.ingest()
    return lake.streams[name]


def skewed_events() -> list[E]:
    """The events of such a stream."""
    rng = random.Random(11)
    low = {"A": 0, "B": 9, "C": 0}
    return [
        E(number * 1000, letter, None, {"x": low[letter] + rng.random() * 10, "s": "day"})
        for number, letter in enumerate("ABC" * 100)
    ]


def plan(lake: SketchLake, stream: Stream, **arguments: Any) -> str:
    """The plan that the next call would take."""
    text = call("explain_pattern", stream.name, SKEWED, **arguments)
    return str(lake.rows(f"SELECT plan FROM {text} WHERE line = 1")[0][0])


def count(lake: SketchLake, stream: Stream, **arguments: Any) -> int:
    """Run the pattern."""
    return int(lake.rows(f"SELECT count(*) FROM {call('match_pattern', stream.name, SKEWED, **arguments)}")[0][0])


def in_another_process(lake: SketchLake) -> None:
    """Begin as a process that knows nothing but what is written."""
    enabled._APPLICATIONS.pop(str(lake.spark.sparkContext.applicationId))
    patternlake.enable(lake.spark, database=DATABASE, location=lake.location)


def table_of(lake: SketchLake) -> ObservedSelectivities:
    """What writes the table."""
    return ObservedSelectivities(open_database(lake.spark, DATABASE, lake.location))


def told(lake: SketchLake, stream: Stream) -> list[tuple[str, str, float]]:
    """What the view has of a stream."""
    rows = lake.rows(f"SELECT * FROM {VIEW} WHERE stream = {literal(stream.name)} ORDER BY predicate")
    return [(row["predicate"], row["given"], row["share"]) for row in rows]


def test_what_a_call_observes_plans_the_next_ones_of_its_process_and_is_written_nowhere(lake: SketchLake) -> None:
    stream = skewed(lake, "learned")
    assert plan(lake, stream) == GUESSED
    found = count(lake, stream)
    assert plan(lake, stream) == LEARNED
    text = call("explain_pattern", stream.name, SKEWED)
    lines = [row[0] for row in lake.rows(f"SELECT plan FROM {text} WHERE plan LIKE 'seen: %'")]
    assert [line.split(" holds in ")[0] for line in lines] == ["seen: A.s = B.s", "seen: B.x < C.x"]
    assert count(lake, stream, max_matches=10_000) == found
    assert told(lake, stream) == []
    in_another_process(lake)
    assert plan(lake, stream) == GUESSED
    assert count(lake, stream) == found


@pytest.mark.parametrize("tasks", [False, True])
def test_what_a_kept_pattern_observes_plans_the_calls_of_all_processes(
    lake: SketchLake, tasks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tasks:
        monkeypatch.setattr(few, "FEW_EVENTS", 0)
    stream = PatternStream(lake, f"kept {tasks}", {f"all {tasks}": {"query": SKEWED}}, attributes=ATTRIBUTES)
    stream.take(skewed_events())
    equal, less = told(lake, stream)
    assert equal == ("A.s = B.s", "", 1.0)
    assert less[:2] == ("B.x < C.x", "")
    assert 0 < less[2] < 0.05
    in_another_process(lake)
    assert plan(lake, stream) == LEARNED


def test_what_spark_s_tasks_observe_is_kept_as_well(lake: SketchLake) -> None:
    stream = skewed(lake, "learned by tasks")
    with by_tasks(lake.spark):
        count(lake, stream)
        assert plan(lake, stream) == LEARNED


@pytest.mark.parametrize("tasks", [False, True])
def test_analyzing_a_plan_observes_and_shows_what_was_expected_before(lake: SketchLake, tasks: bool) -> None:
    stream = skewed(lake, f"analyzed {tasks}")
    if tasks:
        with by_tasks(lake.spark):
            assert plan(lake, stream, analyze=True) == GUESSED
    else:
        assert plan(lake, stream, analyze=True) == GUESSED
    assert plan(lake, stream) == LEARNED


def test_expected_rows_are_those_that_were_seen(lake: SketchLake) -> None:
    stream = skewed(lake, "expected")
    text = call("explain_pattern", stream.name, "B ; C WHERE B.x < C.x WITHIN 30 EVENTS", analyze=True)
    (first,) = lake.rows(f"SELECT rows, actual_rows FROM {text} WHERE line = 1")
    (second,) = lake.rows(f"SELECT rows, actual_rows FROM {text} WHERE line = 1")
    assert first.rows > 10 * first.actual_rows
    assert second.rows == pytest.approx(second.actual_rows, rel=0.2)


def test_a_session_may_neither_tell_nor_learn(lake: SketchLake) -> None:
    stream = skewed(lake, "not learned")
    lake.spark.conf.set(LEARN, "false")
    try:
        count(lake, stream)
        assert plan(lake, stream) == GUESSED
    finally:
        lake.spark.conf.unset(LEARN)
    assert plan(lake, stream) == GUESSED
    count(lake, stream, max_matches=10_000)
    lake.spark.conf.set(LEARN, "False")
    try:
        assert plan(lake, stream) == GUESSED
    finally:
        lake.spark.conf.unset(LEARN)


def test_a_setting_that_is_neither_true_nor_false_is_refused(lake: SketchLake) -> None:
    stream = skewed(lake, "not learned")
    lake.spark.conf.set(LEARN, "sometimes")
    try:
        (error,) = lake.errors([call("explain_pattern", stream.name, "A ; B")])
    finally:
        lake.spark.conf.unset(LEARN)
    assert error == f"{LEARN} must be true or false, not 'sometimes'"


def test_a_question_of_an_earlier_moment_is_planned_by_what_was_published_then(lake: SketchLake) -> None:
    stream = skewed(lake, "earlier")
    moment = stream.publications("ingest")[-1]["published_at"]
    count(lake, stream, as_of=moment)
    assert plan(lake, stream) == GUESSED
    count(lake, stream)
    assert plan(lake, stream) == LEARNED
    assert plan(lake, stream, as_of=moment) == GUESSED


def test_what_is_deleted_is_forgotten(lake: SketchLake) -> None:
    stream = skewed(lake, "what is deleted")
    number = stream.publications("ingest")[-1]["stream_id"]
    observed = {JudgedCondition("A.s = B.s", ""): (1000, 1000), JudgedCondition("B.x < C.x", ""): (1000, 1)}
    table_of(lake).tell(number, observed)
    in_another_process(lake)
    assert plan(lake, stream) == LEARNED
    lake.rows(f"DELETE FROM {DATABASE}_internal.observed_selectivities_log WHERE stream_id = {number}")
    assert plan(lake, stream) == GUESSED


def test_the_view_adds_up_as_the_oracle_says_and_maintain_changes_nothing_of_it(lake: SketchLake) -> None:
    stream = skewed(lake, "added up")
    number = stream.publications("ingest")[-1]["stream_id"]
    now = timestamps.to_micros(timestamps.now())
    rng = random.Random(4)
    runs = [Run(judged, rng.randint(0, judged), now - rng.randint(0, 10**12)) for judged in (200, 5000, 900, 3_000_000)]
    table = table_of(lake)
    for run in runs:
        one = Observation(run.judged, run.held, run.at).limited()
        assert table.append({(number, JudgedCondition("A.x < 'it''s'", "")): one})
    weight, expected = share(runs)
    text = f"SELECT share, judged, observed_at FROM {VIEW} WHERE stream = 'added up'"
    (before,) = lake.rows(text)
    assert (before.share, before.judged) == pytest.approx((expected, weight))
    stream.run("maintain")
    (after,) = lake.rows(text)
    assert (after.share, after.judged) == pytest.approx((before.share, before.judged))
    assert after.observed_at == before.observed_at
    log = f"{DATABASE}_internal.observed_selectivities_log"
    assert lake.rows(f"SELECT count(*) FROM {log} WHERE stream_id = {number}")[0][0] == 1


def test_rows_are_the_same_whatever_the_table_says(lake: SketchLake) -> None:
    stream = skewed(lake, "whatever")
    number = stream.publications("ingest")[-1]["stream_id"]
    learned, rng = lake_of(lake.spark).learned, random.Random(8)
    plans = set()
    rows = set()
    for turn in range(6):
        for text in ("A.s = B.s", "B.x < C.x"):
            learned._stored[number, JudgedCondition(text, "")] = Observation(
                1e6, rng.choice([0.0, 1.0, 5e5, 1e6]), timestamps.to_micros(timestamps.now())
            )
        plans.add(plan(lake, stream))
        # Another limit is another call, whose answer nobody remembers.
        found = lake.rows(f"SELECT * FROM {call('match_pattern', stream.name, SKEWED, max_matches=10_000 + turn)}")
        rows.add(str(found))
    assert len(plans) == 2
    assert len(rows) == 1


def test_where_only_spark_may_write_it_does_and_reads_beside_the_calls(lake: SketchLake) -> None:
    database = Database(lake.spark, DATABASE, lake.location)
    odd = JudgedCondition("A.s = 'it''s \\\\ ; DROP'", "big AS x > 5")
    ObservedSelectivities(database).tell(77, {odd: (1000, 1), JudgedCondition("A.x < 3", ""): (10**9, 10**9)})
    other, reader = Learned("elsewhere"), SparkReader(lake.spark, database.log)
    other.look(reader)
    for thread in threading.enumerate():
        if thread.name == "patternlake-learning":
            thread.join()
    found = other.seen(77)(odd)
    assert found is not None
    assert (found.judged, found.held) == (1000, 1)
    assert read_observations(reader)[77, JudgedCondition("A.x < 3", "")].judged == 1e6

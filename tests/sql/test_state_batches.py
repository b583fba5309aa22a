"""A batch: intent, writes, publication; what a dead run leaves, what rivals do."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from delta.exceptions import ConcurrentAppendException, ConcurrentTransactionException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sql.empty_database import common
from sql.small_tables import asked

from patternlake.delta_tables.batches.batch import Batch
from patternlake.delta_tables.batches.object_state import load_object_state
from patternlake.delta_tables.batches.registration import register
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.committing.direct_commits import OnDisk
from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.schema import stream_names
from patternlake.delta_tables.schema.quoting import literal
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.event_statistics import ATTRIBUTES
from patternlake.delta_tables.tables.intents import TABLE as INTENTS
from patternlake.delta_tables.tables.intents import IntentsReader
from patternlake.delta_tables.tables.publications import Publication, PublicationsReader
from patternlake.delta_tables.writing import writes
from patternlake.delta_tables.writing.row_files import TaskRows
from patternlake.udfs.errors import ArgumentError, ConcurrentRunError, StateError

_NAMES = (f"stream{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Database:
    return common(spark, tmp_path_factory)


@pytest.fixture
def name() -> str:
    """A stream that no other test uses."""
    return next(_NAMES)


def _begin(lake: Database, name: str, batch_id: int = 1, base_batch: int = 1, **other: Any) -> Batch:
    given: dict[str, Any] = {"source": {"file": "a"}, "source_from": 0, "source_to": 10, "configuration": {"c": 1}}
    return Batch.begin(
        lake, job="ingest", object=name, stream=name, batch_id=batch_id, base_batch=base_batch, **{**given, **other}
    )


def _statistics(batch: Batch, name: str = "a", events: int = 3, counts: str = "events") -> TaskRows:
    rows = batch.database.spark.range(0, 1, 1, 1).select(
        F.lit(batch.stream_id).alias("stream_id"),
        F.lit(batch.batch_id).cast("bigint").alias("batch_id"),
        F.lit(name).alias("name"),
        F.lit(events).cast("bigint").alias(counts),
        F.timestamp_micros(F.lit(1)).alias("first_time"),
        F.timestamp_micros(F.lit(2)).alias("last_time"),
        F.lit(None).cast(ATTRIBUTES).alias("attributes"),
    )
    return TaskRows.of(rows)


def _seen(lake: Database, name: str) -> list[tuple[str, int]]:
    rows = asked(lake, f"SELECT * FROM {lake.name}.event_statistics WHERE stream = {literal(name)}")
    return sorted((row["name"], row["events"]) for row in rows.collect())


def _publish(batch: Batch) -> Publication:
    return batch.publish(rows_in=3, rows_out=3, state={"next": 4})


def test_rows_are_seen_once_they_are_published(lake: Database, name: str) -> None:
    batch = _begin(lake, name)
    batch.append("event_statistics", _statistics(batch))
    assert _seen(lake, name) == []
    _publish(batch)
    assert _seen(lake, name) == [("a", 3)]


def test_a_publication_comes_back_as_it_was_written(lake: Database, name: str) -> None:
    written = _publish(_begin(lake, name))
    assert PublicationsReader(lake).latest("ingest", name) == written
    assert written.source == {"file": "a"}
    assert (written.source_from, written.source_to, written.state) == (0, 10, {"next": 4})


def test_a_replayed_append_writes_once(lake: Database, name: str) -> None:
    batch = _begin(lake, name)
    for _ in range(2):
        batch.append("event_statistics", _statistics(batch))
    batch.append("event_statistics", _statistics(batch, "b"), part="second")
    _publish(batch)
    assert _seen(lake, name) == [("a", 3), ("b", 3)]


def test_a_dead_run_s_intent_is_taken_over_with_its_range(lake: Database, name: str) -> None:
    dead = _begin(lake, name)
    dead.append("event_statistics", _statistics(dead))
    batch = _begin(lake, name, source={"file": "a", "more": "b"}, source_to=99)
    assert batch.adopted
    assert (batch.source, batch.source_from, batch.source_to) == ({"file": "a"}, 0, 10)
    batch.append("event_statistics", _statistics(batch))
    published = _publish(batch)
    assert published.source_to == 10
    assert _seen(lake, name) == [("a", 3)]


def test_of_two_live_runs_one_publishes_and_the_other_stops(lake: Database, name: str) -> None:
    first, second = _begin(lake, name), _begin(lake, name)
    for batch in (first, second):
        batch.append("event_statistics", _statistics(batch))
    winner = _publish(second)
    with pytest.raises(ConcurrentRunError, match=f"another run published batch 1 of ingest of '{name}' first"):
        _publish(first)
    assert PublicationsReader(lake).latest("ingest", name) == winner
    assert lake.table("publications").where(F.col("object") == name).count() == 1
    assert _seen(lake, name) == [("a", 3)]


def test_the_same_holds_where_spark_makes_all_commits(lake: Database, name: str) -> None:
    apart = replace(lake, folder_on_disk=None, direct=None)
    assert lake.commits(INTENTS) == OnDisk(f"{lake.location}/intents_log")
    assert apart.commits(INTENTS) is None
    dead, batch = _begin(apart, name), _begin(apart, name)
    assert (dead.adopted, batch.adopted) == (False, True)
    assert load_object_state(apart, "ingest", name, name) == load_object_state(lake, "ingest", name, name)
    winner = _publish(batch)
    with pytest.raises(ConcurrentRunError, match=f"another run published batch 1 of ingest of '{name}' first"):
        _publish(dead)
    for database in (apart, lake):
        reader = PublicationsReader(database)
        assert reader.latest("ingest", name) == reader.at("ingest", name, winner.published_at) == winner
        assert reader.of_batch("ingest", name, 2) is None
        wanted = [("ingest", name), ("sketch", name)]
        assert reader.latest_of(wanted) == {wanted[0]: winner, wanted[1]: None}
        assert load_object_state(database, "ingest", name, name).pending == ()


@pytest.mark.parametrize("moment", ["intents", "publications"])
def test_a_rival_inside_the_same_commit_wins(
    lake: Database, name: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def conflict(table: str, rows: DataFrame, **given: Any) -> None:
        if table == lake.log(moment):
            raise ConcurrentTransactionException("a rival")
        append(table, rows, **given)

    append = writes.append
    monkeypatch.setattr(writes, "append", conflict)
    with pytest.raises(ConcurrentRunError, match="another run"):
        _publish(_begin(lake, name))


def test_an_intent_that_loses_at_read_back_stops_the_run(
    lake: Database, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = writes.append

    def rival_first(table: str, rows: Any, **given: Any) -> bool:
        if table == lake.log("intents"):
            append(table, rows.frame().withColumn("run_id", F.lit("rival")), **given)
        return append(table, rows, **given)

    monkeypatch.setattr(writes, "append", rival_first)
    with pytest.raises(ConcurrentRunError, match=r"began batch 1 .* at the same moment"):
        _begin(lake, name)


def test_a_batch_whose_intent_is_written_beside_it_writes_nothing_that_a_rival_began(
    lake: Database, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, written = writes.append, []

    def rival_first(table: str, rows: Any, **given: Any) -> bool | None:
        written.append(table)
        if table == lake.log("intents"):
            append(table, rows.frame().withColumn("run_id", F.lit("rival")), **given)
        return append(table, rows, **given)

    monkeypatch.setattr(writes, "append", rival_first)
    batch = _begin(lake, name, beside=True)
    for work in (lambda: batch.append("event_statistics", _statistics(batch)), batch.declared, lambda: _publish(batch)):
        with pytest.raises(ConcurrentRunError, match=r"began batch 1 .* at the same moment"):
            work()
    assert not {lake.log("event_statistics"), lake.log("publications")} & {*written}


def test_rivals_in_threads_write_one_row(lake: Database, name: str) -> None:
    rows = [_statistics(_begin(lake, name)).frame() for _ in range(3)]
    together = threading.Barrier(len(rows))

    def append(frame: DataFrame) -> str:
        together.wait()
        try:
            writes.append(lake.log("event_statistics"), frame, application=name, version=1)
        except ConcurrentTransactionException:
            return "stopped"
        return "written"

    with ThreadPoolExecutor(len(rows)) as pool:
        ends = list(pool.map(append, rows))
    assert "written" in ends
    assert _begin(lake, name).written("event_statistics").count() == 1


def test_a_conflict_that_another_try_solves_is_tried_again(
    lake: Database, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = _begin(lake, name)
    rows = _statistics(batch).frame()
    tries: list[int] = []

    class Contended:
        sparkSession = lake.spark  # noqa: N815

        def writeTo(self, table: str) -> Any:  # noqa: N802
            tries.append(1)
            if len(tries) < 3:
                raise ConcurrentAppendException("a rival")
            return rows.writeTo(table)

    def append() -> bool:
        return writes.append(lake.log("event_statistics"), Contended(), application=name, version=1)  # type: ignore[arg-type]

    assert append()
    assert len(tries) == 3
    assert batch.written("event_statistics").count() == 1
    assert not append(), "the same version once more writes nothing, and says so"
    assert batch.written("event_statistics").count() == 1


def test_beginning_a_published_batch_tells_so_and_takes_no_writes(lake: Database, name: str) -> None:
    published = _publish(_begin(lake, name))
    again = _begin(lake, name, source_to=99)
    assert again.published == published
    assert again.source_to == 10
    with pytest.raises(StateError, match=f"batch 1 of ingest of '{name}' is published; it takes no more writes"):
        again.append("event_statistics", _statistics(again))


def test_an_open_batch_must_be_finished_first(lake: Database, name: str) -> None:
    _begin(lake, name)
    assert load_object_state(lake, "ingest", name, name).next_batch == 1
    with pytest.raises(StateError, match=r"batch 1 .* was begun and not published, so batch 2 cannot come now"):
        _begin(lake, name, batch_id=2)


def test_an_open_batch_of_another_configuration_is_refused(lake: Database, name: str) -> None:
    _begin(lake, name)
    with pytest.raises(StateError, match=r"batch 1 .* was begun under another configuration"):
        _begin(lake, name, configuration={"c": 2})


def test_a_rebuild_leaves_an_open_batch_behind_unseen(lake: Database, name: str) -> None:
    dead = _begin(lake, name)
    dead.append("event_statistics", _statistics(dead, "old"))
    number = load_object_state(lake, "ingest", name, name).free_batch
    assert number == 2
    batch = _begin(lake, name, batch_id=number, base_batch=number, configuration={"c": 2})
    batch.append("event_statistics", _statistics(batch, "new"))
    _publish(batch)
    assert _seen(lake, name) == [("new", 3)]
    assert load_object_state(lake, "ingest", name, name).next_batch == 3


def test_a_dead_rebuild_is_taken_over_as_a_rebuild(lake: Database, name: str) -> None:
    _publish(_begin(lake, name))
    _begin(lake, name, batch_id=2, base_batch=2)
    assert _begin(lake, name, batch_id=2, base_batch=1).base_batch == 2


def test_a_batch_behind_the_published_one_is_refused(lake: Database, name: str) -> None:
    _publish(_begin(lake, name, batch_id=5, base_batch=5))
    with pytest.raises(StateError, match=r"batch 4 .* lies behind batch 5"):
        _begin(lake, name, batch_id=4)


def test_a_later_part_may_discard_what_an_earlier_one_wrote(lake: Database, name: str) -> None:
    batch = _begin(lake, name)
    for _ in range(2):  # a run, and its replay
        batch.append("event_statistics", _statistics(batch, "wrong"), part="0")
        batch.discard("event_statistics", [Condition("name", "=", "wrong")])
        batch.append("event_statistics", _statistics(batch, "right"), part="1")
    _publish(batch)
    assert _seen(lake, name) == [("right", 3)]


def test_rows_with_an_unknown_column_are_refused_by_its_name(lake: Database, name: str) -> None:
    batch = _begin(lake, name)
    with pytest.raises(StateError, match=r"rows for event_statistics have the unknown columns \['count'\]; known are "):
        batch.append("event_statistics", _statistics(batch, counts="count"))


@pytest.mark.parametrize(
    "name",
    ["a`b'; DROP TABLE events_log; --\"\\ %s {} $1 :p ?", "Straße 🚆 列車", "x" * 255],
    ids=["statement", "unicode", "longest"],
)
def test_any_name_works(lake: Database, name: str) -> None:
    batch = _begin(lake, name)
    register(batch, types={"it's": "int"}, timezone="UTC")
    batch.append("event_statistics", _statistics(batch, name))
    published = _publish(batch)
    assert PublicationsReader(lake).latest("ingest", name) == published
    assert _seen(lake, name) == [(name, 3)]
    row = lake.spark.table(lake.view("streams")).where(F.col("stream") == F.lit(name)).collect()[0]
    assert (row.types, row.stream_id) == ({"it's": "int"}, stream_names.candidates(name)[0])


@pytest.mark.parametrize("name", ["", "x" * 256])
def test_an_empty_or_overlong_name_is_refused(lake: Database, name: str) -> None:
    with pytest.raises(ArgumentError, match=f"has {len(name)} characters; 1 to 255 would be right"):
        _begin(lake, name)


def test_a_stream_is_written_again_only_where_it_changes(lake: Database, name: str) -> None:
    for number, types in enumerate([{"x": "int"}, {"x": "int"}, {"x": "double"}], start=1):
        batch = _begin(lake, name, batch_id=number, configuration={"attributes": types})
        register(batch, types=types, timezone="UTC")
        _publish(batch)
    rows = lake.table("streams").where(F.col("name") == name).orderBy("batch_id").collect()
    assert [(row.batch_id, row.types) for row in rows] == [(1, {"x": "int"}), (3, {"x": "double"})]
    assert lake.spark.table(lake.view("streams")).where(F.col("stream") == name).collect()[0].types == {"x": "double"}


def test_every_table_tells_its_batches() -> None:
    for table in TABLES.values():
        assert len(set(table.column_names)) == len(table.columns)
        # A number is given out, a delivery tried, and a condition observed by no batch.
        by_none = table.name in ("object_numbers", "alert_deliveries", "observed_selectivities")
        told = by_none or "batch_id" in table.column_names
        assert told or {"from_batch", "to_batch"} <= set(table.column_names)


def test_the_intents_of_an_object_stay_apart_from_another_s(lake: Database, name: str) -> None:
    _begin(lake, name)
    assert IntentsReader(lake).after("ingest", name + "'", -1) == []
    assert [intent.object for intent in IntentsReader(lake).after("ingest", name, -1)] == [name]

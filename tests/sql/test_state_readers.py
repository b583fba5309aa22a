"""What readers see: views, as_of, closed rows, horizons."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from sql.empty_database import common

from patternlake.delta_tables.batches import retention
from patternlake.delta_tables.batches.batch import Batch
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.reading.state_reader import Condition, among
from patternlake.delta_tables.reading.visibility import visible
from patternlake.delta_tables.schema import timestamps
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.event_statistics import EventStatisticsReader
from patternlake.delta_tables.tables.events import EventsReader, add_attributes
from patternlake.delta_tables.tables.publications import Publication, PublicationsReader
from patternlake.jobs.maintain.attribute_counts import describe
from patternlake.udfs.blocks import BLOCK_BITS, block_of
from patternlake.udfs.errors import ArgumentError, StateError

_NAMES = (f"read{number}" for number in itertools.count())
_NOON = datetime(2013, 1, 1, 12, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Database:
    return common(spark, tmp_path_factory)


@pytest.fixture
def name() -> str:
    """A stream that no other test uses."""
    return next(_NAMES)


def _begin(lake: Database, job: str, name: str, batch_id: int, base_batch: int = 1) -> Batch:
    return Batch.begin(
        lake,
        job=job,
        object=name,
        stream=name,
        batch_id=batch_id,
        base_batch=base_batch,
        source={},
        source_from=0,
        source_to=0,
        configuration={},
    )


def _rows(lake: Database, table: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows of a table from dictionaries; what is not given is NULL."""
    assert lake.direct is not None
    return pa.Table.from_pylist(rows, schema=lake.direct.schema(table))


def _event(batch: Batch, position: int, **other: Any) -> dict[str, Any]:
    given = {"block": block_of(position), "position": position, "time": _NOON, "name": "a"}
    return {"stream_id": batch.stream_id, "batch_id": batch.batch_id, **given, **other}


def _node(batch: Batch, segment: int, **other: Any) -> dict[str, Any]:
    packed = {"level": 0, "tier": "leaf", "bucket": 0, "finished": True, "m": 16, "k": 2, "plan": 0}
    return {"stream_id": batch.stream_id, "from_batch": batch.batch_id, "segment": segment, **packed, **other}


def _ingest(lake: Database, name: str, batch_id: int, positions: list[int], base_batch: int = 1) -> Publication:
    batch = _begin(lake, "ingest", name, batch_id, base_batch)
    batch.append("events", _rows(lake, "events", [_event(batch, position) for position in positions]))
    return batch.publish(rows_in=len(positions), rows_out=len(positions), watermark=_NOON)


def _sketch(lake: Database, name: str, batch_id: int, segments: list[int], base_batch: int = 1) -> Publication:
    """Publish a batch that writes these segments in the place of equal ones, the usual way of an open segment."""
    batch = _begin(lake, "sketch", name, batch_id, base_batch)
    batch.append("sketch_nodes", _rows(lake, "sketch_nodes", [_node(batch, segment) for segment in segments]))
    for _ in range(2):  # a run, and its replay
        batch.close_rows("sketch_nodes", [among("segment", segments)])
    return batch.publish(rows_in=0, rows_out=len(segments))


def _segments(lake: Database, publication: Publication) -> list[tuple[int, int]]:
    """Pairs of segment and the batch that wrote it, as a publication shows them."""
    nodes = lake.table("sketch_nodes").where(visible(TABLES["sketch_nodes"], publication))
    return sorted((row.segment, row.from_batch) for row in nodes.select("segment", "from_batch").collect())


def _positions(lake: Database, publication: Publication) -> list[int]:
    return sorted(row.position for row in EventsReader(lake).published(publication).select("position").collect())


@pytest.fixture(scope="module")
def twice(lake: Database) -> tuple[Publication, Publication]:
    """Two published batches of a stream, with positions 1, 2 and 3, and a third that is not published."""
    name = "twice"
    published = _ingest(lake, name, 1, [1, 2]), _ingest(lake, name, 2, [3])
    batch = _begin(lake, "ingest", name, 3)
    batch.append("events", _rows(lake, "events", [_event(batch, 4, attributes=[("x", "1")])]))
    return published


def test_each_view_begins_with_the_stream_and_that_of_alerts_with_the_alert(lake: Database) -> None:
    assert lake.spark.table(lake.view("alerts")).columns[:3] == ["alert_id", "alert", "stream"]
    for table in TABLES.values():
        if table.view is not None and "alert" not in table.name:
            assert lake.spark.table(lake.view(table.name)).columns[0] == "stream"


def test_the_view_of_events_has_published_events_with_their_stream(
    lake: Database, twice: tuple[Publication, Publication]
) -> None:
    view = lake.spark.table(lake.view("events"))
    assert view.columns == [
        "stream", "position", "time", "step", "key", "name", "probability", "attributes", "tokens", "batch_id",
        "event_id",
    ]  # fmt: skip
    rows = view.where(F.col("stream") == "twice").select("stream", "position", "batch_id").orderBy("position")
    assert [tuple(row) for row in rows.collect()] == [("twice", 1, 1), ("twice", 2, 1), ("twice", 3, 2)]


def test_events_between_positions_skip_other_blocks(lake: Database, name: str) -> None:
    block = 1 << BLOCK_BITS
    published = _ingest(lake, name, 1, [1, 2, block, block + 1, block + 2])
    rows = EventsReader(lake).between(published, 2, block + 1)
    assert sorted(row.position for row in rows.collect()) == [2, block, block + 1]
    assert all("block=1" in file for file in EventsReader(lake).between(published, block + 1, block + 9).inputFiles())


def test_the_view_of_quarantine_has_reason_and_row(lake: Database, name: str) -> None:
    batch = _begin(lake, "ingest", name, 1)
    row = {"stream_id": batch.stream_id, "batch_id": 1, "reason": "time", "detail": "NULL", "row": "{}", "origin": "f"}
    batch.append("quarantine", _rows(lake, "quarantine", [row]))
    batch.publish(rows_in=1, rows_out=0, rows_quarantined=1)
    seen = lake.spark.table(lake.view("quarantine")).where(F.col("stream") == name).collect()
    assert [tuple(row) for row in seen] == [(name, "time", "NULL", "{}", "f", 1)]


def test_the_view_of_statistics_adds_up_batches(lake: Database, name: str) -> None:
    for number, hour in ((1, 0), (2, 3)):
        batch = _begin(lake, "ingest", name, number)
        time = _NOON + timedelta(hours=hour)
        row = {"name": "a", "events": 10 * number, "first_time": time, "last_time": time}
        row |= {"stream_id": batch.stream_id, "batch_id": number}
        batch.append("event_statistics", _rows(lake, "event_statistics", [row]))
        batch.publish(rows_in=0, rows_out=0)
    seen = lake.spark.table(lake.view("event_statistics")).where(F.col("stream") == name)
    values = seen.select("name", "events", F.unix_seconds("last_time") - F.unix_seconds("first_time")).collect()
    assert [tuple(row) for row in values] == [("a", 30, 3 * 3600)]


def test_the_view_of_nodes_has_one_row_per_node(lake: Database, name: str) -> None:
    batch = _begin(lake, "sketch", name, 1)
    packed: dict[str, Any] = {"node": [0, 1], "pos_lo": [1, 3], "pos_hi": [2, 4], "ones": [4, 8], "distinct": [2, 4]}
    packed |= {"time_lo": [0, 2_000_000], "time_hi": [1_000_000, 3_000_000], "bits": b"\x01\x02\x03\x04"}
    batch.append("sketch_nodes", _rows(lake, "sketch_nodes", [_node(batch, 7, **packed), _node(batch, 8)]))
    batch.publish(rows_in=0, rows_out=2)
    view = lake.spark.table(lake.view("sketch_nodes"))
    assert view.columns == [
        "stream", "segment", "level", "node", "pos_lo", "pos_hi", "min_time", "max_time", "density", "m", "k", "bits",
        "finished", "from_batch",
    ]  # fmt: skip
    rows = view.where(F.col("stream") == name).orderBy("node")
    seen = rows.select("segment", "node", "pos_lo", "pos_hi", F.unix_seconds("min_time"), "density", "bits").collect()
    assert [tuple(row) for row in seen] == [
        (7, 0, 1, 2, 0, 0.25, bytearray(b"\x01\x02")),
        (7, 1, 3, 4, 2, 0.5, bytearray(b"\x03\x04")),
    ]


def test_the_view_of_publications_gives_each_batch_its_interval(
    lake: Database, twice: tuple[Publication, Publication]
) -> None:
    rows = lake.spark.table(lake.view("publications")).where(F.col("stream") == "twice").orderBy("batch_id")
    intervals = rows.select(F.unix_micros("published_at"), F.unix_micros("superseded_at")).collect()
    began = [timestamps.to_micros(publication.published_at) for publication in twice]
    assert [tuple(row) for row in intervals] == [(began[0], began[1]), (began[1], None)]


def test_a_rebuild_shows_its_own_rows_alone(lake: Database, name: str) -> None:
    before = _ingest(lake, name, 1, [1, 2])
    rebuilt = _ingest(lake, name, 2, [1], base_batch=2)
    assert _positions(lake, rebuilt) == [1]
    assert _positions(lake, before) == [1, 2]


def test_a_closed_row_is_seen_before_its_closing_and_not_after(lake: Database, name: str) -> None:
    first = _sketch(lake, name, 1, [0, 1])
    second = _sketch(lake, name, 2, [1, 2])
    assert _segments(lake, first) == [(0, 1), (1, 1)]
    assert _segments(lake, second) == [(0, 1), (1, 2), (2, 2)]


def test_closing_is_unseen_until_its_batch_is_published(lake: Database, name: str) -> None:
    other, first = _sketch(lake, next(_NAMES), 1, [1]), _sketch(lake, name, 1, [0, 1])
    _begin(lake, "sketch", name, 2).close_rows("sketch_nodes", [Condition("segment", "=", 1)])
    assert _segments(lake, first) == [(0, 1), (1, 1)]
    of_other = lake.table("sketch_nodes").where(F.col("stream_id") == other.stream_id)
    assert [row.to_batch for row in of_other.select("to_batch").collect()] == [None]


def test_as_of_picks_the_batch_that_was_current(lake: Database, twice: tuple[Publication, Publication]) -> None:
    first, second = twice
    reader = PublicationsReader(lake)
    assert reader.at("ingest", "twice", first.published_at) == first
    assert reader.at("ingest", "twice", second.published_at - timedelta(microseconds=1)) == first
    assert reader.at("ingest", "twice", second.published_at) == second
    assert reader.at("ingest", "twice") == second
    assert (_positions(lake, first), _positions(lake, second)) == ([1, 2], [1, 2, 3])


def test_as_of_before_the_first_publication_names_it(lake: Database, twice: tuple[Publication, Publication]) -> None:
    with pytest.raises(StateError, match="before the first publication of ingest") as error:
        PublicationsReader(lake).at("ingest", "twice", _NOON)
    assert timestamps.show_moment(twice[0].published_at) in str(error.value)


def test_an_object_that_published_nothing_says_so(lake: Database, name: str) -> None:
    with pytest.raises(StateError, match=f"ingest of '{name}' has published nothing yet"):
        PublicationsReader(lake).at("ingest", name)


def test_a_moment_without_a_zone_is_refused(lake: Database, name: str) -> None:
    with pytest.raises(ArgumentError, match="2013-01-01 00:00:00 has no time zone"):
        PublicationsReader(lake).at("ingest", name, datetime(2013, 1, 1))


def test_the_session_s_time_zone_does_not_matter(lake: Database, name: str) -> None:
    before = lake.spark.conf.get("spark.sql.session.timeZone")
    lake.spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        written = _ingest(lake, name, 1, [1])
    finally:
        lake.spark.conf.set("spark.sql.session.timeZone", before)
    assert written.watermark == _NOON
    assert PublicationsReader(lake).at("ingest", name, written.published_at) == written


def test_publications_are_in_order_though_the_clock_goes_back(
    lake: Database, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _ingest(lake, name, 1, [1])
    monkeypatch.setattr(timestamps, "now", lambda: _NOON)
    second = _ingest(lake, name, 2, [2])
    assert second.published_at == first.published_at + timedelta(microseconds=1)


def test_forgetting_keeps_every_answer_since_the_horizon(lake: Database, name: str) -> None:
    first = _sketch(lake, name, 1, [0, 1])
    second = _sketch(lake, name, 2, [1, 2])
    third = _sketch(lake, name, 3, [2])
    kept = _segments(lake, second), _segments(lake, third)
    recorded = retention.forget(lake, job="sketch", object=name, horizon=second.published_at)
    assert recorded is not None
    assert (recorded.batch_id, recorded.horizon) == (3, second.published_at)
    reader = PublicationsReader(lake)
    at_horizon = reader.at("sketch", name, second.published_at)
    assert (_segments(lake, at_horizon), _segments(lake, reader.at("sketch", name))) == kept
    rows = lake.table("sketch_nodes").where(F.col("stream_id") == first.stream_id)
    assert sorted((row.segment, row.from_batch) for row in rows.collect()) == [(0, 1), (1, 2), (2, 2), (2, 3)]
    with pytest.raises(StateError, match="before the horizon of sketch") as error:
        reader.at("sketch", name, first.published_at)
    assert timestamps.show_moment(second.published_at) in str(error.value)


def test_forgetting_removes_what_a_rebuild_left(lake: Database, name: str) -> None:
    _ingest(lake, name, 1, [1, 2])
    rebuilt = _ingest(lake, name, 2, [1], base_batch=2)
    for _ in range(2):  # idempotent
        retention.forget(lake, job="ingest", object=name, horizon=rebuilt.published_at)
    rows = lake.table("events").where(F.col("stream_id") == rebuilt.stream_id).collect()
    assert [(row.position, row.batch_id) for row in rows] == [(1, 2)]
    assert lake.table("publications").where(F.col("object") == name).count() == 3


def test_events_stay_that_a_sketch_read_which_was_not_made_anew_with_its_stream(lake: Database, name: str) -> None:
    def sketch_of(ingest: Publication, number: int) -> None:
        batch = Batch.begin(
            lake,
            job="sketch",
            object=name,
            stream=name,
            batch_id=number,
            base_batch=number,
            source={"ingest_batch": ingest.batch_id, "ingest_base": ingest.base_batch},
            source_from=0,
            source_to=0,
            configuration={},
        )
        batch.publish(rows_in=0, rows_out=0)

    def kept() -> list[int]:
        readers = [("sketch", name), ("trends", "another")]
        retention.forget(lake, job="ingest", object=name, horizon=timestamps.now(), readers=readers)
        rows = lake.table("events").where(F.col("stream_id") == rebuilt.stream_id)
        return sorted({row.batch_id for row in rows.collect()})

    sketch_of(_ingest(lake, name, 1, [1, 2]), 1)
    rebuilt = _ingest(lake, name, 2, [1], base_batch=2)
    assert kept() == [1, 2]
    sketch_of(rebuilt, 2)
    assert kept() == [2]


def test_attributes_are_described_anew_once_the_stream_has_grown_by_a_tenth(lake: Database, name: str) -> None:
    reader = EventStatisticsReader(lake)
    add_attributes(lake, {"x": "double"})
    told = []
    for batch, (first, last) in enumerate([(1, 10), (11, 11), (12, 12)], start=1):
        positions = list(range(first, last + 1))
        published = replace(_ingest(lake, name, batch, positions), source_to=last)
        describe(lake, published, {"x": "double"})
        told.append(reader.described(published))
    assert told == [10, 10, 12]
    rebuilt = replace(_ingest(lake, name, 4, [1], base_batch=4), source_to=1)
    assert reader.described(rebuilt) == 0
    describe(lake, rebuilt, {})
    for database in (lake, replace(lake, direct=None, folder_on_disk=None)):
        assert EventStatisticsReader(database).described(rebuilt) == 1


def test_the_horizon_holds_for_later_batches_and_never_moves_back(lake: Database, name: str) -> None:
    first = _ingest(lake, name, 1, [1])
    retention.forget(lake, job="ingest", object=name, horizon=first.published_at)
    assert _ingest(lake, name, 2, [3]).horizon == first.published_at
    earlier = first.published_at - timedelta(seconds=1)
    kept = retention.forget(lake, job="ingest", object=name, horizon=earlier)
    assert kept is not None
    assert kept.horizon == first.published_at


def test_a_horizon_before_the_first_publication_forgets_nothing(
    lake: Database, twice: tuple[Publication, Publication]
) -> None:
    assert retention.forget(lake, job="ingest", object="twice", horizon=_NOON) is None


def test_a_horizon_in_the_future_is_refused(lake: Database, name: str) -> None:
    with pytest.raises(ArgumentError, match="lies in the future"):
        retention.forget(lake, job="ingest", object=name, horizon=datetime(2999, 1, 1, tzinfo=timezone.utc))

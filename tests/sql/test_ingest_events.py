"""What ingest makes of a source's rows: events in order, the rest in quarantine, nothing lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from sql.empty_database import common

from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.tables.events import TABLE as EVENTS
from patternlake.delta_tables.tables.publications import PublicationsReader
from patternlake.delta_tables.writing import writes
from patternlake.jobs.batches import few
from patternlake.jobs.ingest import bringing
from patternlake.jobs.sources import text_files
from tests.sql.ingesting import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def db(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Database:
    return common(spark, tmp_path_factory)


@pytest.fixture
def s(db: Database, tmp_path: Path) -> Lake:
    return Lake(db, tmp_path)


def test_events_are_numbered_by_time_then_as_they_stand_in_the_files(s: Lake) -> None:
    s.write("b.csv", "2024-01-01 00:00:02,a,,4", "2024-01-01 00:00:02,a,j,5")
    s.write("a.csv", "2024-01-01 00:00:02,b,k,1", "2024-01-01 00:00:01,z,k,2", "2024-01-01 00:00:02,a,k,3")
    summary = s.ingest()
    assert (summary.batch_id, summary.batches, summary.rows_in, summary.rows_out) == (1, 1, 5, 5)
    assert s.events("position", "name", "key", "attributes['x']") == [
        (1, "z", "k", "2.0"),
        (2, "b", "k", "1.0"),
        (3, "a", "k", "3.0"),
        (4, "a", None, "4.0"),
        (5, "a", "j", "5.0"),
    ]


def test_positions_and_times_are_stored_as_differences_in_merged_files_too(
    s: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    s.write("01.csv", "2024-01-01,a,k,1")
    s.ingest()
    of_few = files_of(s)
    # Of few rows the driver writes a plain file, which is small and soon merged.
    monkeypatch.setattr(text_files, "FEW_BYTES", -1)
    monkeypatch.setattr(few, "FEW_EVENTS", -1)
    monkeypatch.setattr(bringing, "on_one_disk", lambda spark: False)
    s.write("02.csv", "2024-01-02,a,k,1")
    s.ingest()
    files = files_of(s)
    assert encodings(files - of_few) == {("DELTA_BINARY_PACKED",)}
    with s.db.apart() as own:
        writes.compact(own.spark, own.log("events"), f"stream_id = {number_of(s)}", EVENTS.writing)
    assert encodings(files_of(s) - files) == {("DELTA_BINARY_PACKED",)}


def number_of(s: Lake) -> int:
    published = PublicationsReader(s.db).latest("ingest", s.name)
    assert published is not None
    return published.stream_id


def files_of(s: Lake) -> set[Path]:
    return set(Path(s.db.location, "events_log", f"stream_id={number_of(s)}").rglob("*.parquet"))


def encodings(files: set[Path]) -> set[tuple[str, ...]]:
    """How positions and times are stored in files, of which there are some, whoever wrote them."""
    groups = [pq.read_metadata(file).row_group(0) for file in files]
    columns = [group.column(place) for group in groups for place in range(group.num_columns)]
    found = [column.encodings for column in columns if column.path_in_schema in ("position", "time")]
    # Arrow names the encoding of NULLs as well.
    return {tuple(each for each in encodings if each != "RLE") for encodings in found}


def test_a_second_run_reads_only_new_files_and_positions_go_on(s: Lake) -> None:
    s.write("a.csv", "2024-01-01,a,k,1")
    s.ingest()
    assert s.ingest().batches == 0
    s.write("b.csv", "2024-01-02,b,k,2")
    summary = s.ingest()
    assert (summary.batch_id, summary.rows_in) == (2, 1)
    assert s.events("position", "name", "batch_id") == [(1, "a", 1), (2, "b", 2)]


def test_every_kind_of_bad_row_goes_to_quarantine_with_its_reason_and_takes_no_position(s: Lake) -> None:
    s.write(
        "a.csv",
        "2024-01-01 00:00:00,a,k,1",
        "2400,a,k,1",
        ",a,k,1",
        "2024-01-01,,k,1",
        "2024-01-01,a,k,much",
        "2024-01-01,a",
        "never,,k,much",
        "2024-01-01 00:00:01,b,k,",
    )
    summary = s.ingest(time="CASE WHEN at = '2400' THEN to_timestamp(at, 'HHmm') ELSE at END")
    assert (summary.rows_in, summary.rows_out, summary.rows_quarantined) == (8, 2, 6)
    assert s.events("position", "name", "attributes['x']") == [(1, "a", "1.0"), (2, "b", None)]
    rows = {json.loads(row["row"])["at"]: row for row in s.quarantine() if row["reason"] != "corrupt"}
    assert s.reasons() == ["cast", "corrupt", "name", "time", "time", "time"]
    assert rows["never"]["detail"] == (
        "time: 'never' is not a timestamp; name: is NULL (what: NULL); x: 'much' is not of type double"
    )
    assert all(row["origin"].endswith("/data/a.csv") for row in s.quarantine())


def test_a_time_of_day_alone_is_none_of_today(s: Lake) -> None:
    s.write("a.csv", "2024-01-01 09:15:00,a,09:15,1", "09:15:00,b,k,1", " T9:15,c,k,1", "2024-01-02 10:00:00,d,k,1")
    s.ingest(attributes={"since": {"type": "timestamp", "expr": "who"}})
    assert sorted(row["detail"] for row in s.quarantine()) == [
        "since: '09:15' is not of type timestamp",
        "since: 'k' is not of type timestamp",
        "time: ' T9:15' is not a timestamp; since: 'k' is not of type timestamp",
        "time: '09:15:00' is not a timestamp; since: 'k' is not of type timestamp",
    ]


def test_the_detail_names_the_text_that_gave_no_time(s: Lake) -> None:
    s.write("a.csv", "31.12.2023 10:00,a,k,1", ",b,k,1", f"{'9' * 101},c,k,1")
    s.ingest(time="to_timestamp(substr(at, 1), 'yyyy-MM-dd HH:mm')")
    assert sorted(row["detail"] for row in s.quarantine()) == [
        "time: is NULL (at: '31.12.2023 10:00')",
        f"time: is NULL (at: '{'9' * 100}…')",
        "time: is NULL (at: NULL)",
    ]


def test_times_outside_the_years_1_to_9999_go_to_quarantine_and_stop_no_later_run(s: Lake) -> None:
    # Seconds; milliseconds, in the year 55921; microseconds, in the year 53.9 million; more than a timestamp holds.
    seconds = ("1702512000", "1702512000000", "1702512000000000", "9" * 18, "-62135596800", "-62135596801")
    s.write("a.csv", *(f"{at},a,k,1" for at in seconds))
    changes = {"time": "timestamp_seconds(bigint(at))", "allowed_lateness": "1 day"}
    assert s.ingest(**changes).rows_out == 2
    assert s.events("cast(time AS string)") == [("0001-01-01 00:00:00",), ("2023-12-14 00:00:00",)]
    hint = "lies outside the years 1 to 9999; is it in milliseconds or microseconds where seconds are read?"
    assert {json.loads(row["row"])["at"]: row["detail"] for row in s.quarantine()} == {
        "1702512000000": f"time: '+55920-06-17 00:00:00' (at: '1702512000000') {hint}",
        "1702512000000000": "time: is NULL (at: '1702512000000000')",
        "999999999999999999": "time: is NULL (at: '999999999999999999')",
        "-62135596801": f"time: '0000-12-31 23:59:59' (at: '-62135596801') {hint}",
    }
    assert s.reasons() == ["time"] * 4
    s.write("b.csv", "1702512001,b,k,1", "1702512001000,c,k,1")
    assert s.ingest(**changes).rows_out == 1
    s.write("c.csv", "2024-01-01,b,k,1702512001000")
    moments = {"x": {"type": "timestamp", "expr": "timestamp_seconds(bigint(x))"}}
    s.ingest(time="coalesce(cast(at AS timestamp), timestamp '2024-01-01')", attributes=moments, rebuild=True)
    assert "cast" in s.reasons()


def test_a_watermark_ends_at_the_first_year(s: Lake) -> None:
    s.write("a.csv", "0001-01-01 00:00:00,a,k,1")
    s.ingest(allowed_lateness="1 day")
    s.write("b.csv", "0001-01-01 00:00:01,b,k,1")
    s.ingest(allowed_lateness="1 day")
    assert s.events("name") == [("a",), ("b",)]


def test_quarantine_keeps_the_row_as_it_was_in_the_source(s: Lake) -> None:
    s.write("a.csv", "2024-01-01,a,k,1", 'nonsense,a,k,é"')
    s.ingest()
    assert json.loads(s.quarantine()[0]["row"]) == {"at": "nonsense", "what": "a", "who": "k", "x": 'é"'}


def test_a_row_below_the_watermark_published_before_its_batch_is_late(s: Lake) -> None:
    s.write("a.csv", "2024-01-02 10:00:00,a,k,1", "2024-01-01 00:00:00,old,k,1")
    s.ingest(allowed_lateness="1 hour")
    s.write("b.csv", "2024-01-02 08:59:59,late,k,1", "2024-01-02 09:00:00,b,k,1")
    s.ingest(allowed_lateness="1 hour")
    assert s.events("name") == [("old",), ("a",), ("b",)]
    assert [(row["reason"], json.loads(row["row"])["what"]) for row in s.quarantine()] == [("late", "late")]
    s.write("c.csv", "2020-01-01 00:00:00,c,k,1")
    s.ingest(allowed_lateness="none")
    assert s.events("name")[-1] == ("c",)
    # Where there is an allowed lateness again, the watermark goes on from where it was.
    s.write("d.csv", "2024-01-02 08:00:00,d,k,1", "2024-01-02 10:30:00,d,k,1")
    s.ingest(allowed_lateness="2 hours")
    s.write("e.csv", "2024-01-02 08:59:59,e,k,1")
    s.ingest(allowed_lateness="2 hours")
    assert [json.loads(row["row"])["what"] for row in s.quarantine()] == ["d", "e", "late"]


def test_times_are_read_in_the_streams_zone_and_timestamps_keep_their_moment(s: Lake) -> None:
    s.write("a.csv", "2024-07-01 12:00:00,a,k,1")
    s.ingest(timezone="America/New_York", attributes={"moment": {"type": "timestamp", "expr": "at"}})
    assert s.events("cast(time AS string)", "cast(attributes['moment'] AS timestamp) = time") == [
        ("2024-07-01 16:00:00", True)
    ]


def test_the_session_is_left_as_it_was(s: Lake) -> None:
    s.write("a.csv", "2024-07-01 12:00:00,a,k,1")
    keys = ("spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.maxConcurrentOutputFileWriters")
    before = [s.spark.conf.get(key) for key in keys]
    s.ingest(timezone="Asia/Tokyo")
    assert [s.spark.conf.get(key) for key in keys] == before
    assert s.spark._jsparkSession.sharedState().cacheManager().isEmpty()


def test_tokens_see_the_event_first_and_the_source_behind_it(s: Lake) -> None:
    s.write("a.csv", "2024-01-01,a,k,1", "2024-01-02,b,k,")
    s.ingest(tokens=["name", "name || ':' || x", "who"])
    assert s.events("tokens") == [(["a", "a:1.0", "k"],), (["b", None, "k"],)]


def test_the_name_alone_needs_no_tokens(s: Lake) -> None:
    s.write("a.csv", "2024-01-01,a,k,1")
    s.ingest(tokens=["name"])
    assert s.events("tokens") == [(None,)]


def test_statistics_watermark_and_stream_are_published(s: Lake) -> None:
    s.write("a.csv", "2024-01-01,a,k,1", "2024-01-03,a,k,1", "2024-01-02,b,k,1", "x,c,k,1")
    s.ingest(allowed_lateness="1 day")
    assert [
        (row["name"], row["events"], str(row["last_time"]))
        for row in s.rows("event_statistics")
        .orderBy("name")
        .selectExpr("name", "events", "cast(last_time AS string) AS last_time")
        .collect()
    ] == [("a", 2, "2024-01-03 00:00:00"), ("b", 1, "2024-01-02 00:00:00")]
    published = s.rows("publications").selectExpr("rows_in", "rows_out", "source_to", "cast(watermark AS string)")
    assert [tuple(row) for row in published.collect()] == [(4, 3, 3, "2024-01-02 00:00:00")]
    assert s.rows("streams").collect()[0]["types"] == {"x": "double"}

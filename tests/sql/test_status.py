"""How objects are said to stand, on state that was written batch by batch."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from sql.empty_database import opened

from patternlake.delta_tables.batches import retention
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.committing.direct_commits import TableFolder
from patternlake.delta_tables.databases import migrations, opening
from patternlake.delta_tables.databases.opening import reader_without_spark
from patternlake.delta_tables.reading import table_logs
from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.file_cache import TableCache
from patternlake.delta_tables.reading.table_logs import UnreadableError
from patternlake.delta_tables.schema.stream_names import candidates
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.publications import PublicationsReader
from patternlake.delta_tables.writing import direct_writer
from patternlake.jobs.batches import few
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.reports.status import ObjectStatus, status, status_without_spark
from patternlake.jobs.reports.status_sources import sizes_by_logs, sizes_by_spark

NOON = datetime(2013, 1, 1, 12, tzinfo=timezone.utc)
CONFIGURATION = Configuration.from_text(
    """
streams:
  flights: {source: {format: csv, path: data, options: {header: true}}, time: at, name: what}
  behind: {source: {format: csv, path: data, options: {header: true}}, time: at, name: what}
  rebuilt: {source: {format: csv, path: data, options: {header: true}}, time: at, name: what}
  never: {source: {format: csv, path: data, options: {header: true}}, time: at, name: what}
sketches:
  flights: {keyed: true}
  behind: {}
  rebuilt: {}
  never: {}
trends:
  delays: {stream: flights, query: "PATTERN late+ f[]"}
  untold: {stream: behind, query: "PATTERN a+ f[]"}
"""
)


class History:
    """Rows of the state tables as jobs leave them, gathered first, as each write of its own would cost a commit."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {}

    def ingest(
        self, name: str, batch_id: int, names: dict[str, int], last: int, *, base: int = 1, quarantined: int = 0
    ) -> None:
        """A published batch of a stream: so many events of each name, up to position `last`."""
        counts = [{"name": each, "events": count} for each, count in names.items()]
        self._add("event_statistics", name, *counts, batch_id=batch_id)
        total = sum(names.values())
        self._publish(
            "ingest",
            name,
            batch_id=batch_id,
            base_batch=base,
            source_to=last,
            rows_in=total + quarantined,
            rows_out=total,
            rows_quarantined=quarantined,
            watermark=NOON,
        )

    def sketch(
        self, name: str, batch_id: int, last: int, nodes: int, *, keys: list[list[str]], closed_by: int | None = None
    ) -> None:
        """A published sketch of a stream's first batches up to this one: a segment of 64-bit nodes per key list."""
        segments = [{"segment": number, "keys": listed} for number, listed in enumerate(keys)]
        packed = {"level": 0, "tier": "top", "bucket": 0, "m": 64, "node": list(range(nodes)), "bits": bytes(8 * nodes)}
        self._add("sketch_nodes", name, *segments, from_batch=batch_id, to_batch=closed_by, **packed)
        source = json.dumps({"ingest_batch": batch_id, "ingest_base": 1})
        counts = {"rows_in": 0, "rows_out": len(keys), "rows_quarantined": 0}
        self._publish("sketch", name, batch_id=batch_id, base_batch=1, source_to=last, source=source, **counts)

    def trends(self, name: str, stream: str, last: int) -> None:
        """A published graph of a stream's first batch, of one vertex."""
        vertex = {"trend_id": candidates(name)[0], "kind": "event", "pane": 0, "position": last}
        self._add("trend_vertices", stream, vertex, from_batch=1)
        source = json.dumps({"ingest_batch": 1, "ingest_base": 1})
        counts = {"rows_in": last, "rows_out": 1, "rows_quarantined": 0}
        published = {"base_batch": 1, "source_to": last, "source": source, "stream": stream}
        self._publish("trends", name, batch_id=1, **published, **counts)

    def begin(self, job: str, name: str, batch_id: int) -> None:
        """A batch that was begun."""
        self._add("intents", name, {"job": job, "object": name, "stream": name}, batch_id=batch_id)

    def write(self, lake: Database) -> None:
        assert lake.direct is not None
        for table, given in self.rows.items():
            rows = pa.Table.from_pylist(given, schema=lake.direct.schema(table))
            assert direct_writer.append(
                TableFolder(lake.folder(TABLES[table].log)), rows, application="history", version=1
            )

    def _publish(self, job: str, name: str, batch_id: int, **values: Any) -> None:
        common = {"job": job, "object": name, "stream": name, "batch_id": batch_id, "source": "{}"}
        common["object_id"] = candidates(name)[0]
        common |= {"published_at": NOON + timedelta(hours=batch_id), "configuration": "{}", "state": "{}"}
        self._add("publications", name, common | values)
        self.begin(job, name, batch_id)

    def _add(self, table: str, name: str, *rows: dict[str, Any], **common: Any) -> None:
        self.rows.setdefault(table, []).extend({"stream_id": candidates(name)[0], **common, **row} for row in rows)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Database:
    history = History()
    history.ingest("flights", 1, {"late": 60, "on time": 20}, 80, quarantined=3)
    history.sketch("flights", 1, 80, nodes=3, keys=[["N1"]], closed_by=2)
    history.ingest("flights", 2, {"late": 10, "cancelled": 10}, 100, quarantined=1)
    history.sketch("flights", 2, 100, nodes=5, keys=[["N1", "N22"], ["N22", "N333", "N4444"]])

    history.trends("delays", "flights", 80)

    history.ingest("behind", 1, {"a": 10}, 10)
    history.sketch("behind", 1, 10, nodes=1, keys=[[]])
    history.ingest("behind", 2, {"a": 5}, 15)
    history.ingest("behind", 3, {"a": 7}, 22)
    history.begin("ingest", "behind", 4)

    history.ingest("rebuilt", 1, {"a": 10}, 10)
    history.sketch("rebuilt", 1, 10, nodes=1, keys=[[]])
    history.ingest("rebuilt", 2, {"a": 4}, 4, base=2)
    history.ingest("rebuilt", 3, {"a": 2}, 6, base=2)

    history.ingest("forgotten", 1, {"a": 1}, 1)
    database = opened(spark, "status", tmp_path_factory.mktemp("status"))
    history.write(database)
    return database


@pytest.fixture(scope="module")
def found(lake: Database) -> dict[tuple[str, str], ObjectStatus]:
    return {(each.job, each.object): each for each in status(lake, CONFIGURATION)}


def test_every_object_configured_or_published_is_listed_job_by_job(
    found: dict[tuple[str, str], ObjectStatus],
) -> None:
    listed = [(each.job, each.object, each.configured) for each in found.values()]
    assert listed == [
        ("ingest", "behind", True),
        ("ingest", "flights", True),
        ("ingest", "forgotten", False),
        ("ingest", "never", True),
        ("ingest", "rebuilt", True),
        ("sketch", "behind", True),
        ("sketch", "flights", True),
        ("sketch", "never", True),
        ("sketch", "rebuilt", True),
        ("trends", "delays", True),
        ("trends", "untold", True),
    ]


def test_rows_are_totals_over_all_batches(found: dict[tuple[str, str], ObjectStatus]) -> None:
    flights = found["ingest", "flights"]
    assert (flights.rows_in, flights.rows_out, flights.rows_quarantined) == (104, 100, 4)
    assert flights.batch_id == 2
    assert flights.watermark == NOON


def test_a_query_lags_behind_the_stream_that_it_reads(found: dict[tuple[str, str], ObjectStatus]) -> None:
    delays, untold = found["trends", "delays"], found["trends", "untold"]
    assert (delays.stream, delays.lag_rows, delays.lag_batches) == ("flights", 20, 1)
    assert (untold.stream, untold.lag_rows, untold.lag_batches) == ("behind", 22, 3)


def test_batches_before_a_rebuild_are_not_counted(found: dict[tuple[str, str], ObjectStatus]) -> None:
    assert found["ingest", "rebuilt"].rows_out == 6


def test_an_object_that_never_ran_says_so(found: dict[tuple[str, str], ObjectStatus]) -> None:
    assert found["ingest", "never"] == ObjectStatus("ingest", "never", "never", True)
    assert found["sketch", "never"] == ObjectStatus("sketch", "never", "never", True, lag_rows=0, lag_batches=0)


def test_lag_counts_the_rows_and_batches_of_the_stream_that_are_not_known_yet(
    found: dict[tuple[str, str], ObjectStatus],
) -> None:
    assert (found["sketch", "flights"].lag_rows, found["sketch", "flights"].lag_batches) == (0, 0)
    assert (found["sketch", "behind"].lag_rows, found["sketch", "behind"].lag_batches) == (12, 2)


def test_after_a_rebuild_of_its_stream_an_object_lags_by_the_whole_stream(
    found: dict[tuple[str, str], ObjectStatus],
) -> None:
    assert (found["sketch", "rebuilt"].lag_rows, found["sketch", "rebuilt"].lag_batches) == (6, 2)


def test_a_stream_has_no_lag_but_the_age_of_its_watermark(found: dict[tuple[str, str], ObjectStatus]) -> None:
    assert found["ingest", "behind"].lag_rows is None


def test_a_batch_that_was_begun_and_not_published_is_named(found: dict[tuple[str, str], ObjectStatus]) -> None:
    assert found["ingest", "behind"].open_batch == 4
    assert found["ingest", "flights"].open_batch is None


def test_a_sketch_tells_its_bytes_per_event_beside_those_of_a_dictionary_coded_log(
    found: dict[tuple[str, str], ObjectStatus],
) -> None:
    flights = found["sketch", "flights"]
    filters = 2 * 5 * 8
    key_lists = len("N1N22") + len("N22N333N4444")
    assert flights.state_bytes == filters + key_lists
    assert flights.bytes_per_event == (filters + key_lists) / 100
    # 3 names: 2 bits; 4 keys: 2 bits; 100 events.
    coded = 100 * 4 / 8 + len("lateon timecancelled") + len("N1N22N333N4444")
    assert flights.dictionary_bytes_per_event == coded / 100


def test_one_name_needs_no_bits_in_a_dictionary_coded_log(found: dict[tuple[str, str], ObjectStatus]) -> None:
    behind = found["sketch", "behind"]
    assert behind.bytes_per_event == 8 / 10
    assert behind.dictionary_bytes_per_event == len("a") / 10


@pytest.mark.parametrize(("job", "table"), [("sketch", "sketch_nodes"), ("trends", "trend_vertices")])
def test_sizes_are_those_of_the_objects_files(
    lake: Database, found: dict[tuple[str, str], ObjectStatus], job: str, table: str
) -> None:
    total = lake.spark.sql(f"DESCRIBE DETAIL {lake.log(table)}").collect()[0].sizeInBytes
    published = [each for each in found.values() if each.job == job and each.batch_id is not None]
    assert all(each.bytes > 0 for each in published)
    assert sum(each.bytes for each in published) == total


def test_where_only_spark_reads_sizes_are_the_same(lake: Database) -> None:
    assert lake.direct is not None
    owners = {"sketch_nodes": ("sketch", "stream_id"), "trend_vertices": ("trends", "trend_id")}
    of_logs = sizes_by_logs(lake.direct, owners)
    assert of_logs == sizes_by_spark(lake, owners)
    assert {job for job, _ in of_logs} == {"sketch", "trends"}


def test_status_is_the_same_without_spark_and_where_only_spark_reads(lake: Database) -> None:
    reader = reader_without_spark(lake.location)
    assert reader is not None
    of_spark = status(replace(lake, direct=None), CONFIGURATION)
    assert status_without_spark(reader, CONFIGURATION) == of_spark
    assert status(lake, CONFIGURATION) == of_spark


def test_a_sketch_too_large_for_the_driver_is_summed_up_by_tasks(
    lake: Database, found: dict[tuple[str, str], ObjectStatus], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few, "FEW_BYTES", 0)
    reader = reader_without_spark(lake.location)
    assert reader is not None
    with pytest.raises(UnreadableError, match="bytes would be read to sum up sketches, more than 0"):
        status_without_spark(reader, CONFIGURATION)
    assert status(lake, CONFIGURATION) == [*found.values()]


def test_without_spark_only_a_database_on_this_machines_disks_is_read(
    lake: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reader_without_spark(f"file://{lake.location}") is not None
    for elsewhere in (None, "s3://bucket/lake", f"hdfs:{lake.location}", str(tmp_path), f"{lake.location}/events_log"):
        assert reader_without_spark(elsewhere) is None
    monkeypatch.chdir(Path(lake.location).parent)
    assert reader_without_spark(Path(lake.location).name) is not None


@pytest.mark.parametrize("version", [migrations.SCHEMA_VERSION - 1, migrations.SCHEMA_VERSION + 1])
def test_without_spark_no_database_of_another_version_is_read(
    lake: Database, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", version)
    assert reader_without_spark(lake.location) is None, "only Spark migrates, and says what is too new"


def test_without_spark_no_table_is_read_that_delta_rs_cannot(lake: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_logs, "_READER_VERSION", 0)
    monkeypatch.setattr(opening, "_reader", lambda folder: DirectReader(folder, TableCache()))
    assert reader_without_spark(lake.location) is None


def test_a_horizon_is_shown_and_counts_no_batch_twice(lake: Database) -> None:
    horizon = PublicationsReader(lake).at("ingest", "forgotten").published_at
    retention.forget(lake, job="ingest", object="forgotten", horizon=horizon)
    forgotten = next(each for each in status(lake, CONFIGURATION) if each.object == "forgotten")
    assert forgotten.horizon == horizon
    assert forgotten.rows_out == 1

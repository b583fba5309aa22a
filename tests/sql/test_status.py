"""How objects are said to stand, on state that was written batch by batch."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from patternlake.delta_tables import retention
from patternlake.delta_tables.batches import Batch
from patternlake.delta_tables.database import Database
from patternlake.delta_tables.publications import Publication, PublicationsReader
from patternlake.jobs.configuration import Configuration
from patternlake.jobs.status import ObjectStatus, status

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
"""
)


def begin(lake: Database, job: str, name: str, batch_id: int, base_batch: int, source: dict[str, Any]) -> Batch:
    return Batch.begin(
        lake,
        job=job,
        object=name,
        stream=name,
        batch_id=batch_id,
        base_batch=base_batch,
        source=source,
        source_from=0,
        source_to=0,
        configuration={},
    )


def rows(lake: Database, table: str, given: list[dict[str, Any]]) -> DataFrame:
    schema = lake.table(table).schema
    return lake.spark.createDataFrame([tuple(row.get(field.name) for field in schema) for row in given], schema)


def ingest(
    lake: Database, name: str, batch_id: int, names: dict[str, int], last: int, *, base: int = 1, quarantined: int = 0
) -> Publication:
    """Publish a batch of a stream: so many events of each name, up to position `last`."""
    batch = begin(lake, "ingest", name, batch_id, base, {})
    counts = [
        {"stream_id": batch.stream_id, "batch_id": batch_id, "name": each, "events": count}
        for each, count in names.items()
    ]
    batch.append("event_statistics", rows(lake, "event_statistics", counts))
    total = sum(names.values())
    return batch.publish(
        rows_in=total + quarantined, rows_out=total, rows_quarantined=quarantined, watermark=NOON, source_to=last
    )


def sketch(
    lake: Database, name: str, batch_id: int, of: Publication, nodes: int, keys: list[list[str]] | None = None
) -> Publication:
    """Publish a sketch of all events of an ingest publication: nodes of 64 bits in one segment per list of keys."""
    source = {"ingest_batch": of.batch_id, "ingest_base": of.base_batch}
    batch = begin(lake, "sketch", name, batch_id, 1, source)
    segments = keys or [None]
    given = [
        {
            "stream_id": batch.stream_id,
            "from_batch": batch_id,
            "segment": segment,
            "level": 0,
            "tier": "leaf",
            "bucket": 0,
            "finished": False,
            "m": 64,
            "k": 1,
            "plan": 0,
            "node": list(range(nodes)),
            "keys": listed,
            "bits": bytes(8 * nodes),
        }
        for segment, listed in enumerate(segments)
    ]
    batch.append("sketch_nodes", rows(lake, "sketch_nodes", given))
    batch.close_rows("sketch_nodes", "true")
    return batch.publish(rows_in=of.source_to or 0, rows_out=len(segments), source_to=of.source_to)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Database:
    database = Database.open(spark, "status", str(tmp_path_factory.mktemp("status")))
    first = ingest(database, "flights", 1, {"late": 60, "on time": 20}, 80, quarantined=3)
    sketch(database, "flights", 1, first, nodes=3)
    second = ingest(database, "flights", 2, {"late": 10, "cancelled": 10}, 100, quarantined=1)
    sketch(database, "flights", 2, second, nodes=5, keys=[["N1", "N22"], ["N22", "N333", "N4444"]])

    old = ingest(database, "behind", 1, {"a": 10}, 10)
    sketch(database, "behind", 1, old, nodes=1)
    ingest(database, "behind", 2, {"a": 5}, 15)
    ingest(database, "behind", 3, {"a": 7}, 22)
    begin(database, "ingest", "behind", 4, 1, {})

    old = ingest(database, "rebuilt", 1, {"a": 10}, 10)
    sketch(database, "rebuilt", 1, old, nodes=1)
    ingest(database, "rebuilt", 2, {"a": 4}, 4, base=2)
    ingest(database, "rebuilt", 3, {"a": 2}, 6, base=2)

    ingest(database, "forgotten", 1, {"a": 1}, 1)
    return database


@pytest.fixture(scope="module")
def found(lake: Database) -> dict[tuple[str, str], ObjectStatus]:
    return {(each.job, each.object): each for each in status(lake, CONFIGURATION)}


def test_every_object_configured_or_published_is_listed_job_by_job(lake: Database) -> None:
    listed = [(each.job, each.object, each.configured) for each in status(lake, CONFIGURATION)]
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
    ]


def test_rows_are_totals_over_all_batches(found: dict[tuple[str, str], ObjectStatus]) -> None:
    flights = found["ingest", "flights"]
    assert (flights.rows_in, flights.rows_out, flights.rows_quarantined) == (104, 100, 4)
    assert flights.batch_id == 2
    assert flights.watermark == NOON


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


def test_sizes_are_those_of_the_objects_files(lake: Database, found: dict[tuple[str, str], ObjectStatus]) -> None:
    number = PublicationsReader(lake).at("sketch", "flights").stream_id
    folder = Path(lake.location.removeprefix("file:"), "sketch_nodes_log", f"stream_id={number}")
    files = sum(os.path.getsize(file) for file in folder.rglob("*.parquet"))
    # The closed rows of batch 1 were written anew: files that Delta knows no more are not counted.
    assert 0 < found["sketch", "flights"].bytes <= files
    total = lake.spark.sql(f"DESCRIBE DETAIL {lake.log('sketch_nodes')}").collect()[0].sizeInBytes
    assert sum(each.bytes for each in found.values() if each.job == "sketch") == total


def test_a_horizon_is_shown_and_counts_no_batch_twice(lake: Database) -> None:
    horizon = PublicationsReader(lake).at("ingest", "forgotten").published_at
    retention.forget(lake, job="ingest", object="forgotten", horizon=horizon)
    forgotten = next(each for each in status(lake, CONFIGURATION) if each.object == "forgotten")
    assert forgotten.horizon == horizon
    assert forgotten.rows_out == 1

"""The job `trends` writes the same graph whoever reads the events of its panes, in any batches."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from naive.trend_cases import ATTRIBUTES, random_events, random_query
from sql.sketch_lake import E
from sql.trend_lake import TrendLake, TrendStream, shared

from patternlake.delta_tables.batches.batch import Batch
from patternlake.delta_tables.schema.quoting import literal
from patternlake.jobs.batches import few
from patternlake.jobs.configuration.file import TrendConfiguration
from patternlake.jobs.trends import job, panes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from patternlake.delta_tables.committing.database import Database

QUERIES = {
    "job_late": "A+ a[] WHERE a[i].x > a[i-1].x WITHIN 4 SEC SLIDE 2 SEC",
    "job_parts": "A+ a[] WHERE a[i].x > a[i-1].x PARTITION BY key, x WITHIN 4 SEC SLIDE 2 SEC",
    "job_counted": "A+ a[] ; B AS b WHERE a[i].x <> a[i-1].x WITHIN 4 EVENTS SLIDE 2 EVENTS",
}
WAYS = ("spark", "divided")
"""Beside the driver, which reads what is few: only Spark reads the location; several tasks divide a pane."""
DELIVERIES = (
    [E(0, "A", "k", {"x": 1.0}), E(1500, "B", "l", {"x": 2.0}), E(5000, "A", "k", {"x": 3.0})],
    [E(2500, "A", None, {"x": 2.0}), E(5200, "A", "k", {"x": None}), E(9000, "B", "k", {"x": 5.0})],
)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TrendLake:
    return shared(spark, tmp_path_factory)


def read_by_spark(lake: TrendLake) -> Database:
    """The database as it is where only Spark can read the location."""
    return replace(lake.db, direct=None, folder_on_disk=None)


@contextmanager
def large_panes() -> Iterator[None]:
    """All panes are too large for a task."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few, "FEW_EVENTS", -1)
        patch.setattr(panes, "TASK_VERTICES", 1)
        patch.setattr(panes, "_LARGEST", 0)
        yield


def shown(lake: TrendLake, queries: Iterable[str]) -> dict[str, list[str]]:
    """What the views show of each query and its twin, but for the batches that wrote it."""
    found: dict[str, list[str]] = {}
    names = ", ".join(literal(f"{query}{twin}") for query in queries for twin in ("", "_too"))
    for view in ("trend_vertices", "trend_edges"):
        for row in lake.rows(f"SELECT * FROM {lake.database}_internal.{view} WHERE trend IN ({names})"):
            told = {
                name: value for name, value in row.asDict().items() if name not in ("stream", "trend", "from_batch")
            }
            found.setdefault(row["trend"], []).append(f"{view} {told}")
    return {trend: sorted(rows) for trend, rows in found.items()}


def built(db: Database, stream: TrendStream, query: str) -> None:
    """Bring a query of the stream up to date that its configuration does not name."""
    job.trends(db, query, TrendConfiguration(stream=stream.name, query=stream.queries[query.removesuffix("_too")]))


def built_too(lake: TrendLake, stream: TrendStream, queries: Iterable[str], way: str) -> None:
    """Bring the twins of queries up to date, in a way of their own."""
    with large_panes() if way == "divided" else nullcontext():
        for query in queries:
            built(read_by_spark(lake) if way == "spark" else lake.db, stream, f"{query}_too")


@pytest.mark.parametrize("way", WAYS)
def test_all_ways_write_the_same_graph_for_late_events_counted_panes_and_partitions(lake: TrendLake, way: str) -> None:
    queries = {f"{way}_{query}": text for query, text in QUERIES.items()}
    stream = TrendStream(lake, way, queries, {}, {"attributes": {"x": "double"}, "allowed_lateness": "1 minute"})
    for delivery in DELIVERIES:
        stream.deliver(delivery)
        built_too(lake, stream, queries, way)
        found = shown(lake, queries)
        for query in queries:
            assert found[query] == found[f"{query}_too"], query
    kinds = {row.split("'kind': ")[1].split(",")[0] for query in queries for row in found[query]}
    assert kinds == {"'event'", "'attribute'", "'pane'", "'from'", "'to'"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("way", WAYS)
def test_all_ways_write_the_same_graph_of_random_queries(lake: TrendLake, seed: int, way: str) -> None:
    rng = random.Random(seed)
    queries = {f"{way}{seed}_{number}": random_query(rng).text() for number in range(3)}
    section = {"attributes": ATTRIBUTES, "allowed_lateness": "1 minute"}
    stream = TrendStream(lake, f"{way}{seed}", queries, {}, section)
    events = [E(event.time // 1000, event.name, event.key, event.values) for event in random_events(rng, 20)]
    cut = rng.randint(1, 19)
    for delivery in (events[:cut], events[cut:]):
        stream.deliver(delivery)
        built_too(lake, stream, queries, way)
    found = shown(lake, queries)
    for query in queries:
        assert found.get(query) == found.get(f"{query}_too"), queries[query]


@pytest.mark.parametrize("first", ["panes", "spark"])
@pytest.mark.parametrize("writes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_batch_that_one_way_began_is_completed_by_the_other(lake: TrendLake, first: str, writes: int) -> None:
    stream = TrendStream(lake, f"dying_{first}{writes}", {}, {}, {"attributes": {"x": "double"}})
    whole, died = f"whole_{first}{writes}", f"died_{first}{writes}"
    stream.queries = {whole: QUERIES["job_counted"]}
    stream.deliver(DELIVERIES[0])
    stream.queries = {died: QUERIES["job_counted"]}
    ways = (read_by_spark(lake), lake.db) if first == "spark" else (lake.db, read_by_spark(lake))
    with pytest.raises(RuntimeError, match="died"), dying(writes):
        built(ways[0], stream, died)
    built(ways[1], stream, died)
    found = shown(lake, (whole, died))
    assert found[died] == found[whole]


@contextmanager
def dying(writes: int) -> Iterator[None]:
    """A run that ends after so many of its writes."""
    done = []
    append = Batch.append

    def dies(batch: Batch, table: str, rows: DataFrame, part: str = "") -> None:
        if len(done) == writes:
            raise RuntimeError("died")
        append(batch, table, rows, part)
        done.append(table)

    publish = Batch.publish

    def ends(batch: Batch, **given: Any) -> Any:
        if len(done) == writes:
            raise RuntimeError("died")
        return publish(batch, **given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Batch, "append", dies)
        patch.setattr(Batch, "publish", ends)
        yield

"""The job `trends` writes the same graph whether tasks read whole panes or Spark deals vertices out, in any batches."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import pytest
from naive.trend_cases import ATTRIBUTES, random_events, random_query
from sql.sketch_lake import E
from sql.trend_lake import TrendLake, TrendStream, shared

from patternlake.delta_tables.batches.batch import Batch
from patternlake.delta_tables.schema.quoting import literal
from patternlake.jobs.configuration.file import TrendConfiguration
from patternlake.jobs.trends import job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERIES = {
    "job_late": "A+ a[] WHERE a[i].x > a[i-1].x WITHIN 4 SEC SLIDE 2 SEC",
    "job_counted": "A+ a[] ; B AS b WHERE a[i].x <> a[i-1].x WITHIN 4 EVENTS SLIDE 2 EVENTS",
}
DELIVERIES = (
    [E(0, "A", "k", {"x": 1.0}), E(1500, "B", "l", {"x": 2.0}), E(5000, "A", "k", {"x": 3.0})],
    [E(2500, "A", None, {"x": 2.0}), E(5200, "A", "k", {"x": None}), E(9000, "B", "k", {"x": 5.0})],
)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TrendLake:
    return shared(spark, tmp_path_factory)


@contextmanager
def by_spark() -> Iterator[None]:
    """The job as it works where only Spark can read the location."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job, "deal_panes", lambda *_: None)
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


def built(lake: TrendLake, stream: TrendStream, query: str) -> None:
    """Bring a query of the stream up to date that its configuration does not name."""
    job.trends(lake.db, query, TrendConfiguration(stream=stream.name, query=stream.queries[query.removesuffix("_too")]))


def test_both_ways_write_the_same_graph_for_late_events_counted_panes_and_partitions(lake: TrendLake) -> None:
    stream = TrendStream(lake, "both", QUERIES, {}, {"attributes": {"x": "double"}, "allowed_lateness": "1 minute"})
    for delivery in DELIVERIES:
        stream.deliver(delivery)
        with by_spark():
            for query in QUERIES:
                built(lake, stream, f"{query}_too")
        found = shown(lake, QUERIES)
        for query in QUERIES:
            assert found[query] == found[f"{query}_too"], query
    kinds = {row.split("'kind': ")[1].split(",")[0] for query in QUERIES for row in found[query]}
    assert kinds == {"'event'", "'attribute'", "'pane'", "'from'", "'to'"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_both_ways_write_the_same_graph_of_random_queries(lake: TrendLake, seed: int) -> None:
    rng = random.Random(seed)
    queries = {f"both_ways{seed}_{number}": random_query(rng).text() for number in range(3)}
    section = {"attributes": ATTRIBUTES, "allowed_lateness": "1 minute"}
    stream = TrendStream(lake, f"both_ways{seed}", queries, {}, section)
    events = [E(event.time // 1000, event.name, event.key, event.values) for event in random_events(rng, 20)]
    cut = rng.randint(1, 19)
    for delivery in (events[:cut], events[cut:]):
        stream.deliver(delivery)
        with by_spark():
            for query in queries:
                built(lake, stream, f"{query}_too")
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
    with by_spark() if first == "spark" else nullcontext(), pytest.raises(RuntimeError, match="died"), dying(writes):
        built(lake, stream, died)
    with nullcontext() if first == "spark" else by_spark():
        built(lake, stream, died)
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

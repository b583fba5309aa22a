"""Random trend queries over random streams, in random batches: SQL answers from the jobs' tables as the oracle does."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from naive import trends as naive
from naive.trend_cases import ATTRIBUTES, random_events, random_query
from sql.sketch_lake import E
from sql.trend_lake import TrendLake, shared

from patternlake.delta_tables.schema.quoting import literal
from patternlake.sql_ext.lakes.lake import DRIVER_BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = 6
Answer = tuple[str | None, int | None, Any]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TrendLake:
    return shared(spark, tmp_path_factory)


def published(lake: TrendLake, stream: str) -> list[naive.Event]:
    """The stream's events as `ingest` numbered them."""
    values = ", ".join(f"CAST(attributes['{name}'] AS {kind}) AS {name}" for name, kind in ATTRIBUTES.items())
    rows = lake.rows(
        f"SELECT position, unix_micros(time) AS at, name, key, {values} "
        f"FROM {lake.database}.events WHERE stream = {literal(stream)}"
    )
    return [naive.Event(row.position, row["at"], row["name"], row.key, {a: row[a] for a in ATTRIBUTES}) for row in rows]


def cells(lake: TrendLake, call: str, what: str) -> list[Answer]:
    rows = lake.rows(f"SELECT key, unix_micros(window_start) AS start, {what} AS answer FROM {call}")
    return sorted(((row.key, row.start, row.answer) for row in rows), key=str)


def wanted(query: naive.Query, events: Sequence[naive.Event]) -> list[tuple[str | None, int | None, Any]]:
    """The oracle's trends: partition, start of the window, rows; windows of events may start at the same time."""
    times = {event.position: event.time for event in events}
    slide = query.slide or query.within

    def start(window: int | None) -> int | None:
        if window is None or slide is None or query.within is None:
            return None
        if not query.counted:
            return window * slide
        return times[max(1, window * slide + 1)]

    return [(key, start(window), rows) for (key, window), rows in naive.trends(query, events).items()]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_queries_are_answered_as_by_the_oracle(lake: TrendLake, seed: int) -> None:
    rng = random.Random(seed)
    given = random_events(rng, 24)
    asked = {f"random{seed}_{number}": random_query(rng, names="AB") for number in range(QUERIES)}
    cuts = sorted(rng.sample(range(1, 24), 2))
    stream = f"random{seed}"
    sent = [E(event.time // 1000, event.name, event.key, event.values) for event in given]
    lake.stream(
        stream,
        {name: query.text() for name, query in asked.items()},
        *(sent[low:high] for low, high in zip([0, *cuts], [*cuts, 24], strict=True)),
        attributes=ATTRIBUTES,
        allowed_lateness="1 minute",
    )
    events = published(lake, stream)
    assert len(events) == 24
    for name, query in asked.items():
        answer = wanted(query, events)
        lake.spark.conf.set(DRIVER_BYTES, rng.choice(["0", "1000000"]))
        trends = [(key, start, row) for key, start, found in answer for row in found]
        for asked_as in (literal(name), f"{literal('PATTERN ' + query.text())}, stream => {literal(stream)}"):
            rows = cells(lake, f"cet_trends({asked_as})", "positions")
            listed = [(key, start, tuple(positions)) for key, start, positions in rows]
            assert sorted(listed, key=str) == sorted(trends, key=str), query.text()
            counted = [(key, start, str(len(found))) for key, start, found in answer]
            some = [cell for cell in cells(lake, f"cet_count({asked_as})", "trends") if cell[2] != "0"]
            assert some == sorted(counted, key=str), query.text()
    lake.spark.conf.unset(DRIVER_BYTES)


@pytest.mark.slow
def test_times_narrow_an_answer_to_the_windows_inside(lake: TrendLake) -> None:
    rng = random.Random(99)
    given = random_events(rng, 30, names="A")
    query = naive.Query((naive.Term("A", "e", True),), within=6000, slide=2000, partitioned=True)
    rows = [E(event.time // 1000, event.name, event.key, event.values) for event in given]
    lake.stream("narrow", {"narrow": query.text()}, rows, attributes=ATTRIBUTES)
    events = published(lake, "narrow")
    answer = wanted(query, events)
    starts = sorted({start for _, start, _ in answer if start is not None})
    low, high = starts[2], starts[-3] + 6000
    inside = [
        (key, start, row)
        for key, start, found in answer
        if start is not None and low <= start and start + 6000 <= high
        for row in found
    ]
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    bounds = [f"TIMESTAMP '{epoch + timedelta(microseconds=moment)}'" for moment in (low, high)]
    call = f"cet_trends('narrow', from_time => {bounds[0]}, to_time => {bounds[1]})"
    listed = [(key, start, tuple(positions)) for key, start, positions in cells(lake, call, "positions")]
    assert sorted(listed, key=str) == sorted(inside, key=str)

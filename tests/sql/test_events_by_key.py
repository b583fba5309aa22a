"""Questions by the stream's key, whose tasks read their own keys from the files, answer what Spark's windows do."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sql.ingesting import Lake

import patternlake
from patternlake.delta_tables.batches import upkeep
from patternlake.delta_tables.databases.opening import open_database
from patternlake.delta_tables.schema.layout import lie_by_key
from patternlake.jobs.ingest import prepared_rows
from patternlake.sql_ext.calls.answer_cache import forget
from patternlake.sql_ext.lakes.enabled import lake_of
from patternlake.sql_ext.lakes.lake import DRIVER_BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANY, FEW, KEYS = 40_000, 300, 400
RARE = 1_000
"""One of so many events is a Z."""


@pytest.fixture(scope="module", params=["one block", "merged blocks"])
def lake(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lake]:
    """Many events in one batch, whose file lies by key, and a few more in another, whose file does not.

    Where blocks are smaller, two of them are merged into one file, and the third is not full yet.
    """
    with pytest.MonkeyPatch.context() as patched:
        merged = request.param == "merged blocks"
        if merged:
            patched.setattr(prepared_rows, "BLOCK_BITS", 14)
            patched.setattr(upkeep, "SPAN_BLOCKS", 2)
            patched.setattr(upkeep, "_SPAN_ROWS", 2 << 14)
        yield _make_lake(spark, tmp_path_factory.mktemp("by_key"), merged=merged)
    spark.sql("DROP DATABASE by_key CASCADE")


def _make_lake(spark: SparkSession, folder: Path, *, merged: bool) -> Lake:
    lake = Lake(open_database(spark, "by_key", str(folder / "lake")), folder)
    rng = random.Random(7)
    first = 0
    for file, count in (("1.csv", MANY), ("2.csv", FEW)):
        rows = [
            f"2024-01-{1 + second // 86400:02} {second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02},"
            f"{'Z' if second % RARE == 0 else rng.choice('ABCDE')},"
            f"{'' if rng.random() < 0.01 else f'k{rng.randrange(KEYS)}'},{rng.randrange(100)}"
            for second in range(first, first + count)
        ]
        lake.write(file, *rows)
        first += count
        assert lake.ingest().rows_out == count
    assert lake.db.direct is not None
    if merged:
        upkeep.tidy(lake.db, lake.db.direct.files("events")["partition.stream_id"].unique().to_pylist())
    files = lake.db.direct.files("events").sort_by("min.position")
    counts = [32_768, MANY - 32_768, FEW] if merged else [MANY, FEW]
    assert files["num_records"].to_pylist() == counts
    assert lie_by_key(files["path"]).to_pylist() == [count >= 10_000 for count in counts]
    patternlake.enable(spark, lake.db.name, lake.db.location)
    return lake


@pytest.fixture(params=["driver", "tasks"])
def way(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    if request.param == "tasks":
        spark.conf.set(DRIVER_BYTES, "0")
    yield request.param
    spark.conf.unset(DRIVER_BYTES)


def test_pairs_of_neighbours_of_a_key_are_what_lead_finds(lake: Lake, way: str) -> None:
    found = lake.spark.sql(
        f"SELECT key, first_position, last_position FROM match_pattern('{lake.name}', 'A ; B PARTITION BY key', "
        "policy => 'strict')"
    ).collect()
    expected = lake.spark.sql(
        f"""SELECT key, position, next FROM (
          SELECT key, position, name, lead(name) OVER w AS following, lead(position) OVER w AS next
          FROM by_key.events WHERE stream = '{lake.name}' WINDOW w AS (PARTITION BY key ORDER BY time, position)
        ) WHERE name = 'A' AND following = 'B'"""
    ).collect()
    assert len(expected) > 1000
    assert sorted(map(str, map(tuple, found))) == sorted(map(str, map(tuple, expected)))


def test_the_driver_reads_more_for_events_that_are_few_of_all(lake: Lake) -> None:
    assert lake.db.direct is not None
    forget(lake_of(lake.spark).cache)
    whole = sum(lake.db.direct.files("events")["size_bytes"].to_pylist())
    lake.spark.conf.set(DRIVER_BYTES, str(whole // 3))
    found = {}
    for pattern in ("A ; B", "Z ; Z"):
        asked = lake.spark.sql(f"SELECT * FROM match_pattern('{lake.name}', '{pattern}', policy => 'skip_till_next')")
        found[pattern] = "MapInArrow" in str(asked._jdf.queryExecution().analyzed())
    lake.spark.conf.unset(DRIVER_BYTES)
    assert found == {"A ; B": True, "Z ; Z": False}


def test_each_start_takes_the_first_that_follow_in_its_partition(lake: Lake, way: str) -> None:
    found = lake.spark.sql(
        f"SELECT key, first_position, last_position FROM match_pattern('{lake.name}', 'A ; C ; E PARTITION BY key', "
        "policy => 'skip_till_next')"
    ).collect()
    by_key: dict[str | None, list[tuple[str, int]]] = {}
    for key, name, position in lake.events("key", "name", "position"):
        by_key.setdefault(key, []).append((name, position))
    expected = []
    for key, events in by_key.items():
        ends: list[tuple[int, int]] = []
        following = {"C": None, "E": None}
        for name, position in reversed(events):
            if name == "E":
                following["E"] = position
            elif name == "C":
                following["C"] = following["E"]
            elif name == "A" and following["C"] is not None:
                ends.append((position, following["C"]))
        expected += [(key, *each) for each in ends]
    assert len(expected) > 5000
    assert sorted(map(str, map(tuple, found))) == sorted(map(str, expected))


@pytest.mark.parametrize("key", ["k0", "k17", f"k{KEYS - 1}", "nobody"])
def test_one_key_is_that_part_of_the_answer_of_all(lake: Lake, way: str, key: str) -> None:
    question = f"match_pattern('{lake.name}', 'A ; B+ ; C PARTITION BY key', policy => 'skip_till_next'"
    mine = lake.spark.sql(f"SELECT * FROM {question}, key => '{key}')").drop("match_no").collect()
    of_all = lake.spark.sql(f"SELECT * FROM {question}) WHERE key = '{key}'").drop("match_no").collect()
    assert bool(mine) == (key != "nobody")
    assert sorted(map(str, mine)) == sorted(map(str, of_all))


def test_without_partitions_a_key_is_asked_for_alike(lake: Lake, way: str) -> None:
    question = f"match_pattern('{lake.name}', 'A ; B', policy => 'strict', key => 'k3')"
    by_key = question.replace("'A ; B'", "'A ; B PARTITION BY key'")
    ends = "first_position, last_position"
    found = lake.spark.sql(f"SELECT {ends} FROM {question}").collect()
    assert found
    assert sorted(found) == sorted(lake.spark.sql(f"SELECT {ends} FROM {by_key}").collect())


@pytest.mark.parametrize("bounds", [(1, 5), (16_000, 17_000), (32_760, 32_780), (39_990, MANY + FEW)])
def test_events_between_positions_are_those_of_their_times(lake: Lake, way: str, bounds: tuple[int, int]) -> None:
    first, last = bounds
    times = [time for (time,) in lake.events("time")]
    asked = f"from_time => TIMESTAMP '{times[first - 1]}', to_time => TIMESTAMP '{times[last - 1]}'"
    question = f"match_pattern('{lake.name}', 'A ; B', policy => 'strict', {asked})"
    found = lake.spark.sql(f"SELECT first_position, last_position FROM {question}").collect()
    names = [name for (name,) in lake.events("name")]
    expected = [(at + 1, at + 2) for at in range(first - 1, last - 1) if names[at : at + 2] == ["A", "B"]]
    assert sorted(map(tuple, found)) == expected

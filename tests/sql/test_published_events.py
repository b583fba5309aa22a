"""What tests publish without a source is what `ingest` makes of the same events, in every table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sql.group_lake import SECTION
from sql.published_events import E
from sql.sketch_lake import DATABASE, SketchLake, Stream, letters, shared

from patternlake.delta_tables.quoting import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = {"x": "double", "n": "bigint", "i": "int", "s": "string"}
VALUES: list[dict[str, Any]] = [
    {"x": 1.5, "n": 12345678901, "i": -3, "s": "ü, 'ß'"},
    {"x": 2, "n": 0, "i": 7, "s": ""},
    {"x": 0.001, "n": None, "i": None, "s": None},
    {"x": "NaN", "n": -1},
    {"x": -0.0006606157907871335},
    {"x": 12345678.5},
    {"x": 3e22},
]
STREAMS: dict[str, tuple[dict[str, Any], list[list[E]]]] = {
    "typed": (
        {"key": "who", "attributes": KINDS, "allowed_lateness": "2 seconds"},
        [
            [
                E(at, name, key, values)
                for (at, name, key), values in zip(
                    [
                        (3000, "b", "k"),
                        (3000, "a", "l"),
                        (1000, "É", None),
                        (1000, "É", "k"),
                        (2000, "a b", "É"),
                        (2000, "c", "k"),
                        (2500, "c", "k"),
                    ],
                    VALUES,
                    strict=True,
                )
            ],
            [E(1500, "b", "k"), E(9000, "a", None, {"x": 9})],
        ],
    ),
    "bare": ({}, [letters("ABBA"), letters("C", begin=9)]),
    "never settled": ({"allowed_lateness": "none"}, [letters("AB", begin=5), letters("AB")]),
    "probable": (
        {**SECTION, "key": "who"},
        [
            [E(1000, "a", "k", {"t": 1, "p": 0.25}), E(1000, "b", "k", {"t": 1, "p": 0.75})],
            [E(2000, "a", "k", {"t": 2, "p": 1}), E(2000, "c", "l", {"t": 1, "p": 0.1})],
        ],
    ),
}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


def seen(lake: SketchLake, name: str) -> dict[str, list[dict[str, Any]]]:
    """What the tables say of a stream, but for its own name, its source, and the moment and run that wrote it."""
    own = {
        "stream",
        "stream_id",
        "object",
        "object_id",
        "name",
        "run_id",
        "source",
        "begun_at",
        "published_at",
        "seconds",
    }
    found = {}
    for table in ("events", "event_statistics", "streams", "publications_log", "intents_log"):
        rows = lake.rows(f"SELECT * FROM {DATABASE}.{table} WHERE stream = {literal(name)}")
        kept = own - {"name"} if table in ("events", "event_statistics") else own
        found[table] = sorted(({k: v for k, v in row.asDict().items() if k not in kept} for row in rows), key=str)
    return found


@pytest.mark.parametrize("kind", STREAMS)
def test_tables_are_those_that_ingest_writes(lake: SketchLake, kind: str) -> None:
    section, batches = STREAMS[kind]
    for name, ingested in ((f"{kind} ingested", True), (f"{kind} published", False)):
        stream = Stream(lake, name, {}, section, ingested=ingested)
        for events in batches:
            stream.write(events)
            stream.ingest()
    published = seen(lake, f"{kind} published")
    assert published == seen(lake, f"{kind} ingested")
    assert [row["batch_id"] for row in published["publications_log"]] == [1, 2]


@pytest.mark.parametrize(
    ("section", "batches", "said"),
    [
        ({}, [letters("A", begin=9), letters("A")], "come late"),
        ({}, [[E(0, "")]], "without a name"),
        (SECTION, [[E(0, name, None, {"t": 1, "p": 0.75}) for name in "ab"]], "sums above 1"),
    ],
)
def test_what_ingest_turns_down_is_not_published(
    lake: SketchLake, section: dict[str, Any], batches: list[list[E]], said: str
) -> None:
    stream = Stream(lake, f"refused: {said}", {}, section)
    *before, last = batches
    for events in before:
        stream.write(events)
        stream.ingest()
    stream.write(last)
    with pytest.raises(AssertionError, match=said):
        stream.ingest()

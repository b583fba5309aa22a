"""What tests publish without a source is what `ingest` makes of the same events, in every table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sql.group_lake import SECTION
from sql.published_events import E
from sql.sketch_lake import SketchLake, Stream, letters, shared

from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.udfs.attributes import is_attribute

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
                        (3000, "a", "l"),
                        (3000, "b", "k"),
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


OF_A_STREAM = {"stream", "stream_id", "object", "object_id"}
OF_A_RUN = {"run_id", "source", "begun_at", "published_at", "seconds", "versions"}


def written(lake: SketchLake, name: str) -> dict[str, list[str]]:
    """What the tables hold of a stream, but for its own name, its source, and the moment and run that wrote it."""
    reader = lake.db.state
    (number,) = set(
        reader.rows("publications", ("stream_id",), [Condition("object", "=", name)])["stream_id"].to_pylist()
    )
    found = {}
    for table in ("events", "event_statistics", "streams", "publications", "intents"):
        left_out = OF_A_STREAM | OF_A_RUN | ({"name"} if table == "streams" else set())
        columns = [column for column in TABLES[table].column_names if column not in left_out]
        columns += [column for column in lake.db.columns(table) if is_attribute(column)]
        rows = reader.rows(table, columns, [Condition("stream_id", "=", number)]).to_pylist()
        # A map is a list of pairs here, in any order.
        # Texts, as no NaN equals another.
        found[table] = sorted(str({**row, "types": dict(row.get("types") or {})}) for row in rows)
    return found


@pytest.mark.parametrize("kind", STREAMS)
def test_tables_are_those_that_ingest_writes(lake: SketchLake, kind: str) -> None:
    section, batches = STREAMS[kind]
    for name, ingested in ((f"{kind} ingested", True), (f"{kind} published", False)):
        stream = Stream(lake, name, {}, section, ingested=ingested)
        for events in batches:
            stream.write(events)
            stream.ingest()
    published = written(lake, f"{kind} published")
    assert published == written(lake, f"{kind} ingested")
    assert len(published["publications"]) == 2
    assert all(published.values())


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

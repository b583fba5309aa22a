"""What the tests of the sketch engine share: one database of small streams, and ways to ask.

A stream is made of batches of events; each is published and sketched before the next one.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from naive import sketch_matching as naive
from naive.sketch_tree import Event, Node, tree
from pyspark.errors import PySparkException
from sql.empty_database import lay
from sql.published_events import NAME, TIME, E, moment, plain, publish
from sql.small_tables import asked

import patternlake
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.databases.opening import open_database
from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.schema.quoting import literal
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.runs.running import run
from patternlake.jobs.terminal.messages import message
from patternlake.sql_ext.lakes.lake import DRIVER_BYTES

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

DATABASE = "sketch_lake"
_ASKED_AT_ONCE = 3
_LAKES: dict[int, SketchLake] = {}

DAY = 24 * 3600 * 1000
AGES = [
    {"after": "10 days", "keep_level": 1},
    {"after": "20 days", "keep_level": 2},
    {"after": "30 days", "drop": True},
]


def aging(*, begin: int = 0) -> list[E]:
    """Five segments of 8 events, if leaves hold two: an event a day.

    The last one is 39 days after the first. Segment 0 ends 32 days before the watermark, 1 ends 24 days, 2 ends 16
    days, 3 ends 8 days before it.
    """
    names = "QRABABAB" + "CDDDDDDE" + "FGGGHHIH" + "CDEJJJJJ" + "FGKKKKKK"
    return [E((begin + day) * DAY, name) for day, name in enumerate(names)]


def letters(text: str, *, begin: int = 0) -> list[E]:
    """An event per letter, a second apart."""
    return [E((begin + number) * 1000, name) for number, name in enumerate(text)]


class Stream:
    """One stream of a lake and its sketch.

    Its events are published without a source, unless its expressions do more than name columns or `ingested` is set.
    """

    def __init__(
        self, lake: SketchLake, name: str, sketch: dict[str, Any], stream: dict[str, Any], *, ingested: bool = False
    ) -> None:
        self.lake = lake
        self.name = name
        self.folder = lake.folder / f"stream{len(list(lake.folder.iterdir()))}"
        self.folder.mkdir()
        self.sketch = {"expected_events": 1000, "events_per_leaf": 1, "levels": 3, **sketch}
        self.section = {
            "source": {"format": "csv", "path": str(self.folder), "options": {"header": True, "escape": '"'}},
            "time": TIME,
            "name": NAME,
            **stream,
        }
        self.ingested = ingested
        self._written: list[E] = []
        self.moments: list[datetime] = []
        """When the sketch of each batch was published."""
        self.ends: list[int] = []
        """How many events the stream had then."""

    def configuration(self, **changes: Any) -> Configuration:
        """The stream's own configuration, with changes to the section of its sketch."""
        sketch = {key: value for key, value in {**self.sketch, **changes}.items() if value is not None}
        tree = {
            "database": DATABASE,
            "location": self.lake.location,
            "streams": {self.name: self.section},
            "sketches": {self.name: sketch},
        }
        return Configuration.from_text(yaml.safe_dump(tree, allow_unicode=True))

    def write(self, events: Sequence[E]) -> None:
        """Write a file of the source."""
        self._written += events
        attributes = list(self.section.get("attributes", {}))
        with open(
            self.folder / f"{len(list(self.folder.iterdir())):04}.csv", "w", newline="", encoding="utf-8"
        ) as file:
            writer = csv.writer(file)
            writer.writerow(["at", "what", "who", *attributes])
            for event in events:
                at = int(moment(event.time).timestamp() * 1000)
                writer.writerow([at, event.name, event.key, *(event.attributes.get(name) for name in attributes)])

    def ingest(self) -> None:
        """Publish what was written since the last time."""
        configuration = self.configuration()
        stream = configuration.streams[self.name]
        if self.ingested or not plain(stream):
            self.run("ingest")
        else:
            publish(self.lake.db, self.name, stream, self._written)
        self._written = []

    def run(self, job: str, *, rebuild: bool = False, **changes: Any) -> Summary:
        return run(self.lake.spark, self.configuration(**changes), job, rebuild=rebuild)[0]

    def deliver(self, *batches: Sequence[E]) -> Stream:
        """Ingest and sketch some batches, one after another."""
        for events in batches:
            self.write(events)
            self.ingest()
            self.run("sketch")
            self.note()
        return self

    def note(self) -> None:
        """Remember the last publication of the sketch."""
        latest = self.publications()[-1]
        self.moments.append(latest["published_at"].astimezone(timezone.utc))
        self.ends.append(latest["source_to"])

    def publications(self, job: str = "sketch") -> list[dict[str, Any]]:
        """The publications of a job, oldest first; moments are without their zone, as Spark gives them."""
        mine = [Condition("job", "=", job), Condition("object", "=", self.name)]
        rows = self.lake.db.state.rows("publications", TABLES["publications"].column_names, mine)
        return [
            {name: _without_zone(value) for name, value in row.items()}
            for row in rows.sort_by("published_at").to_pylist()
        ]

    def events(self) -> list[Row]:
        """All events in the order of their positions, `at` in microseconds."""
        return self.lake.rows(
            f"SELECT *, unix_micros(time) AS at FROM {DATABASE}.events WHERE stream = {literal(self.name)} "
            "ORDER BY position"
        )

    def nodes(self) -> list[Row]:
        """The published nodes."""
        return self.lake.rows(
            f"SELECT segment, level, node, pos_lo, pos_hi, unix_micros(min_time) AS time_lo, unix_micros(max_time) AS "
            f"time_hi, m, k, bits FROM {DATABASE}_internal.sketch_nodes WHERE stream = {literal(self.name)} "
            "ORDER BY segment, level, node"
        )

    def seq(self, pattern: str, **arguments: Any) -> str:
        """A call of match_seq: of the sketch alone, unless `verify` is given."""
        return call("match_seq", self.name, pattern, **{"verify": False, **arguments})

    def exists(self, pattern: str, **arguments: Any) -> str:
        """A call of match_exists: of the sketch alone, unless `verify` is given."""
        return call("match_exists", self.name, pattern, **{"verify": False, **arguments})


def _without_zone(value: Any) -> Any:
    return value.astimezone().replace(tzinfo=None) if isinstance(value, datetime) else value


class SketchLake:
    """One database with many streams."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.location = str(folder / "lake")
        self.streams: dict[str, Stream] = {}

    @cached_property
    def db(self) -> Database:
        """Opened once: what a stream publishes without a source needs no look at the catalog."""
        return open_database(self.spark, DATABASE, self.location)

    def stream(
        self,
        name: str,
        *batches: Sequence[E],
        sketch: dict[str, Any] | None = None,
        ingested: bool = False,
        **stream: Any,
    ) -> Stream:
        """The stream of a name; made of the batches, if it does not exist yet."""
        if name not in self.streams:
            self.streams[name] = Stream(self, name, sketch or {}, stream, ingested=ingested)
            self.streams[name].deliver(*batches)
        return self.streams[name]

    def rows(self, sql: str) -> list[Row]:
        return asked(self.db, sql).collect()

    def ask(self, calls: Sequence[str]) -> list[list[Row]]:
        """The rows of each call, a few calls at a time."""
        with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
            return list(pool.map(lambda text: self.rows(as_query(text)), calls))

    def spans(self, calls: Sequence[str]) -> list[list[tuple[int, int]]]:
        """First and last position of each row of each call."""
        return [[(row["first_position"], row["last_position"]) for row in rows] for rows in self.ask(calls)]

    def steps(self, calls: Sequence[str]) -> list[list[tuple[int, ...]]]:
        """The first position of each step of each row of each call."""
        return [[first_positions(row) for row in rows] for rows in self.ask(calls)]

    def said(self, calls: Sequence[str]) -> list[bool | None]:
        """What each call of match_exists says."""
        return [rows[0][0] for rows in self.ask(calls)]

    def errors(self, calls: Sequence[str]) -> list[str]:
        """The message that each call fails with; none may show Python's or Java's stack."""
        with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
            return list(pool.map(self._error, calls))

    def _error(self, text: str) -> str:
        with pytest.raises(PySparkException) as caught:
            self.rows(as_query(text))
        assert "Traceback" not in str(caught.value), str(caught.value)
        return message(caught.value)


@contextmanager
def by_tasks(spark: SparkSession) -> Iterator[None]:
    """Let Spark's tasks answer what the driver's process would."""
    spark.conf.set(DRIVER_BYTES, "0")
    try:
        yield
    finally:
        spark.conf.unset(DRIVER_BYTES)


def shared(spark: SparkSession, factory: pytest.TempPathFactory) -> SketchLake:
    """The lake of a session; the functions point at it."""
    if id(spark) not in _LAKES:
        _LAKES[id(spark)] = made = SketchLake(spark, factory.mktemp("sketches"))
        lay(spark, made.location)
    lake = _LAKES[id(spark)]
    patternlake.enable(spark, database=DATABASE, location=lake.location)
    return lake


WORKED = "ABCBAACBADCBABCB" + "ABCB" + "ABAC" + "ABDBC" + "AAA"
"""The streams of SPEC's worked answers one behind another, the first one at positions 1 to 16."""


def worked(lake: SketchLake) -> Stream:
    """C = 1, as in the worked answers; no key."""
    return lake.stream("worked", letters(WORKED))


def as_query(text: str) -> str:
    if text.startswith("SELECT"):
        return text
    return f"SELECT {text}" if text.startswith("match_exists") else f"SELECT * FROM {text}"


def call(function: str, *positional: Any, **named: Any) -> str:
    """A call of a SQL function as text; arguments are Python values."""
    values = [value_text(value) for value in positional]
    values += [f"{name} => {value_text(value)}" for name, value in named.items()]
    return f"{function}({', '.join(values)})"


def value_text(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S.%f}+00:00'"
    if isinstance(value, dict):
        return f"map({', '.join(value_text(part) for item in value.items() for part in item)})"
    return literal(value) if isinstance(value, str) else str(value)


def sequence(*names: str) -> naive.Pattern:
    """SEQ of some names, for the oracle."""
    return naive.Pattern(tuple((((name,),),) for name in names), ((),) * (len(names) - 1))


def first_positions(row: Row) -> tuple[int, ...]:
    return tuple(step["from_position"] for step in row["steps"])


def naive_event(row: Row, ordinal: int) -> naive.Row:
    """A row of `events` for the oracle; `x` is its value for conditions."""
    x = row["attributes"].get("x") if row["attributes"] else None
    names = frozenset(name for name in row["tokens"] or [row["name"]] if name is not None)
    at = row["at"]
    return naive.Row(row["position"], row["position"], at, at, names, ordinal, None if x is None else float(x))


def naive_events(rows: Sequence[Row], *, key: str | None = None, of_key: bool = False) -> list[naive.Row]:
    """The stream's events for the oracle, or those of one key, numbered among themselves."""
    chosen = [row for row in rows if not of_key or row["key"] == key]
    return [naive_event(row, ordinal) for ordinal, row in enumerate(chosen)]


def naive_nodes(
    rows: Sequence[Row], intervals: Sequence[tuple[int, int]], *, key: str | None = None, of_key: bool = False
) -> list[naive.Row]:
    """Nodes for the oracle, given the positions of each: what filters without false hits would say."""
    nodes = []
    for low, high in intervals:
        inside = rows[low - 1 : high]
        times = [row["at"] for row in inside]
        held = [naive_event(row, 0).names for row in inside if not of_key or row["key"] == key]
        nodes.append(naive.Row(low, high, min(times), max(times), frozenset().union(*held)))
    return nodes


def leaf_intervals(count: int, size: int) -> list[tuple[int, int]]:
    return [(low, min(low + size - 1, count)) for low in range(1, count + 1, size)]


def naive_tree(stream: Stream, publication: Mapping[str, Any]) -> dict[tuple[int, int, int], Node]:
    """All nodes of a stream's sketch by (segment, level, node), from its events and the sizes that were published."""
    state, sketch = json.loads(publication["state"]), stream.sketch
    rows = stream.events()[: publication["source_to"]]
    fanout, leaf = sketch.get("fanout", 2), sketch["events_per_leaf"]
    height = len(state["plans"][0]["sizing"]["levels"])
    size = leaf * fanout ** (height - 1)
    result = {}
    for segment, (low, high) in enumerate(leaf_intervals(len(rows), size)):
        plan = [entry for entry in state["plans"] if entry["from_segment"] <= segment][-1]["sizing"]
        made = tree(
            plan["structure"],
            [(level["bits"], level["hashes"]) for level in plan["levels"]],
            leaf,
            fanout,
            low,
            [Event(r["position"], r["at"], tuple(r["tokens"] or [r["name"]]), r["key"]) for r in rows[low - 1 : high]],
            with_keys=sketch.get("keyed", False),
            seed=sketch.get("seed", 0),
        )
        result |= {(segment, level, node): found for level, nodes in enumerate(made) for node, found in nodes.items()}
    return result


def nodes_by_place(stream: Stream) -> dict[tuple[int, int, int], tuple[int, int, int, int, int]]:
    """The published nodes by (segment, level, node): intervals of positions and times, and the filter as a number."""
    return {
        (row["segment"], row["level"], row["node"]): (
            row["pos_lo"],
            row["pos_hi"],
            row["time_lo"],
            row["time_hi"],
            int.from_bytes(row["bits"], "little"),
        )
        for row in stream.nodes()
    }


def as_published(nodes: Mapping[tuple[int, int, int], Node]) -> dict[tuple[int, int, int], tuple[int, ...]]:
    """Naive nodes as `nodes_by_place` gives published ones."""
    return {place: (node.pos_lo, node.pos_hi, node.time_lo, node.time_hi, node.filter) for place, node in nodes.items()}

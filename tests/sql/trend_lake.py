"""What the tests of trends share: one database, a stream for each question."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from sql.empty_database import lay
from sql.published_events import KEY, NAME, TIME, E, moment, plain, publish
from sql.sketch_lake import call
from sql.small_tables import asked

import patternlake
from patternlake.delta_tables.databases.opening import open_database
from patternlake.delta_tables.schema.quoting import literal
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.runs.running import run

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import Row, SparkSession

_NUMBERS = itertools.count()
_LAKES: dict[int, TrendLake] = {}


class TrendStream:
    """One stream of a lake with its queries."""

    def __init__(
        self,
        lake: TrendLake,
        name: str,
        queries: Mapping[str, str],
        params: Mapping[str, Any],
        stream: Mapping[str, Any],
        *,
        ingested: bool = False,
    ) -> None:
        self.ingested = ingested
        self.lake, self.name, self.queries, self.params = lake, name, dict(queries), dict(params)
        self.folder = lake.folder / f"stream{len(list(lake.folder.iterdir()))}"
        self.folder.mkdir()
        self.section = {
            "source": {"format": "csv", "path": str(self.folder), "options": {"header": True, "escape": '"'}},
            "time": TIME,
            "name": NAME,
            "key": KEY,
            **stream,
        }

    def configuration(self) -> Configuration:
        tree = {
            "database": self.lake.database,
            "location": self.lake.location,
            "streams": {self.name: self.section},
            "trends": {
                name: {"stream": self.name, "query": query, "params": self.params}
                for name, query in self.queries.items()
            },
        }
        return Configuration.from_text(yaml.safe_dump(tree, allow_unicode=True))

    def deliver(self, *batches: Sequence[E]) -> TrendStream:
        """Publish each batch and bring the queries up to date."""
        for events in batches:
            configuration = self.configuration()
            stream = configuration.streams[self.name]
            if self.ingested or not plain(stream):
                self._write(events)
                self.run("ingest")
            else:
                publish(self.lake.db, self.name, stream, events)
            self.run("trends")
        return self

    def _write(self, events: Sequence[E]) -> None:
        attributes = list(self.section.get("attributes", {}))
        path = self.folder / f"{len(list(self.folder.iterdir())):04}.csv"
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["at", "what", "who", *attributes])
            for event in events:
                at = int(moment(event.time).timestamp() * 1000)
                writer.writerow([at, event.name, event.key, *(event.attributes.get(name) for name in attributes)])

    def run(self, job: str, *, rebuild: bool = False) -> list[Summary]:
        return run(self.lake.spark, self.configuration(), job, rebuild=rebuild)


class TrendLake:
    """One database with many streams."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder / "data"
        self.folder.mkdir()
        self.location = lay(spark, folder / "lake")
        self.database = f"trend_lake_{next(_NUMBERS)}"
        self.asked: dict[str, TrendStream] = {}
        self.enabled()
        self.db = open_database(spark, self.database, self.location)

    def stream(
        self,
        name: str,
        queries: Mapping[str, str],
        *batches: Sequence[E],
        params: Mapping[str, Any] | None = None,
        ingested: bool = False,
        **stream: Any,
    ) -> TrendStream:
        made = TrendStream(self, name, queries, params or {}, stream, ingested=ingested).deliver(*batches)
        self.asked |= dict.fromkeys(queries, made)
        return made

    def rows(self, sql: str) -> list[Row]:
        return asked(self.db, sql).collect()

    def as_text(self, query: str) -> dict[str, Any]:
        """The arguments that ask a configured query as a text."""
        stream = self.asked[query]
        params = {name: str(value) for name, value in stream.params.items()}
        return {"query": stream.queries[query], "stream": stream.name, "params": params or None}

    def trends(self, query: str, **arguments: Any) -> list[tuple[int, ...]]:
        """The positions of all trends, in order; the query asked as a text gives the same rows."""
        (named, of_text) = (
            self.rows(f"SELECT * FROM {call('cet_trends', **asked, **arguments)}")
            for asked in ({"query": query}, self.as_text(query))
        )
        assert sorted(map(str, of_text)) == sorted(map(str, named))
        return sorted(tuple(row["positions"]) for row in named)

    def counts(self, query: str, **arguments: Any) -> list[tuple[Any, ...]]:
        """Key, seconds of start and end of the window, trends, longest, total length, final: of each row, in order.

        The query asked as a text gives the same rows.
        """
        start = int(moment(0).timestamp())
        named, of_text = (
            self.rows(
                f"SELECT key, unix_millis(window_start) / 1000 - {start} AS a, unix_millis(window_end) / 1000 - {start}"
                " AS b, trends, longest, total_length, final "
                f"FROM {call('cet_count', **asked, **arguments)} ORDER BY key, a"
            )
            for asked in ({"query": query}, self.as_text(query))
        )
        assert of_text == named
        return [tuple(row) for row in named]

    def enabled(self) -> TrendLake:
        """The same, with the functions pointing at it."""
        patternlake.enable(self.spark, database=self.database, location=self.location)
        return self

    def view(self, name: str, trend: str) -> list[Row]:
        return self.rows(f"SELECT * FROM {self.database}_internal.{name} WHERE trend = {literal(trend)}")


def shared(spark: SparkSession, factory: pytest.TempPathFactory) -> TrendLake:
    """The lake of a session; the functions point at it. Names of streams and queries differ from file to file."""
    if id(spark) not in _LAKES:
        _LAKES[id(spark)] = TrendLake(spark, factory.mktemp("trends"))
    return _LAKES[id(spark)].enabled()

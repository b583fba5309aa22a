"""What the tests of the job `groups` share: a stream with configured queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import yaml
from sql.sketch_lake import DATABASE, E, SketchLake, Stream

from patternlake.delta_tables.schema.quoting import literal
from patternlake.jobs.configuration.file import Configuration

SECTION = {"step": "CAST(t AS INT)", "probability": "CAST(p AS DOUBLE)", "attributes": {"t": "int", "p": "double"}}

Step = dict[str, float]
"""Probability by name."""

FIGURE_1: list[Step] = [
    {"a": 1.0},
    {"a": 0.3, "b": 0.7},
    {"a": 0.1, "b": 0.8, "c": 0.1},
    {"a": 0.1, "b": 0.7, "c": 0.2},
    {"b": 0.9, "c": 0.1},
    {"c": 1.0},
]

Row = tuple[Any, ...]


class GroupStream(Stream):
    """A probabilistic stream; an event's attributes are its step t and its probability p."""

    def __init__(
        self,
        lake: SketchLake,
        name: str,
        queries: Mapping[str, Mapping[str, Any]],
        *,
        ingested: bool = False,
        **section: Any,
    ) -> None:
        super().__init__(lake, name, {}, {**SECTION, "key": "who", **section}, ingested=ingested)
        lake.streams[name] = self
        self.queries = queries

    def configuration(self, **changes: Any) -> Configuration:
        """The stream's configuration with its queries, and changes to all of them."""
        tree = {
            "database": DATABASE,
            "location": self.lake.location,
            "streams": {self.name: self.section},
            "groups": {name: {"stream": self.name, **query, **changes} for name, query in self.queries.items()},
        }
        return Configuration.from_text(yaml.safe_dump(tree, allow_unicode=True))

    def deliver(self, *batches: Sequence[E]) -> GroupStream:
        """Ingest some batches, one after another, and bring the queries up to date after each."""
        for events in batches:
            self.write(events)
            self.ingest()
            self.run("groups")
            self.moments.append(self.publications("ingest")[-1]["published_at"].astimezone(timezone.utc))
        return self

    def caught_up(self, query: str) -> datetime:
        """When the query's last batch was published."""
        rows = self.lake.rows(
            f"SELECT max(published_at) AS at FROM {DATABASE}_internal.publications_log "
            f"WHERE job = 'groups' AND object = {literal(query)}"
        )
        found: datetime = rows[0]["at"].astimezone(timezone.utc)
        return found

    def kept(self, query: str) -> list[Row]:
        """What the table shows of a query: partition, t_start, t_first, t_end, probability, final."""
        return shown(
            self.lake.rows(
                f"SELECT partition AS key, t_start, t_first, t_end, probability, final FROM {DATABASE}.group_matches "
                f"WHERE query = {literal(query)}"
            )
        )


def shown(rows: Sequence[Any]) -> list[Row]:
    """Rows of an answer in an order of their own, probabilities to nine digits."""
    found = [(r["key"], r["t_start"], r["t_first"], r["t_end"], round(r["probability"], 9), r["final"]) for r in rows]
    return sorted(found, key=lambda row: (row[0] or "", *row[1:4]))

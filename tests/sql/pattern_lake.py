"""What the tests of the job `patterns` share: a stream with kept patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timezone
from typing import Any

import yaml
from sql.sketch_lake import DATABASE, E, SketchLake, Stream, call

from patternlake.delta_tables.schema.quoting import literal
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.runs.running import run

_OF_A_CALL = ("policy", "after_match", "params")


class PatternStream(Stream):
    """A stream with kept patterns, and alerts of them."""

    def __init__(
        self,
        lake: SketchLake,
        name: str,
        patterns: Mapping[str, Mapping[str, Any]],
        alerts: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        ingested: bool = False,
        **section: Any,
    ) -> None:
        super().__init__(lake, name, {}, section, ingested=ingested)
        lake.streams[name] = self
        self.patterns = patterns
        self.alerts = alerts or {}

    def configuration(self, **changes: Any) -> Configuration:
        """The stream's configuration with its patterns, and changes to all of them."""
        tree = {
            "database": DATABASE,
            "location": self.lake.location,
            "streams": {self.name: self.section},
            "patterns": {name: {"stream": self.name, **one, **changes} for name, one in self.patterns.items()},
            "alerts": dict(self.alerts),
        }
        return Configuration.from_text(yaml.safe_dump(tree, allow_unicode=True))

    def take(self, events: Sequence[E]) -> list[Summary]:
        """Ingest events, and bring all patterns up to date."""
        self.write(events)
        self.ingest()
        return self.keep()

    def keep(self, *, rebuild: bool = False, **changes: Any) -> list[Summary]:
        """Run the job on all patterns."""
        done = run(self.lake.spark, self.configuration(**changes), "patterns", rebuild=rebuild, side_by_side=1)
        self.moments.append(self.published_at())
        return done

    def published_at(self) -> Any:
        """When a job last published something of the stream or its patterns."""
        names = ", ".join(map(literal, (self.name, *self.patterns)))
        sql = f"SELECT max(published_at) AS at FROM {DATABASE}_internal.publications_log WHERE object IN ({names})"
        return self.lake.rows(sql)[0]["at"].astimezone(timezone.utc)

    def kept(self, name: str, **arguments: Any) -> str:
        """The call that asks for a kept pattern."""
        return call("match_pattern", query=name, **arguments)

    def text(self, name: str, **arguments: Any) -> str:
        """The call that asks for its text."""
        one = self.patterns[name]
        given = {key: one[key] for key in _OF_A_CALL if key in one}
        return call("match_pattern", self.name, one["query"], **given, **arguments)

    def written(self, name: str) -> list[Any]:
        """The view's rows of a pattern."""
        return self.lake.rows(
            f"SELECT * FROM {DATABASE}.pattern_matches WHERE pattern = {literal(name)} "
            "ORDER BY last_time, first_position, last_position"
        )


def in_order(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Rows of an answer, all their columns, in an order of their own."""
    return sorted((row.asDict() for row in rows), key=lambda r: (r["key"] is not None, r["key"] or "", r["match_no"]))

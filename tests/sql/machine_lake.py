"""What the tests of the job `predict` share: a stream with subscriptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timezone
from typing import Any

import yaml
from sql.sketch_lake import DATABASE, E, SketchLake, Stream, value_text

from patternlake.delta_tables.schema.quoting import literal
from patternlake.jobs.configuration.file import Configuration


class MachineStream(Stream):
    """A stream of events with a key and the attributes x, y and n."""

    def __init__(
        self, lake: SketchLake, name: str, queries: Mapping[str, Any], *, ingested: bool = False, **section: Any
    ) -> None:
        attributes = {"x": "bigint", "y": "bigint", "n": "bigint"}
        super().__init__(lake, name, {}, {"key": "who", "attributes": attributes, **section}, ingested=ingested)
        lake.streams[name] = self
        self.queries: dict[str, dict[str, Any]] = {
            each: {"query": given} if isinstance(given, str) else dict(given) for each, given in queries.items()
        }
        self.evaluation: dict[str, Any] | None = None

    def configuration(self, **changes: Any) -> Configuration:
        """The stream's configuration with its subscriptions, and changes to all of them."""
        tree: dict[str, Any] = {
            "database": DATABASE,
            "location": self.lake.location,
            "streams": {self.name: self.section},
            "subscriptions": {name: {"stream": self.name, **one, **changes} for name, one in self.queries.items()},
        }
        if self.evaluation is not None:
            tree["evaluate"] = self.evaluation
        return Configuration.from_text(yaml.safe_dump(tree, allow_unicode=True))

    def deliver(self, *batches: Sequence[E]) -> MachineStream:
        """Ingest some batches, one after another, and bring the subscriptions up to date after each."""
        for events in batches:
            self.write(events)
            self.ingest()
            self.predict()
        return self

    def predict(self) -> None:
        """Bring the subscriptions up to date."""
        self.run("predict")
        self.moments.append(self.publications("predict")[-1]["published_at"].astimezone(timezone.utc))

    def moves(self, subscription: str) -> dict[tuple[str, str], float]:
        """The counts at all ages together, by (state, next state)."""
        rows = self.lake.rows(
            f"SELECT state, next_state, sum(moves) AS moves FROM {DATABASE}_internal.machine_transitions "
            f"WHERE stream = {literal(self.name)} AND subscription = {literal(subscription)} GROUP BY state, next_state"
        )
        return {(row["state"], row["next_state"]): row["moves"] for row in rows}

    def matches(self, subscription: str, **arguments: Any) -> set[tuple[Any, ...]]:
        """match_subscription: (key, completing position, bindings of taken operands)."""
        rows = self.lake.rows(f"SELECT * FROM match_subscription({call(subscription, arguments)})")
        return {(row["key"], row["last_position"], bindings(row)) for row in rows}

    def forecasts(self, subscription: str, **arguments: Any) -> list[Any]:
        """predict_match, the most probable first."""
        text = f"SELECT * FROM predict_match({call(subscription, arguments)}) ORDER BY probability DESC, state"
        return list(self.lake.rows(text))


def bindings(row: Any) -> frozenset[tuple[str, int]]:
    return frozenset((name, positions[0]) for name, positions in row["bindings"].items() if positions)


def call(subscription: str, arguments: Mapping[str, Any]) -> str:
    """The arguments of a call as SQL."""
    shown = []
    for name, value in arguments.items():
        shown.append(f"{name} => {value_text(value)}")
    return ", ".join([literal(subscription), *shown])

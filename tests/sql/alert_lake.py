"""What the tests of the job `alerts` share: a stream with subscriptions and alerts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from sql.machine_lake import MachineStream, bindings
from sql.sketch_lake import DATABASE, E, SketchLake

from patternlake.delta_tables.schema.quoting import literal
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.runs.running import run


class AlertStream(MachineStream):
    """A stream with subscriptions and alerts; names of both begin with the stream's."""

    def __init__(
        self,
        lake: SketchLake,
        name: str,
        queries: Mapping[str, Any],
        alerts: Mapping[str, Mapping[str, Any]],
        groups: Mapping[str, Any] | None = None,
        **section: Any,
    ) -> None:
        super().__init__(lake, name, queries, **section)
        self.alerts: dict[str, dict[str, Any]] = {each: dict(given) for each, given in alerts.items()}
        self.groups = dict(groups or {})

    def configuration(self, **changes: Any) -> Configuration:
        """The stream's configuration with its objects; changes are those of all alerts."""
        tree: dict[str, Any] = {
            "database": DATABASE,
            "location": self.lake.location,
            "streams": {self.name: self.section},
            "subscriptions": {name: {"stream": self.name, **one} for name, one in self.queries.items()},
            "groups": {name: {"stream": self.name, **one} for name, one in self.groups.items()},
            "alerts": {name: {**one, **changes} for name, one in self.alerts.items()},
        }
        return Configuration.from_text(yaml.safe_dump(tree, allow_unicode=True))

    def tell(self, alert: str | None = None, *, rebuild: bool = False, **changes: Any) -> list[Summary]:
        """Run the job on one alert, or on all."""
        return run(
            self.lake.spark, self.configuration(**changes), "alerts", object=alert, rebuild=rebuild, side_by_side=1
        )

    def take(self, events: Sequence[E]) -> None:
        """Ingest events, and bring what is kept of them up to date, but for alerts."""
        self.write(events)
        self.ingest()
        if self.groups:
            self.run("groups")
        if self.queries:
            self.run("predict")

    def told(self, alert: str) -> list[Any]:
        """The view's rows of an alert, in the order in which they were found."""
        return list(
            self.lake.rows(
                f"SELECT * FROM {DATABASE}.alerts WHERE alert = {literal(alert)} "
                "ORDER BY found_in, last_time, t_end, key, state, alert_id"
            )
        )

    def kept(self, subscription: str) -> list[Any]:
        """The view's rows of a subscription's forecasts."""
        return list(
            self.lake.rows(
                f"SELECT * FROM {DATABASE}.forecasts WHERE subscription = {literal(subscription)} "
                "ORDER BY batch_id, probability DESC, state, key"
            )
        )


def match_of(row: Any) -> tuple[Any, ...]:
    """What tells one match from another: key, times, bindings of taken operands."""
    return row["key"], row["first_time"], row["last_time"], bindings(row)


def forecast_of(row: Any) -> tuple[Any, ...]:
    """What tells one forecast from another, but for join values: key and operands that are taken."""
    return row["key"], frozenset(name for name, positions in row["bindings"].items() if positions)

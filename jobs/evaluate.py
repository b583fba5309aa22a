"""The job `evaluate`: how good the forecasts of a stream's subscriptions are, on events that they were not trained on.

Machines are trained on one range of events and judged on another, each from nothing; the job `predict` and its counts
have no part in it. Every batch judges anew; there is none once both ranges are settled.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from patternlake.delta_tables import moments
from patternlake.delta_tables.database import Database
from patternlake.delta_tables.events import EventsReader
from patternlake.delta_tables.publications import Publication, PublicationsReader
from patternlake.jobs.configuration import EvaluationConfiguration, SubscriptionConfiguration
from patternlake.jobs.contexts import in_own_session
from patternlake.jobs.following import Work, followed, next_batch
from patternlake.jobs.predict import by_partition, check, event_rows, ordered
from patternlake.jobs.summary import Summary
from patternlake.udfs.machines.configured import Group, groups_of, types_of
from patternlake.udfs.machines.running import counts_of
from patternlake.udfs.machines.trials import TRIAL_SCHEMA, Trials, verdicts

logger = logging.getLogger(__name__)

JOB = "evaluate"
TABLE = "forecast_evaluation"
_COLUMNS = (
    "subscription string, lookahead int, kind string, low double, high double, forecasts bigint, hits bigint, "
    "all_hits bigint, mean_probability double, brier double"
)


@in_own_session
def evaluate(
    db: Database,
    name: str,
    subscriptions: Mapping[str, SubscriptionConfiguration],
    configuration: EvaluationConfiguration,
    *,
    rebuild: bool = False,
) -> Summary:
    """Judge the forecasts of the subscriptions to a stream.

    Parameters
    ----------
    db
        The open database.
    name
        The stream.
    subscriptions
        All subscriptions to it, by name.
    configuration
        Ranges of events, lookaheads and thresholds.
    rebuild
        Start anew.

    Raises
    ------
    PatternLakeError
        A subscription does not compile; the stream has no published events, or its events never settle.
    """
    asked = {each: one.meaning for each, one in sorted(subscriptions.items())}
    meaning = {"judged": {"subscriptions": asked, **configuration.meaning}}

    def begin(first: bool) -> Work | None:
        if not rebuild and _settled(db, name, meaning["judged"]):
            return None
        return next_batch(
            db,
            JOB,
            name,
            name,
            meaning,
            rebuild=rebuild and first,
            check=lambda stream, _: check(asked, stream),
            catalogue="judged",
        )

    return followed(JOB, name, begin, lambda work: _Judge(db, work).build())


def _settled(db: Database, name: str, judged: Mapping[str, Any]) -> bool:
    """Whether nothing that may still come changes what was published: both ranges lie below the watermark."""
    found = PublicationsReader(db).latest_of([(JOB, name), ("ingest", name)])
    last, stream = found[JOB, name], found["ingest", name]
    if last is None or stream is None or last.watermark is None or last.configuration["judged"] != judged:
        return False
    end = max(datetime.fromisoformat(judged[part][1]) for part in ("train", "test"))
    return last.source["ingest_base"] == stream.base_batch and last.watermark > end


class _Judge:
    """Builds one batch."""

    def __init__(self, db: Database, work: Work) -> None:
        self.db = db
        self.batch, self.stream, self.last = work.batch, work.stream, work.last
        self.asked: Mapping[str, Any] = self.batch.configuration["judged"]
        configuration = self.batch.configuration["stream"]
        self.types = types_of(configuration)
        self.groups: list[Group] = ordered(groups_of(self.asked["subscriptions"], configuration, apart=True))
        self.parallelism = db.spark.sparkContext.defaultParallelism

    def build(self) -> Publication:
        """Train, test, write what came of it, publish."""
        batch = self.batch
        types, lookaheads = self.types, list(self.asked["lookaheads"])
        end = moments.to_micros(datetime.fromisoformat(self.asked["train"][1]))
        trained = self._totals(self.asked["train"], lambda groups: Trials(groups, types, end))
        tested = self._totals(self.asked["test"], lambda groups: Trials(groups, types, end, lookaheads))
        rows = []
        for group, counted, judged in zip(self.groups, trained, tested, strict=True):
            states = len(group.compiled.graph.waits)
            shaped = np.zeros(2 * states * len(lookaheads)) if judged is None else judged
            for number, name in enumerate(group.names):
                counts = {} if counted is None else counts_of(group.compiled, counted, number)
                found = verdicts(
                    group,
                    number,
                    counts,
                    float(self.asked["subscriptions"][name]["smoothing"]),
                    shaped.reshape(2, states, len(lookaheads)),
                    lookaheads,
                    list(self.asked["thresholds"]),
                )
                rows += [(name, *astuple(verdict)) for verdict in found]
        made = self.db.spark.createDataFrame(rows, _COLUMNS)
        batch.append(TABLE, made.select("*", *batch.marks(TABLE)))
        if self.last is not None:
            batch.close_rows(TABLE, F.lit(True))
        return batch.publish(
            rows_in=batch.source_to - batch.source_from, rows_out=len(rows), watermark=self.stream.watermark
        )

    def _totals(self, bounds: Sequence[str], trials: Callable[[Sequence[Group]], Trials]) -> list[Any]:
        """What `Trials` makes of a range of events, of all tasks together."""
        begin, end = (moments.to_micros(datetime.fromisoformat(moment)) for moment in bounds)
        time = F.unix_micros("time")
        settled = F.lit(None if self.stream.watermark is None else moments.to_micros(self.stream.watermark))
        events = EventsReader(self.db).published(self.stream)
        events = events.where((time >= F.lit(begin)) & (time < F.lit(end)) & (time <= settled))
        totals: list[Any] = [None] * len(self.groups)
        offset = 0
        for columns, groups in by_partition(self.groups).items():

            def found(batches: Iterator[pa.RecordBatch], groups: Sequence[Group] = groups) -> Iterator[pa.RecordBatch]:
                yield from trials(groups).rows(batches)

            rows = event_rows(events, columns, groups, self.types).repartition(self.parallelism, "part")
            sorted_rows = rows.sortWithinPartitions("part", "time", "position")
            for row in sorted_rows.mapInArrow(found, from_arrow_schema(TRIAL_SCHEMA)).toLocalIterator():
                own = np.array(row["totals"])
                place = offset + row["group"]
                totals[place] = own if totals[place] is None else totals[place] + own
            offset += len(groups)
        return totals


if __name__ == "__main__":
    from patternlake.jobs.command_line import main_of

    main_of(JOB)

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

from patternlake.delta_tables.batches import phases
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.reading.state_reader import between
from patternlake.delta_tables.schema import timestamps
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.publications import Publication, PublicationsReader
from patternlake.delta_tables.writing.arrow_rows import of_tuples
from patternlake.jobs.batches import few
from patternlake.jobs.batches.contexts import in_own_session
from patternlake.jobs.batches.following import Work, follow, next_batch
from patternlake.jobs.batches.partitioned import PartitionWork
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.file import EvaluationConfiguration, SubscriptionConfiguration
from patternlake.jobs.machines.subscriptions import by_partition, check, events_of, order_groups
from patternlake.udfs.attributes import types_of_attributes
from patternlake.udfs.machines.forecasts.trials import (
    BINS,
    TRIAL_SCHEMA,
    Trained,
    Trials,
    told_by,
    trained_of,
    verdicts,
)
from patternlake.udfs.machines.from_config import Group, groups_of

logger = logging.getLogger(__name__)

JOB = "evaluate"
TABLE = "forecast_evaluation"


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

    Parameters are as of `runs.steps.Job.work`, with all subscriptions to the stream by name beside the configuration of
    ranges, lookaheads and thresholds.

    Raises
    ------
    PatternLakeError
        A subscription does not compile; the stream has no published events, or its events never settle.
    """
    asked = {each: one.meaning for each, one in sorted(subscriptions.items())}
    meaning = {"judged": {"subscriptions": asked, **configuration.meaning}}

    def begin(first: bool) -> Work | None:
        if not rebuild and _is_settled(db, name, meaning["judged"]):
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

    return follow(JOB, name, begin, lambda work: _Judge(db, work).build())


def _is_settled(db: Database, name: str, judged: Mapping[str, Any]) -> bool:
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
        self.types = types_of_attributes(configuration)
        self.groups: list[Group] = order_groups(groups_of(self.asked["subscriptions"], configuration, apart=True))
        self.trained_until = timestamps.to_micros(datetime.fromisoformat(self.asked["train"][1]))
        if self.stream.watermark is not None:
            # Of later events nothing is known yet, nor of waits how long they last.
            self.trained_until = min(self.trained_until, timestamps.to_micros(self.stream.watermark))

    def build(self) -> Publication:
        """Train, test, write what came of it, publish."""
        batch = self.batch
        types, lookaheads, thresholds = self.types, list(self.asked["lookaheads"]), list(self.asked["thresholds"])
        end = self.trained_until
        phases.at("training machines")
        trained = self._totals(self.asked["train"], lambda groups, _: Trials(groups, types, end))
        told = [
            told_by(
                group,
                counted,
                end,
                max(lookaheads),
                [float(self.asked["subscriptions"][name]["smoothing"]) for name in group.names],
            )
            for group, counted in zip(self.groups, trained, strict=True)
        ]
        phases.at("judging forecasts")
        tested = self._totals(
            self.asked["test"],
            lambda groups, first: Trials(groups, types, end, lookaheads, thresholds, told[first : first + len(groups)]),
        )
        rows = []
        for group, judged in zip(self.groups, tested, strict=True):
            shape = len(group.names), len(lookaheads), len(thresholds) + BINS + 1, 4
            shaped = (np.zeros(shape) if judged is None else judged.totals.counted).reshape(shape)
            for name, own in zip(group.names, shaped, strict=True):
                rows += [(name, *astuple(verdict)) for verdict in verdicts(own, lookaheads, thresholds)]
        batch.append(TABLE, of_tuples(rows, TABLES[TABLE].unmarked))
        if self.last is not None:
            batch.close_rows(TABLE, [])
        return batch.publish(
            rows_in=batch.source_to - batch.source_from, rows_out=len(rows), watermark=self.stream.watermark
        )

    def _totals(self, bounds: Sequence[str], trials: Callable[[Sequence[Group], int], Trials]) -> list[Trained | None]:
        """What `Trials` makes of a range of events, of all tasks together."""
        begin, end = (timestamps.to_micros(datetime.fromisoformat(moment)) for moment in bounds)
        last = end - 1
        if self.stream.watermark is not None:
            last = min(last, timestamps.to_micros(self.stream.watermark))
        where = [*few.of_stream(self.stream, 1, self.stream.source_to), *between("time", begin, last)]
        totals: list[Trained | None] = [None] * len(self.groups)
        offset = 0
        direct = self.db.direct
        size = self.stream.source_to if direct is None else direct.bounds("events", "position", where)[0]
        for columns, groups in by_partition(self.groups).items():

            def found(
                batches: Iterator[pa.RecordBatch], groups: Sequence[Group] = groups, first: int = offset
            ) -> Iterator[pa.RecordBatch]:
                yield from trials(groups, first).rows(batches)

            events = events_of(where, columns, groups, self.types)
            work = PartitionWork([events], size, None, pa.schema([]), ("time", "position"), found, TRIAL_SCHEMA)
            for row in self._run(work):
                own, place = trained_of(row), offset + row["group"]
                known = totals[place]
                totals[place] = own if known is None else known.with_more(own, self.trained_until)
            offset += len(groups)
        return totals

    def _run(self, work: PartitionWork) -> Iterator[Mapping[str, Any]]:
        """The rows that come of it."""
        here = work.do_here(self.db)
        if here is not None:
            yield from here.to_pylist()
            return
        for row in work.give_to_tasks(self.db).frame().toLocalIterator():
            yield row.asDict()

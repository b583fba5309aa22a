"""The job `groups`: new events of a probabilistic stream close groups of a query, and open or extend others.

Partitions go on from what is remembered of them; those without new events are left as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from patternlake.delta_tables.batches import phases
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.gathering.gather import Gather
from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.reading.visibility import published_rows
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.publications import Publication
from patternlake.jobs.batches import few
from patternlake.jobs.batches.contexts import in_own_session
from patternlake.jobs.batches.following import Work, follow, next_batch
from patternlake.jobs.batches.made_rows import MadeRows
from patternlake.jobs.batches.partitioned import PartitionWork, make
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.file import GroupConfiguration
from patternlake.udfs.attributes import attribute_columns, types_of_attributes
from patternlake.udfs.errors import ConfigurationError
from patternlake.udfs.events import EVENT_COLUMNS
from patternlake.udfs.groups.batch import BATCH_SCHEMA, CLOSED, OPEN, REMEMBERED, STATE, Batches
from patternlake.udfs.groups.from_config import query_of, unfit
from patternlake.udfs.groups.kernels.groups import Groups
from patternlake.udfs.language.query.partitions import key_word
from patternlake.udfs.partitions import PART

logger = logging.getLogger(__name__)

JOB = "groups"
STATES, MATCHES = "group_state", "group_matches"
_MATCH_COLUMNS = (PART, "t_start", "t_first", "t_end", "probability", "final", "closed")
_STATE_COLUMNS = (PART, "last_step", "live_starts", "open_groups", STATE)

_LIGHT = 4
"""Measured: a million events take the driver 1.6 seconds, and tasks on two cores 5."""
_OPEN = (Condition("closed", "=", False),)


@in_own_session
def groups(db: Database, name: str, configuration: GroupConfiguration, *, rebuild: bool = False) -> Summary:
    """Bring the groups of a query up to its stream's last published event.

    Parameters are as of `runs.steps.Job.work`.

    Raises
    ------
    PatternLakeError
        The query does not compile; the stream has no probabilities or no published events; or the query has changed
        since the last batch.
    """

    def begin(first: bool) -> Work | None:
        return next_batch(
            db,
            JOB,
            name,
            configuration.stream,
            configuration.meaning,
            rebuild=rebuild and first,
            check=lambda stream, _: _check(name, configuration, stream),
        )

    return follow(JOB, name, begin, lambda work: _Builder(db, work).build())


def _check(name: str, configuration: GroupConfiguration, stream: Publication) -> None:
    wrong = unfit(configuration.stream, stream.configuration)
    if wrong is not None:
        raise ConfigurationError(f"groups.{name}: {wrong}")
    query = query_of({**configuration.meaning, "stream": stream.configuration})
    # Too large an automaton is refused here.
    _ = Groups(query).automaton
    if query.partition and "key" not in query.partition and stream.configuration["key"] is not None:
        shown = ", ".join(query.partition)
        key = key_word(stream.configuration["key"], stream.configuration["attributes"])
        raise ConfigurationError(
            f"groups.{name}: PARTITION BY {shown}: steps arrive in order within the stream's key only; add {key} to "
            "it, or ask match_groups without configuring the query"
        )


class _Builder:
    """Builds one batch."""

    def __init__(self, db: Database, work: Work) -> None:
        self.db = db
        self.batch, self.stream, self.last = work.batch, work.stream, work.last
        self.query = query_of(self.batch.configuration)

    def build(self) -> Publication:
        """Write groups and states, close those that they replace, publish."""
        batch = self.batch
        phases.at("finding groups")
        with make(self.db, [self._work], BATCH_SCHEMA, light=_LIGHT) as found:
            counts = found.counts()
            batch.append(MATCHES, found.of([CLOSED, OPEN], _MATCH_COLUMNS))
            batch.append(STATES, found.of([REMEMBERED], _STATE_COLUMNS))
            if self.last is not None:
                advanced = self._find_advanced(found)
                batch.close_partitions(MATCHES, advanced, _OPEN)
                batch.close_partitions(STATES, advanced)
        return batch.publish(
            rows_in=batch.source_to - batch.source_from,
            rows_out=counts.get(CLOSED, 0) + counts.get(OPEN, 0),
            watermark=self.stream.watermark,
            state={"partitions": counts.get(REMEMBERED, 0)},
        )

    def _find_advanced(self, found: MadeRows) -> DataFrame | pa.Array:
        """The partitions that have new events."""
        if found.counts().get(REMEMBERED, 0) > few.FEW_EVENTS:
            return self.batch.written(STATES).select(PART)
        return found.read(REMEMBERED, [PART])[PART].combine_chunks()

    @property
    def _work(self) -> PartitionWork:
        """What `Batches` makes of new events and of what is remembered of their partitions."""
        batch, last = self.batch, self.last
        configuration = dict(batch.configuration)
        where = few.of_stream(self.stream, batch.source_from + 1, batch.source_to)
        partition, types = self.query.partition or ("key",), types_of_attributes(configuration["stream"])
        read = (*EVENT_COLUMNS, *attribute_columns({*self.query.columns, *partition}, types))
        events = Gather("events", read, tuple(where), partition)
        states = None if last is None else Gather(STATES, (PART, STATE), tuple(published_rows(TABLES[STATES], last)))

        def found(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            engine = Groups(query_of(configuration))
            yield from Batches(engine, types).rows(batches)

        size, remembered = batch.source_to - batch.source_from, pa.schema([(STATE, pa.binary())])
        return PartitionWork([events], size, states, remembered, ("step", "position"), found, BATCH_SCHEMA)

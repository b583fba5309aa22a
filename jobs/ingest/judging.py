"""What a stream's published events say of the rows of its next batch: late, repeated, no step that can follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.schema import timestamps
from patternlake.delta_tables.tables.events import EventsReader
from patternlake.delta_tables.writing.arrow_rows import frame_of
from patternlake.jobs.batches import few
from patternlake.jobs.ingest import repeats, steps
from patternlake.jobs.sources.columns import FIRST_MICROS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from patternlake.delta_tables.committing.database import Database
    from patternlake.delta_tables.tables.publications import Publication
    from patternlake.jobs.ingest.evaluated_rows import Evaluation


def settled_before(before: Publication | None) -> int | None:
    """The greatest watermark that was published up to a batch, in microseconds: where a stream had no allowed lateness
    meanwhile, it goes on from there.
    """
    if before is None:
        return None
    marks = [before.state.get("settled"), None if before.watermark is None else timestamps.to_micros(before.watermark)]
    return max((mark for mark in marks if mark is not None), default=None)


def settled_by(last: int | None, lateness: timedelta | None, before: Publication | None) -> int | None:
    """The greatest watermark once a batch is published, in microseconds: `last` is the greatest time so far."""
    marks = [settled_before(before)]
    if lateness is not None and last is not None:
        marks.append(max(FIRST_MICROS, last - lateness // timedelta(microseconds=1)))
    return max((mark for mark in marks if mark is not None), default=None)


@dataclass(frozen=True)
class Judge:
    """Judges rows beside what was published.

    Parameters
    ----------
    db
        The database.
    evaluation
        The stream's expressions over its source.
    before
        The batch before; None: this is the first one.
    mark
        The moment before which rows are late, microseconds; None: none are.
    """

    db: Database
    evaluation: Evaluation
    before: Publication | None
    mark: int | None

    def judged(self, rows: DataFrame) -> DataFrame:
        """Prepared rows of the source's rows."""
        before, stream = self.before, self.evaluation.columns.stream
        if before is None:
            return self.evaluation.judged(rows)
        session = rows.sparkSession
        mark = timestamps.from_micros(self.mark)
        ids = None
        if stream.event_id is not None:
            ids = repeats.unsettled_ids(self._read_identified(before, mark, session), mark)
        return self.evaluation.judged(
            rows,
            watermark=self.mark,
            known_ids=ids,
            last_steps=steps.last_steps(self._read_stepped(before, session)) if stream.probabilistic else None,
        )

    def _read_identified(self, before: Publication, mark: datetime | None, session: SparkSession) -> DataFrame:
        """The published events whose ids matter; see `repeats.unsettled_ids`."""
        where = [] if mark is None else [Condition("time", ">=", timestamps.to_micros(mark))]
        found = self._few_published(before, ("time", "event_id"), where)
        return self._events(before, session) if found is None else frame_of(session, found)

    def _read_stepped(self, before: Publication, session: SparkSession) -> DataFrame:
        """The published events whose steps matter; see `steps.last_steps`."""
        found = self._few_published(before, ("key", "step", "probability"))
        if found is None:
            return self._events(before, session)
        return frame_of(session, steps.of_last_steps(found))

    def _few_published(
        self, before: Publication, columns: Sequence[str], where: Sequence[Condition] = ()
    ) -> pa.Table | None:
        """Columns of the published events, read without Spark; None where they take too much."""
        conditions = [*few.of_stream(before, 1, before.source_to), *where]
        if self.db.direct is None or not few.few_bytes(self.db, "events", conditions, columns):
            return None
        return self.db.direct.rows("events", columns, conditions)

    def _events(self, before: Publication, session: SparkSession) -> DataFrame:
        """The published events, in the session of the batch: Spark joins no frames of two sessions."""
        return EventsReader(replace(self.db, session=session)).published(before)

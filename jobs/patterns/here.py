"""A batch of few events of the job `patterns`, made in the driver's process: what is read, matched and carried on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from patternlake.delta_tables.gathering.gather import Gather
from patternlake.delta_tables.gathering.pattern_sources import ends_of, events_of, kept_events_of
from patternlake.delta_tables.reading.state_reader import Condition, among, between
from patternlake.delta_tables.reading.visibility import published_rows
from patternlake.delta_tables.schema import timestamps
from patternlake.delta_tables.spark.told_by_tasks import Observed
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.pattern_state import keeps_anew
from patternlake.jobs.batches import few
from patternlake.jobs.patterns.carried import carried_here
from patternlake.udfs.kept_attributes import keep_attributes
from patternlake.udfs.kleene.batch import BATCH_SCHEMA, EVENT, EVENT_COLUMNS, MATCH, batch_rows
from patternlake.udfs.kleene.finality import Moment
from patternlake.udfs.kleene.plans.judged_conditions import observed_in
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.request import KleeneReads
from patternlake.udfs.kleene.state import Carried, kept_as_rows
from patternlake.udfs.kleene.work import Work
from patternlake.udfs.partitions import partition_codes
from patternlake.udfs.record_batches import columns_of, together

if TYPE_CHECKING:
    from patternlake.delta_tables.batches.batch import Batch
    from patternlake.delta_tables.committing.database import Database
    from patternlake.delta_tables.tables.publications import Publication

STATE, MATCHES = "pattern_state", "pattern_matches"
_PART = "part"
_MOST_ROWS = 1_000_000
"""Matches of a batch that the driver holds, about; of more, tasks write what they find as they go."""


@dataclass(frozen=True)
class Found:
    """What a batch is going to write.

    Attributes
    ----------
    matches, events
        Rows of `BATCH_SCHEMA`: those that have become final, and those that are kept.
    replaced
        The kept events that these replace and that are to be closed, all of their partitions; None: there are none.
    carried
        What is left to the next batch.
    observed
        How often conditions held.
    """

    matches: pa.Table
    events: pa.Table
    replaced: pa.Table | None
    carried: Carried
    observed: Observed


@dataclass(frozen=True)
class FewEvents:
    """Makes a batch of few events.

    Attributes
    ----------
    db, batch, stream, last
        The open database, the batch, the publication of the stream that it reads, and the one that it goes on from.
    pattern, reach
        What is looked for, and how far back that may reach.
    carried
        What the batch goes on from; None: nothing.
    reads
        What is read, for work that is not dealt out.
    """

    db: Database
    batch: Batch
    stream: Publication
    last: Publication | None
    pattern: KleenePattern
    reach: int
    carried: Carried | None
    reads: KleeneReads

    def found(self) -> Found | None:
        """What the batch is going to write; None where there is too much to read, or to hold."""
        reader = self.db.direct
        if reader is None:
            return None
        # What the log tells costs nothing; names cost to be read.
        if not any(map(self._are_few, (self._range_read, self._events_read))):
            return None
        others = self.sources[1:]
        for other in others:
            columns = () if self._by_rows else other.columns
            if not few.few_bytes(self.db, other.table, other.where, columns):
                return None
        given = [each.read(reader) for each in self.sources]
        waiting = codes = None
        if self._by_rows:
            given, waiting, codes = self._that_matter(given[0], given[1] if others else None)
        work = Work()
        made = self._made(together(given), codes, work)
        if made is None:
            return None
        replaced = given[1] if self._by_rows and len(given) > 1 else None
        return self._told(made, given[0], replaced, waiting, observed_in(self.pattern, work))

    @cached_property
    def sources(self) -> list[Gather]:
        """New events and those that may still matter, then what is known besides: kept events, or where matches end."""
        pattern = self.pattern
        found = [events_of(pattern, self._events_read, self.reads.request.types)]
        if self.carried is None or self.last is None:
            return found
        if self._by_rows:
            where = published_rows(TABLES[STATE], self.last)
            found.append(kept_events_of(pattern, where, self.reads.request.types))
        elif self.reads.request.resumes:
            found.append(ends_of(pattern, published_rows(TABLES[MATCHES], self.last), self.carried.from_time))
        return found

    def _that_matter(
        self, events: pa.Table, former: pa.Table | None
    ) -> tuple[list[pa.Table], pa.Table | None, NDArray[np.int64]]:
        """The new events of partitions in which a match may have begun, and those of the kept ones beside them.

        And, apart from these, the other kept ones, which stay as they are: those of partitions without new events, and
        without such as were not settled. What is not settled yet is kept in any partition. Then the numbers of the
        partitions of the first ones.
        """
        count = events.num_rows
        part = events[_PART].combine_chunks()
        if former is not None:
            kind = pa.list_(pa.string())
            part = pa.concat_arrays([part.cast(kind), former[_PART].combine_chunks().cast(kind)])
        codes = partition_codes(part)
        new, old = codes[:count], codes[count:]
        assert self.stream.watermark is not None
        begun = events["time"].cast(pa.int64()).to_numpy() > timestamps.to_micros(self.stream.watermark)
        names = self.pattern.beginning_names
        begun |= names is None or pc.is_in(events["name"], pa.array(sorted(names), pa.string())).to_numpy()
        open_, touched = (np.zeros(int(codes.max(initial=-1)) + 1, np.bool_) for _ in range(2))
        open_[old] = open_[new[begun]] = touched[new] = True
        given = [events.filter(pa.array(open_[new]))]
        codes_given = new[open_[new]]
        if former is None:
            return given, None, codes_given
        assert self.carried is not None
        unsettled = former["time"].cast(pa.int64()).to_numpy() > self.carried.before.watermark
        touched[old[unsettled]] = True
        again = touched[old]
        codes_given = np.concatenate([codes_given, old[again]])
        return [*given, former.filter(pa.array(again))], former.filter(pa.array(~again)), codes_given

    def _made(self, given: pa.Table, codes: NDArray[np.int64] | None, work: Work) -> list[pa.Table] | None:
        """What `batch_rows` makes of events; None where that is too much to hold."""
        made = []
        rows = 0
        kept_events = self.reach if self._by_rows else None
        rows_given = columns_of(given)
        for table in batch_rows(self.reads.request, 0, rows_given, kept_events=kept_events, codes=codes, work=work):
            made.append(table)
            rows += table.num_rows
            if rows > _MOST_ROWS:
                return None
        return made

    def _told(
        self,
        made: list[pa.Table],
        events: pa.Table,
        replaced: pa.Table | None,
        waiting: pa.Table | None,
        observed: Observed,
    ) -> Found:
        """What is written; `waiting`: the kept events that stay as they are."""
        matches, kept = (_of_kind(made, kind) for kind in (MATCH, EVENT))
        assert self.stream.watermark is not None
        before = Moment(timestamps.to_micros(self.stream.watermark), self.batch.source_to)
        kept = kept.select([_PART, *EVENT_COLUMNS])
        if self._by_rows:
            others = 0 if waiting is None else waiting.num_rows
            carried = Carried(before, None, kept.num_rows + others)
            if waiting is not None and keeps_anew(self.batch):
                kept, replaced = together([kept, keep_attributes(waiting)]), None
        else:
            since = None if self.carried is None else self.carried.from_time
            carried = Carried(before, *carried_here(before, self.pattern, self.reach, events, since))
        return Found(matches, kept, replaced, carried, observed)

    @property
    def _by_rows(self) -> bool:
        return kept_as_rows(self.pattern)

    @property
    def _range_read(self) -> list[Condition]:
        """Where the events are that are read: new ones, and those that may still matter and are not kept as rows."""
        first = 1 if self.carried is None or not self._by_rows else self.batch.source_from + 1
        since = None if self.carried is None else self.carried.from_time
        return [*few.of_stream(self.stream, first, self.batch.source_to), *between("time", since, None)]

    @property
    def _events_read(self) -> list[Condition]:
        """Which of them are read."""
        names = self.reads.names_read
        taken = [] if names is None else [among("name", names)]
        return [*self._range_read, *taken]

    def _are_few(self, where: list[Condition]) -> bool:
        reader = self.db.direct
        assert reader is not None
        most = reader.most("events", where)
        if most is not None and few.few_events(self.db, most):
            return True
        return few.few_events(self.db, reader.bounds("events", "position", where)[0])


def _of_kind(made: list[pa.Table], kind: str) -> pa.Table:
    """The rows of one kind; each table has rows of one."""
    found = [rows for rows in made if rows.num_rows and rows["kind"][0].as_py() == kind]
    return pa.concat_tables([BATCH_SCHEMA.empty_table(), *found])

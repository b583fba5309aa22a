"""What is published at a moment, as the functions see it: publications, counts of names, the state that can matter."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.delta_tables.batches.durability import check_versions
from patternlake.delta_tables.reading.state_reader import Condition, StateReader, between
from patternlake.delta_tables.reading.visibility import visible_rows
from patternlake.delta_tables.tables.event_statistics import TABLE
from patternlake.udfs.published import NOTHING, NameCount, Published, PublishedBatch
from patternlake.udfs.record_batches import in_micros
from patternlake.udfs.requests import BatchRange

_COLUMNS = tuple(field.name for field in fields(PublishedBatch))
_FEW_STATISTICS = 5_000
"""Rows of statistics that are summed up anew for each question."""
_MOMENTS = ("published_at", "watermark", "horizon")


class Publications:
    """All publications of a database, or those of one job; can be handed on to another process.

    Parameters
    ----------
    rows
        Columns of the table, as `Snapshot` reads them.
    later
        The same, read since: of them comes what has become of the rows that the first ones show.
    """

    def __init__(self, rows: pa.Table, later: pa.Table | None = None) -> None:
        self._rows, self._later = rows, later

    def of_job(self, job: str) -> Publications:
        """Those of one job."""
        return Publications(self._rows.filter(pc.equal(self._rows["job"], job)))

    def seen_by(self, reader: StateReader) -> Publications:
        """The same publications, with what has become of their rows since."""
        jobs = [Condition("job", "=", job) for job in pc.unique(self._rows["job"]).to_pylist()]
        return Publications(self._rows, reader.rows("publications", _COLUMNS, jobs if len(jobs) == 1 else []))

    def names(self, job: str) -> list[str]:
        """Names of all objects of a job, whenever they were published; sorted."""
        mine = self._rows.filter(pc.equal(self._rows["job"], job))
        return sorted(pc.unique(mine["object"]).to_pylist())

    def knows(self, name: str) -> bool:
        """Whether any job ever published an object of this name."""
        return bool(pc.any(pc.equal(self._rows["object"], name)).as_py())

    def published(self, job: str, name: str, as_of: int | None) -> Published:
        """What a job has published of an object at a moment; `NOTHING` of one that it never heard of."""
        mine = _of_object(self._rows, job, name)
        if not mine.num_rows:
            return NOTHING
        found = _find_published(mine, as_of)
        if self._later is None or found.at is None:
            return found
        since = _find_published(_of_object(self._later, job, name), found.at.published_at)
        return replace(found, newest_of_base=since.newest_of_base)


class Snapshot:
    """The published state of a database at one moment.

    Parameters
    ----------
    reader
        Reads the tables.
    as_of
        Microseconds since the epoch; None: now.
    """

    def __init__(self, reader: StateReader, as_of: int | None) -> None:
        self.reader = reader
        self.as_of = as_of
        self._checked: set[str] = set()

    @cached_property
    def publications(self) -> Publications:
        """All publications, as they were when they were first asked for."""
        return Publications(self.reader.rows("publications", _COLUMNS))

    def names(self, job: str) -> list[str]:
        """Names of all objects of a job, whenever they were published; sorted."""
        return self.publications.names(job)

    def published(self, job: str, name: str) -> Published:
        """What a job has published of an object; `NOTHING` of one that it never heard of.

        Raises
        ------
        StateError
            The job's tables, or those of events, have lost what was published.
        """
        self.check_tables(job)
        return self.publications.published(job, name, self.as_of)

    def check_tables(self, job: str) -> None:
        """Refuse tables of a job, or of the events that all answers go back to, which have lost what was published.

        Raises
        ------
        StateError
            Naming the table, and what has to be rebuilt.
        """
        if job not in self._checked:
            check_versions(self.reader, {job, "ingest"})
            self._checked.add(job)

    def of_job(self, job: str) -> dict[str, Published]:
        """What a job has published of each of its objects."""
        return {name: self.published(job, name) for name in self.names(job)}

    def name_counts(self, events: BatchRange, most: int) -> list[NameCount]:
        """How often each name occurs in a stream, the most frequent first, `most` of them.

        Returns
        -------
        list of NameCount
            With what was told of attributes last. Nobody may change it: who asks next for the same is given the same.
        """
        count = partial(self._name_counts, events, most)
        return self.reader.once("event_statistics", ("name_counts", events, most), count)

    def last_time(self, events: BatchRange) -> int | None:
        """The greatest time of a stream's events, microseconds since the epoch; None: there are none."""
        find = partial(self._last_time, events)
        return self.reader.once("event_statistics", ("last_time", events), find)

    def _last_time(self, events: BatchRange) -> int | None:
        return pc.max(in_micros(self._statistics(events)["last_time"])).as_py()  # type: ignore[no-any-return]

    def _name_counts(self, events: BatchRange, most: int) -> list[NameCount]:
        rows = self._statistics(events)
        told = rows.filter(pc.is_valid(rows["attributes"]))
        latest: dict[str, tuple[int, Any]] = {}
        for number, name, attributes in zip(
            told["batch_id"].to_pylist(), told["name"].to_pylist(), told["attributes"].to_pylist(), strict=True
        ):
            if name not in latest or number > latest[name][0]:
                latest[name] = (number, attributes)
        summed = _sum_up(rows)
        summed = summed.sort_by([("events_sum", "descending"), ("name", "ascending")]).slice(0, most)
        return [
            NameCount(name, count, first, last, latest[name][1] if name in latest else None)
            for name, count, first, last in zip(
                summed["name"].to_pylist(),
                summed["events_sum"].to_pylist(),
                in_micros(summed["first_time_min"]).to_pylist(),
                in_micros(summed["last_time_max"]).to_pylist(),
                strict=True,
            )
        ]

    def _statistics(self, events: BatchRange) -> pa.Table:
        """What the batches of a stream up to one have told of names; of some of them perhaps in sums."""
        columns = ("batch_id", "name", "events", "first_time", "last_time", "attributes")
        # Of later batches only their own rows are read, as long as the question stays the same.
        where = [Condition("stream_id", "=", events.number), *between("batch_id", events.base, None)]
        rows = self.reader.rows("event_statistics", columns, where, partial(_in_sums, events.batch))
        if (pc.max(rows["batch_id"]).as_py() or 0) > events.batch:
            # Of a batch that is not published, or asked for by whoever saw a later one published.
            rows = self.reader.rows("event_statistics", columns, where)
        return rows.filter(pc.less_equal(rows["batch_id"], events.batch))


def _sum_up(rows: pa.Table) -> pa.Table:
    aggregates = [("batch_id", "max"), ("events", "sum"), ("first_time", "min"), ("last_time", "max")]
    return rows.select(["name", *(column for column, _ in aggregates)]).group_by("name").aggregate(aggregates)


def _in_sums(batch: int, rows: pa.Table) -> pa.Table:
    """What batches up to one have told of names, summed up under the number of the last of them."""
    if rows.num_rows <= _FEW_STATISTICS:
        return rows
    counted = pc.and_(pc.less_equal(rows["batch_id"], batch), pc.is_null(rows["attributes"]))
    summed = _sum_up(rows.filter(counted))
    attributes = pa.nulls(summed.num_rows, rows.schema.field("attributes").type)
    columns = [summed[name] for name in ("batch_id_max", "name", "events_sum", "first_time_min", "last_time_max")]
    sums = pa.Table.from_arrays([*columns, attributes], schema=rows.schema)
    return pa.concat_tables([sums, rows.filter(pc.invert(counted))])


def earliest_event(reader: StateReader, stream_id: int, after: int, batch: int) -> int | None:
    """The least event time of the batches of `ingest` behind one, up to another, in microseconds; None: no events."""
    where = visible_rows(TABLE, stream_id, stream_id, after + 1, batch)
    return pc.min(in_micros(reader.rows("event_statistics", ("first_time",), where)["first_time"])).as_py()  # type: ignore[no-any-return]


def _of_object(rows: pa.Table, job: str, name: str) -> pa.Table:
    return rows.filter(pc.and_(pc.equal(rows["job"], job), pc.equal(rows["object"], name)))


def _find_published(rows: pa.Table, as_of: int | None) -> Published:
    moments = {name: in_micros(rows[name]) for name in _MOMENTS}
    published_at = moments["published_at"].to_numpy(zero_copy_only=False)
    order = np.lexsort((published_at, rows["batch_id"].to_numpy()))
    among = order if as_of is None else order[published_at[order] <= as_of]

    def row(at: Any) -> PublishedBatch:
        values: dict[str, Any] = rows.slice(int(at), 1).to_pylist()[0]
        return PublishedBatch(**{**values, **{name: column[int(at)].as_py() for name, column in moments.items()}})

    at = row(among[-1]) if len(among) else None
    bases = rows["base_batch"].to_numpy()[order]
    return Published(
        at=at,
        newest=row(order[-1]),
        newest_of_base=None if at is None else row(order[bases == at.base_batch][-1]),
        first=int(published_at.min()),
        horizon=pc.max(moments["horizon"]).as_py(),
    )

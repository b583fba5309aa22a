"""What a batch of the job `patterns` leaves to the next one: from when on events are read again, and how many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from patternlake.delta_tables.batches import phases
from patternlake.delta_tables.schema import timestamps
from patternlake.delta_tables.tables.events import EventsReader
from patternlake.delta_tables.tables.pattern_state import PatternStateReader
from patternlake.udfs.kleene.finality import Moment
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.state import Carried, kept_as_rows

if TYPE_CHECKING:
    from patternlake.delta_tables.batches.batch import Batch
    from patternlake.delta_tables.committing.database import Database
    from patternlake.delta_tables.tables.publications import Publication

_SLICES = 1000
"""Events are counted in so many slices of time: the moment is the beginning of one."""


def carried_after(
    db: Database, batch: Batch, stream: Publication, pattern: KleenePattern, reach: int, since: int | None
) -> Carried:
    """Look at what is kept once a batch has written its rows.

    Parameters
    ----------
    db
        The open database.
    batch
        The batch.
    stream
        The publication of the stream that it has read.
    pattern, reach
        What it looks for, and how far back that may reach, as `kleene.state.reach` says.
    since
        From when on it has read events, microseconds; None: all.
    """
    phases.at("counting what is kept")
    assert stream.watermark is not None
    assert pattern.within is not None
    watermark = timestamps.to_micros(stream.watermark)
    before = Moment(watermark, batch.source_to)
    if kept_as_rows(pattern):
        return Carried(before, None, PatternStateReader(db).events(batch).count())
    events = EventsReader(db).published(stream)
    if pattern.within.counted:
        return Carried(before, *_last(_since(events, since), watermark, reach))
    begin = _begin(watermark, reach)
    taken = _since(events, begin)
    # Under `strict` others matter as well, and are read, too; how many is told by those that can take part.
    names = pattern.names
    if names is not None:
        taken = taken.where(F.col("name").isin(*sorted(names)))
    return Carried(before, begin, taken.count())


def carried_here(
    before: Moment, pattern: KleenePattern, reach: int, events: pa.Table, since: int | None
) -> tuple[int | None, int]:
    """As `carried_after`, of a pattern whose events are not kept as rows: from when on they are read, and how many.

    Parameters
    ----------
    before
        The moment that the batch has come to.
    pattern, reach, since
        As of `carried_after`.
    events
        ``time`` and ``name`` of all that the batch has read, or of those whose names can take part.
    """
    assert pattern.within is not None
    times = events["time"].cast(pa.int64()).to_numpy()
    if pattern.within.counted:
        settled = times[times <= before.watermark]
        low = min(int(times.min(initial=before.watermark)), before.watermark)
        width = _width(low, before.watermark)
        counts = np.bincount((settled - low) // width)
        return _from_slice(dict(enumerate(counts.tolist())), len(times) - len(settled), low, width, reach)
    begin = _begin(before.watermark, reach)
    assert since is None or since <= begin, "watermarks never go back"
    taken = times >= begin
    if pattern.names is not None:
        taken &= pc.is_in(events["name"], pa.array(sorted(pattern.names))).to_numpy()
    return begin, int(np.count_nonzero(taken))


def _begin(watermark: int, reach: int) -> int:
    """From when on events may still matter."""
    return max(timestamps.EARLIEST, watermark - reach + 1)


def _since(events: DataFrame, begin: int | None) -> DataFrame:
    since = timestamps.timestamp_literal(timestamps.from_micros(begin))
    return events if begin is None else events.where(F.col("time") >= since)


def _last(events: DataFrame, watermark: int, wanted: int) -> tuple[int | None, int]:
    """A moment from which on there are so many settled events, or more, and how many events there are from it on."""
    at = F.unix_micros("time")
    first = events.agg(F.min(at)).first()
    low = watermark if first is None or first[0] is None else min(first[0], watermark)
    width = _width(low, watermark)
    number = F.when(at <= watermark, F.floor((at - low) / width)).otherwise(F.lit(_SLICES))
    counts = {row[0]: row[1] for row in events.groupBy(number.cast("int")).count().collect()}
    unsettled = counts.pop(_SLICES, 0)
    return _from_slice(counts, unsettled, low, width, wanted)


def _width(low: int, watermark: int) -> int:
    """Microseconds of a slice of the time between two moments, both included."""
    return max(1, -(-(watermark - low + 1) // _SLICES))


def _from_slice(counts: Mapping[int, int], unsettled: int, low: int, width: int, wanted: int) -> tuple[int | None, int]:
    """The beginning of the last slice from which on there are so many settled events, and all events from it on."""
    settled = 0
    for each in sorted(counts, reverse=True):
        settled += counts[each]
        if settled >= wanted:
            return low + each * width, settled + unsettled
    return None, settled + unsettled

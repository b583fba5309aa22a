"""New events of some partitions as a batch of the job `patterns`: matches that have become final, and what is kept.

A batch is given the events that may still matter and the new ones, and matches them as if there were no others. What
was final before is left out, or, under ``past_last``, not even found: the events up to the end of the last final match
are taken away first. So each match is written by one batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.attributes import is_attribute
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.kept_attributes import ATTRIBUTES, keep_attributes
from patternlake.udfs.kleene.events import beginning_columns, may_begin
from patternlake.udfs.kleene.finality import waits
from patternlake.udfs.kleene.first_events import too_many_at_once
from patternlake.udfs.kleene.kernels.bindings import Matches
from patternlake.udfs.kleene.request import KleeneRequest
from patternlake.udfs.kleene.result import MATCHES, match_rows
from patternlake.udfs.kleene.task import Portion, answer_portion, partition_numbers, sorted_portion
from patternlake.udfs.kleene.work import Work
from patternlake.udfs.limits import MAX_MATCHES, TooManyMatchesError

MATCH, EVENT, ADVANCED = "match", "event", "advanced"
EVENT_COLUMNS = {
    "position": pa.int64(),
    "time": pa.timestamp("us", "UTC"),
    "step": pa.int64(),
    "key": pa.string(),
    "name": pa.string(),
    "probability": pa.float64(),
    ATTRIBUTES: pa.map_(pa.string(), pa.string()),
}
"""Columns of the events that are kept; those that the pattern does not read are NULL."""
BATCH_SCHEMA = pa.schema([("kind", pa.string()), *MATCHES, *EVENT_COLUMNS.items()])
"""Matches that are final, events that are kept, and the partitions whose kept events are replaced."""

NEVER = np.iinfo(np.int64).min


def batch_rows(
    request: KleeneRequest,
    portion: int,
    rows: Mapping[str, pa.Array],
    *,
    kept_events: int | None,
    anew: bool = False,
    codes: IntArray | None = None,
    work: Work | None = None,
) -> Iterator[pa.Table]:
    """What a batch makes of the events of one portion.

    Parameters
    ----------
    request, portion
        The request, which says what the batch goes on from, and the portion's number.
    rows
        As of `task.match_partitions`. Under ``past_last`` there may be rows without a name: with the position and time
        of the last event of the last match that is known of their partition.
    kept_events
        So many of the last settled events of a partition are kept, from the first on that a match may begin with, and
        all that are not settled; None: none are.
    anew
        Whether the events of partitions that stay as they are, which are kept already, are given, too.
    codes
        int64[n]: the number of each row's partition, as `partition_codes` gives it; None: not known.
    work
        Takes note of what matching does, if given.

    Yields
    ------
    pyarrow.Table
        In `BATCH_SCHEMA`, all of one kind.

    Raises
    ------
    PatternLakeError
        One event begins more matches than can be held, or, where the pattern begins with ``[n]``, a partition has more;
        what matching itself raises.
    """
    codes = partition_numbers(request, rows) if codes is None else codes
    unruled = _is_unruled(rows, codes)
    chosen = unruled & _may_settle(request, rows, codes, unruled) if request.pattern.partition else unruled
    if anew:
        waiting = pa.array(unruled & ~chosen)
        yield _kept({name: column.filter(waiting) for name, column in rows.items()})
    given = sorted_portion(request, rows, codes, chosen)
    if request.policy != "skip_till_any":
        # A start has one match at most, so there are no more than events, which are held as it is.
        request = replace(request, max_matches=max(request.max_matches, len(given.codes)))
    ends = _Ends(len(given.shown))

    measures = request.pattern.measures

    def write(matches: Matches, given: Portion, sure: BoolArray, rows: Mapping[str, pa.Array]) -> pa.Table:
        taken = np.flatnonzero(sure)
        done = matches.take(taken)
        ends.add(done.key, done.last_time, done.last_position)
        return _batch(MATCH, match_rows(done, given.parts, sure[sure], measures, rows))

    try:
        yield from answer_portion(request, portion, given, write, work, in_portions=True)
    except TooManyMatchesError:
        raise ArgumentError(
            f"the events of one batch and its window give {too_many_at_once(request)}, in one partition, and a pattern "
            f"that {'begins with [n]' if request.pattern.choice_first else 'asks for past_last'} is not matched in "
            "portions; narrow it with conditions, PARTITION BY or a shorter WITHIN, or run `ingest` and `patterns` "
            "more often, so that a batch has fewer events"
        ) from None
    if kept_events is not None:
        yield from _keep(request, given, ends, kept_events)


def open_rows(request: KleeneRequest, portion: int, rows: Mapping[str, pa.Array]) -> Iterator[pa.Table]:
    """The matches that are not among those that are known; parameters as of `batch_rows`.

    With `truncate` the first of each partition, one more than are asked for where there are as many.

    Yields
    ------
    Rows of `result.MATCHES`.
    """
    codes = partition_numbers(request, rows)
    given = sorted_portion(request, rows, codes, _is_unruled(rows, codes))
    measures = request.pattern.measures
    cut = False

    def write(matches: Matches, given: Portion, sure: BoolArray, rows: Mapping[str, pa.Array]) -> pa.Table:
        nonlocal cut
        cut |= matches.truncated and len(matches) <= request.max_matches
        return match_rows(matches, given.parts, sure, measures, rows)

    # Known matches are found again, and so are some that only events which are not read again rule out. Both have been
    # left out of what is written, so whether enough are left shows there.
    held = request.max_matches + 1 if request.truncate else max(MAX_MATCHES, request.max_matches)
    found = list(answer_portion(replace(request, max_matches=held), portion, given, write))
    while cut:
        held, cut = 4 * held, False
        found = list(answer_portion(replace(request, max_matches=held), portion, given, write))
    yield from found


def _is_unruled(rows: Mapping[str, pa.Array], codes: IntArray) -> BoolArray:
    """bool[n]: the events behind the last known match of their partition, without the rows that tell of matches."""
    is_event = pc.is_valid(rows["name"]).to_numpy(zero_copy_only=False)
    if is_event.all():
        return np.ones(len(codes), np.bool_)
    ends = _Ends(int(codes.max(initial=-1)) + 1)
    told = np.flatnonzero(~is_event)
    times, positions = _places(rows)
    ends.add(codes[told], times[told], positions[told])
    return is_event & ends.behind(codes, times, positions)


class _Ends:
    """Where in each partition the last match ends that is known.

    Attributes
    ----------
    times, positions
        int64[p].
    """

    def __init__(self, partitions: int) -> None:
        self.times = np.full(partitions, NEVER)
        self.positions = np.full(partitions, NEVER)

    def add(self, partitions: IntArray, times: IntArray, positions: IntArray) -> None:
        """Take in where matches end, in any order, which are not overlapped by others that are added later."""
        order = np.lexsort((positions, times))
        self.times[partitions[order]] = times[order]
        self.positions[partitions[order]] = positions[order]

    def behind(self, codes: IntArray, times: IntArray, positions: IntArray) -> BoolArray:
        """bool[n]: the events behind."""
        end = self.times[codes]
        return (times > end) | ((times == end) & (positions > self.positions[codes]))


def _may_settle(request: KleeneRequest, rows: Mapping[str, pa.Array], codes: IntArray, unruled: BoolArray) -> BoolArray:
    """bool[n]: the rows of partitions in which a match may have become final since the batch before."""
    if request.before is None or request.now is None:
        return np.ones(len(codes), np.bool_)
    before, now, pattern = request.before, request.now, request.pattern
    times, positions = _places(rows)
    new = (times > before.watermark) | (positions > (before.position or 0))
    for wait in waits(pattern, request.policy, resumes=request.resumes):
        ends = times + wait
        new |= (ends > before.watermark) & (ends <= now.watermark)
    partitions = np.zeros(int(codes.max(initial=-1)) + 1, np.bool_)
    partitions[codes[new & unruled]] = True
    return partitions[codes]


def _keep(request: KleeneRequest, given: Portion, ends: _Ends, kept_events: int) -> Iterator[pa.Table]:
    """The events that are kept of each partition, and the partitions.

    What comes before the first settled event that a match may begin with is in no match that could still come.
    """
    assert request.now is not None
    times, positions = _places(given.rows)
    settled = times <= request.now.watermark
    counts = np.bincount(given.codes[settled], minlength=len(given.shown))
    place = np.arange(len(times)) - given.offsets[given.codes]
    # What is settled comes first in each partition.
    kept = place >= counts[given.codes] - kept_events
    if request.resumes:
        kept &= ends.behind(given.codes, times, positions)
    events = given.events(request, 0, len(given.shown), beginning_columns(request.pattern))
    beginning = np.flatnonzero(kept & settled & may_begin(request.pattern, events))
    first = np.full(len(given.shown), len(times))
    np.minimum.at(first, given.codes[beginning], beginning)
    kept &= ~settled | (np.arange(len(times)) >= first[given.codes])
    chosen = given.where(kept)
    there = np.flatnonzero(np.diff(given.offsets))
    yield _kept(chosen.rows)
    yield _batch(ADVANCED, pa.table({"part": given.parts.take(pa.array(there))}))


def _places(rows: Mapping[str, pa.Array]) -> tuple[IntArray, IntArray]:
    """Times and positions of the events."""
    times = pc.cast(rows["time"], pa.int64()).to_numpy(zero_copy_only=False)
    return times, rows["position"].to_numpy(zero_copy_only=False).astype(np.int64)


def _kept(rows: Mapping[str, pa.Array]) -> pa.Table:
    """Events as rows that are kept."""
    columns = ("part", *EVENT_COLUMNS)
    read = {name: column for name, column in rows.items() if name in columns or is_attribute(name)}
    return _batch(EVENT, keep_attributes(pa.table(read)))


def _batch(kind: str, rows: pa.Table) -> pa.Table:
    count = rows.num_rows
    columns = [
        pa.repeat(pa.scalar(kind), count)
        if field.name == "kind"
        else rows[field.name].cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(count, field.type)
        for field in BATCH_SCHEMA
    ]
    return pa.Table.from_arrays(columns, schema=BATCH_SCHEMA)

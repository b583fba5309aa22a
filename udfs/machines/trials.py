"""Forecasts judged: of each live row at each event, whether a descendant completed the match within n events.

Source: Muthusamy et al. 2010, section 6.3 (Figs 10 and 11), and SPEC section 6: one prediction per live row and event,
the last n events left out. What a row forecasts depends on its state alone, so predictions and hits are counted by
state; a row is hit if one of the instances that it stands for is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from numba import njit

from patternlake.udfs.machines.configured import Group, columns_read
from patternlake.udfs.machines.cuts import START, complete
from patternlake.udfs.machines.forecasting import Counts, Forecaster
from patternlake.udfs.machines.reading import EVENT_COLUMNS, Events, stream_of
from patternlake.udfs.machines.room import BEGUN, COMPLETED, EDGE, ENDED_AT, FELL
from patternlake.udfs.machines.running import Machines, nothing_held
from patternlake.udfs.machines.tables import IntArray
from patternlake.udfs.machines.takers import Codes
from patternlake.udfs.partitions import first_rows
from patternlake.udfs.record_batches import tables

TRIAL_SCHEMA = pa.schema([("group", pa.int32()), ("totals", pa.list_(pa.float64()))])
"""Of each task and group: `Machines.totals` of training, or predictions and hits by (state, lookahead)."""
BINS = 10
"""Of the calibration table."""
_NEVER = np.int64(2**62)


class Trials:
    """The subscriptions of some groups with one PARTITION BY, on a range of events, from nothing.

    Parameters
    ----------
    groups
        The groups; for testing, of subscriptions that are kept apart.
    types
        Spark type of each of the stream's attributes.
    now
        Microseconds: what the age of counts is measured against.
    lookaheads
        Of the forecasts that are judged; empty: train.
    """

    def __init__(
        self, groups: Sequence[Group], types: Mapping[str, str], now: int, lookaheads: Sequence[int] = ()
    ) -> None:
        self.groups, self.types, self.now = groups, types, now
        self.lookaheads = np.array(lookaheads, np.int64)
        self.runs = [Machines(group.compiled, tracing=bool(lookaheads)) for group in groups]
        self.codes = [Codes() for _ in groups]
        self.judged = [np.zeros((2, len(group.compiled.graph.waits), len(lookaheads))) for group in groups]
        self.wanted = columns_read(groups)

    def rows(self, given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the events of some partitions amount to.

        Parameters
        ----------
        given
            ``part`` and `EVENT_COLUMNS`, in the order of (part, time, position). A partition is held whole.

        Yields
        ------
        pyarrow.RecordBatch
            In `TRIAL_SCHEMA`.
        """
        rest: pa.Table | None = None
        some = False
        for table in tables(given):
            whole = table if rest is None else pa.concat_tables([rest, table]).combine_chunks()
            last = int(first_rows(whole["part"].combine_chunks())[-1])
            rest = whole.slice(last)
            if last:
                self._take(whole.slice(0, last))
            some = True
        if rest is not None:
            self._take(rest)
        if some:
            for number, run in enumerate(self.runs):
                totals = self.judged[number].ravel() if len(self.lookaheads) else run.totals
                row = {"group": [number], "totals": [totals.tolist()]}
                yield pa.RecordBatch.from_pydict(row, schema=TRIAL_SCHEMA)

    def _take(self, rows: pa.Table) -> None:
        columns = {name: rows[name].combine_chunks() for name in ("part", *EVENT_COLUMNS)}
        first = first_rows(columns["part"])
        event_at = np.append(first, rows.num_rows).astype(np.int64)
        events = Events.of(columns, self.wanted, self.types)
        for number, (group, run) in enumerate(zip(self.groups, self.runs, strict=True)):
            stream = stream_of(events, group, self.codes[number], self.now)
            run.take(nothing_held(group.compiled, len(first)), event_at, stream)
            if len(self.lookaheads):
                judge(run.trace, event_at, self.lookaheads, self.judged[number])


def judge(trace: IntArray, event_at: IntArray, lookaheads: IntArray, judged: np.ndarray) -> None:
    """Add predictions and hits to those by state and lookahead.

    Parameters
    ----------
    trace
        `Machines.trace` of whole partitions.
    event_at
        int64[p + 1]: where the events of each begin.
    lookaheads
        int64[n].
    judged
        float64[2, states, n]: predictions, hits; is added to.
    """
    begun = trace[trace[:, 0] == BEGUN]
    if not len(begun):
        return
    row_of = np.zeros(int(begun[:, 1].max()) + 1, np.int64)
    state_of = np.zeros(len(row_of), np.int64)
    # The same row in two partitions is two rows; partitions are told apart by their events.
    part = np.searchsorted(event_at, begun[:, 2], side="right")
    digests, known = pd.factorize(begun[:, 3])
    codes, rows = pd.factorize(digests * (len(event_at) + 1) + part)
    row_of[begun[:, 1]] = codes
    state_of[begun[:, 1]] = begun[:, 4]
    fell = np.flatnonzero(trace[:, 0] == FELL)
    digest = pd.Index(known).get_indexer(trace[fell, 3])
    where = np.searchsorted(event_at, trace[fell, 2], side="right")
    trace = trace.copy()
    trace[fell, 3] = pd.Index(rows).get_indexer(digest * (len(event_at) + 1) + where)
    last_of = np.repeat(event_at[1:] - 1, np.diff(event_at))
    _judge(trace, last_of, row_of, state_of, lookaheads, judged[0], judged[1])


@njit(cache=True)
def _judge(
    trace: IntArray, last_of: IntArray, row_of: IntArray, state_of: IntArray, lookaheads: IntArray,
    predictions: np.ndarray, hits: np.ndarray,
) -> None:  # fmt: skip
    """From the last event back, so that it is known of each entry when its next descendant completes."""
    entries = len(row_of)
    soonest = np.full(entries, _NEVER, np.int64)
    newly = np.full(entries, _NEVER, np.int64)
    active = np.empty(entries, np.int64)
    place = np.empty(entries, np.int64)
    seen = np.full(entries, -1, np.int64)
    row_soonest = np.empty(entries, np.int64)
    row_entry = np.empty(entries, np.int64)
    some = np.empty(entries, np.int64)
    count, at = 0, len(trace) - 1
    for event in range(len(last_of), -1, -1):
        if event < len(last_of):
            rows = 0
            for number in range(count):
                entry = active[number]
                row = row_of[entry]
                if seen[row] != event:
                    seen[row] = event
                    some[rows] = row
                    row_soonest[row], row_entry[row] = soonest[entry], entry
                    rows += 1
                elif soonest[entry] < row_soonest[row]:
                    row_soonest[row] = soonest[entry]
            for which in range(len(lookaheads)):
                until = event + lookaheads[which]
                if until <= last_of[event]:
                    for number in range(rows):
                        state = state_of[row_entry[some[number]]]
                        predictions[state, which] += 1
                        if row_soonest[some[number]] <= until:
                            hits[state, which] += 1
        first = at + 1
        while at >= 0 and trace[at, 2] == event:
            kind, entry, other = trace[at, 0], trace[at, 1], trace[at, 3]
            at -= 1
            if kind == ENDED_AT:
                active[count], place[entry] = entry, count
                count += 1
            elif kind == BEGUN:
                count -= 1
                moved = active[count]
                active[place[entry]], place[moved] = moved, place[entry]
            elif kind == COMPLETED and entry >= 0:
                newly[entry] = event
            elif kind == EDGE and entry >= 0:
                newly[entry] = min(newly[entry], soonest[other])
            elif kind == FELL and other >= 0 and seen[other] == event:
                newly[entry] = min(newly[entry], row_soonest[other])
        # Not before all rows of the event were read: no event serves twice.
        for row in range(at + 1, first):
            entry = trace[row, 1]
            if trace[row, 0] in (EDGE, COMPLETED, FELL) and entry >= 0:
                soonest[entry] = min(soonest[entry], newly[entry])
                newly[entry] = _NEVER


@dataclass(frozen=True)
class Verdict:
    """A row of `forecast_evaluation`; its fields are the columns."""

    lookahead: int
    kind: str
    low: float
    high: float
    forecasts: int
    hits: int
    all_hits: int
    mean_probability: float | None
    brier: float | None


def verdicts(
    group: Group,
    number: int,
    counts: Counts,
    smoothing: float,
    judged: np.ndarray,
    lookaheads: Sequence[int],
    thresholds: Sequence[float],
) -> Iterator[Verdict]:
    """How good the forecasts of a subscription were.

    Parameters
    ----------
    group, number
        The subscription.
    counts
        What it was trained with.
    smoothing
        Added to the counts.
    judged
        float64[2, states, n]: predictions and hits.
    lookaheads, thresholds
        What is asked for.
    """
    subscription = group.compiled.subscriptions[number]
    forecaster = Forecaster(subscription, counts, max(lookaheads), smoothing)
    live = [
        (cut, state)
        for cut, state in group.compiled.graph.states[number].items()
        if cut != START and not complete(subscription.master, cut)
    ]
    for which, lookahead in enumerate(lookaheads):
        told = np.array([min(1.0, float(forecaster.probability(cut)[lookahead])) for cut, _ in live])
        made, hit = (np.array([judged[kind, state, which] for _, state in live]) for kind in (0, 1))
        total = made.sum()
        brier = float((made * told**2 - 2 * told * hit + hit).sum() / total) if total else None
        ranges = [("threshold", low, 1.0, told > low) for low in thresholds]
        edges = [step / BINS for step in range(BINS + 1)]
        for low, high in pairwise(edges):
            ranges.append(("calibration", low, high, ((told > low) | (low == 0)) & (told <= high)))
        for kind, low, high, chosen in ranges:
            forecasts = made[chosen].sum()
            if kind == "calibration" and not forecasts:
                continue
            mean = float((made * told)[chosen].sum() / forecasts) if forecasts else None
            yield Verdict(
                lookahead, kind, low, high, int(forecasts), int(hit[chosen].sum()), int(hit.sum()), mean, brier
            )

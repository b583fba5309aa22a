"""Forecasts judged: of each live row at each event, whether a descendant completed the match within n events.

Source: Muthusamy et al. 2010, section 6.3 (Figs 10 and 11), and SPEC section 6: one prediction per live row and event,
the last n events left out. What a row forecasts is what `predict_match` would show at the time of the event; a row is
hit if one of the instances that it stands for is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from numba import njit

from patternlake.udfs.arrays import FloatArray, IntArray
from patternlake.udfs.events import read_events
from patternlake.udfs.machines.events import stream_of
from patternlake.udfs.machines.forecasts.grids import OPEN, RADIX, ends_sooner, limits_of
from patternlake.udfs.machines.forecasts.passage import Forecaster, Waited, hazards
from patternlake.udfs.machines.forecasts.totals import Totals, counts_of
from patternlake.udfs.machines.forecasts.waiting_times import (
    ANY_PACE,
    Waits,
    as_document,
    counted,
    from_numbers,
    together,
)
from patternlake.udfs.machines.from_config import Group, columns_read
from patternlake.udfs.machines.graph.composite_states import START, complete
from patternlake.udfs.machines.kernels.matching_primitives import Codes
from patternlake.udfs.machines.kernels.running import Machines, nothing_held
from patternlake.udfs.machines.kernels.workspace import BEGUN, COMPLETED, EDGE, ENDED_AT, FELL, LOOKED_AT
from patternlake.udfs.machines.state import TOTALS_COLUMNS, totals_columns, totals_of
from patternlake.udfs.partitions import first_rows
from patternlake.udfs.record_batches import columns_of, tables
from patternlake.udfs.subkernels import subkernel

TRIAL_SCHEMA = pa.schema(
    [
        ("group", pa.int32()),
        *((name, pa.list_(pa.int64() if name == "keys" else pa.float64())) for name in TOTALS_COLUMNS),
        ("waits", pa.list_(pa.int64())),
    ]
)
"""Of each task and group: `Machines.totals` of training, and how long its partitions waited; or as the first of them
what `judge` added up."""
BINS = 10
"""Of the calibration table."""
_NEVER = np.int64(2**62)
_PACES = 65


class Trained(NamedTuple):
    """What a group was trained with: `Machines.totals`, and the waits of its partitions."""

    totals: Totals
    waits: Waits

    def with_more(self, other: Trained, now: int) -> Trained:
        """Both together, at the end of training."""
        return Trained(self.totals + other.totals, together([self.waits, other.waits], now))


def trained_of(row: Mapping[str, Any]) -> Trained:
    """What a row of `TRIAL_SCHEMA` holds."""
    return Trained(totals_of(row), from_numbers(row["waits"]))


class Trials:
    """The subscriptions of some groups with one PARTITION BY, on a range of events, from nothing.

    Parameters
    ----------
    groups
        The groups; for testing, of subscriptions that are kept apart.
    types
        Spark type of each of the stream's attributes.
    now
        Microseconds: the end of training, against which the age of counts and open waits are measured.
    lookaheads, thresholds
        Of the forecasts that are judged, ascending; no lookaheads: train.
    told
        What each group forecasts, where it is judged.
    """

    def __init__(
        self, groups: Sequence[Group], types: Mapping[str, str], now: int, lookaheads: Sequence[int] = (),
        thresholds: Sequence[float] = (), told: Sequence[Told] = (),
    ) -> None:  # fmt: skip
        self.groups, self.types, self.now = groups, types, now
        self.lookaheads, self.thresholds = np.array(lookaheads, np.int64), np.array(thresholds, np.float64)
        self.told = told
        self.runs = [Machines(group.compiled, tracing=bool(lookaheads)) for group in groups]
        self.codes = [Codes() for _ in groups]
        shape = len(lookaheads), len(thresholds) + BINS + 1, 4
        self.judged = [np.zeros((len(group.names), *shape)) for group in groups]
        self.wanted = columns_read(groups)
        self.waits: Waits = {}

    def rows(self, given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the events of some partitions amount to.

        Parameters
        ----------
        given
            ``part``, `EVENT_COLUMNS` and the attributes that are read, in the order of (part, time, position). A
            partition is held whole.

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
                totals = run.totals
                if len(self.lookaheads):
                    totals = Totals(self.judged[number].ravel(), np.empty((0, 2), np.int64), np.empty(0))
                flat = [each for row in as_document(self.waits) for each in row]
                waits = pa.array([flat], pa.list_(pa.int64()))
                row = {"group": pa.array([number], pa.int32()), **totals_columns(totals), "waits": waits}
                yield pa.RecordBatch.from_pydict(row, schema=TRIAL_SCHEMA)

    def _take(self, rows: pa.Table) -> None:
        columns = columns_of(rows)
        first = first_rows(columns["part"])
        event_at = np.append(first, rows.num_rows).astype(np.int64)
        events = read_events(columns, self.wanted, self.types)
        if not len(self.lookaheads):
            new = np.zeros(len(first), np.int64)
            self.waits = together([self.waits, counted(events.times, event_at, new, new, new, self.now)], self.now)
        for number, (group, run) in enumerate(zip(self.groups, self.runs, strict=True)):
            stream = stream_of(events, group, self.codes[number], self.now)
            run.take(nothing_held(group.compiled, len(first)), event_at, stream)
            if len(self.lookaheads):
                judge(
                    run.trace, event_at, stream.time, self.told[number], self.lookaheads, self.thresholds,
                    self.judged[number],
                )  # fmt: skip


class Told(NamedTuple):
    """What the subscriptions of a group forecast, for the judge.

    Attributes
    ----------
    owner
        int64[S]: number of the subscription that each state belongs to, -1 for none.
    grids
        int64[S, 3, 3]: of time, events, and time until lower bounds are reached, a slot as `Grid` has it, and the
        greatest number of slots; -1: nothing is pending.
    pace
        int64[·]: by pace the number of its forecasts.
    spot_at, spots
        int64[S + 1], int64: where instances of each state may stand, ascending.
    hazards
        float64[paces, ·, L]: `passage.hazards` of each of them.
    """

    owner: IntArray
    grids: IntArray
    pace: IntArray
    spot_at: IntArray
    spots: IntArray
    hazards: FloatArray


def told_by(group: Group, trained: Trained | None, now: int, lookahead: int, smoothing: Sequence[float]) -> Told:
    """What the subscriptions of a group forecast.

    Parameters
    ----------
    group
        Of subscriptions that are kept apart.
    trained
        What they were trained with; None: nothing.
    now
        Microseconds: the end of training.
    lookahead
        The greatest one.
    smoothing
        Of each subscription.
    """
    graph = group.compiled.graph
    states = len(graph.waits)
    owner, grids = np.full(states, -1, np.int64), np.full((states, 3, 3), -1, np.int64)
    spots: list[IntArray] = [np.empty(0, np.int64) for _ in range(states)]
    within: list[dict[int, FloatArray]] = [{} for _ in range(states)]
    waited = Waited() if trained is None else Waited(trained.waits, now)
    paces = [ANY_PACE]
    for number, subscription in enumerate(group.compiled.subscriptions):
        counts = {} if trained is None else counts_of(group.compiled, trained.totals, number)
        limits = limits_of(graph, group.compiled.ages, number, subscription.master)
        forecaster = Forecaster(subscription, counts, lookahead, smoothing[number], limits=limits, waited=waited)
        passage = forecaster.passage
        paces = sorted({*paces, *passage.paces})
        for composite_state, state in graph.states[number].items():
            if composite_state == START or complete(subscription.master, composite_state):
                continue
            owner[state] = number
            spots[state] = passage.spots[composite_state]
            within[state] = {
                pace: hazards(passage.within(composite_state, spots[state], pace=pace)) for pace in passage.paces
            }
            grids[state] = passage.grids.of_state(composite_state)
    flat = [
        np.concatenate([some.get(pace, some[ANY_PACE]) for some in within if some] or [np.empty((0, lookahead))])
        for pace in paces
    ]
    of_pace = np.full(_PACES, paces.index(ANY_PACE))
    of_pace[paces] = np.arange(len(paces))
    at = np.concatenate([[0], np.cumsum([len(some) for some in spots])]).astype(np.int64)
    return Told(owner, grids, of_pace, at, np.concatenate(spots), np.array(flat))


def judge(
    trace: IntArray, event_at: IntArray, times: IntArray, told: Told, lookaheads: IntArray,
    thresholds: FloatArray, judged: FloatArray,
) -> None:  # fmt: skip
    """Judge the forecasts of whole partitions.

    Parameters
    ----------
    trace
        `Machines.trace` of them.
    event_at
        int64[p + 1]: where the events of each begin.
    times
        int64: of the events.
    told
        The forecasts.
    lookaheads
        int64[n].
    thresholds
        float64[t].
    judged
        float64[subscriptions, n, t + BINS + 1, 4], is added to: of forecasts above each threshold, in each bin, and of
        all, how many there were and came true, the sum of their probabilities, and that of their squared errors.
    """
    begun = trace[trace[:, 0] == BEGUN]
    if not len(begun):
        return
    row_of = np.zeros(int(begun[:, 1].max()) + 1, np.int64)
    # The same row in two partitions is two rows; partitions are told apart by their events.
    part = np.searchsorted(event_at, begun[:, 2], side="right")
    digests, known = pd.factorize(begun[:, 3])
    codes, rows = pd.factorize(digests * (len(event_at) + 1) + part)
    row_of[begun[:, 1]] = codes
    fell = np.flatnonzero(trace[:, 0] == FELL)
    digest = pd.Index(known).get_indexer(trace[fell, 3])
    where = np.searchsorted(event_at, trace[fell, 2], side="right")
    trace = trace.copy()
    trace[fell, 3] = pd.Index(rows).get_indexer(digest * (len(event_at) + 1) + where)
    last_of = np.repeat(event_at[1:] - 1, np.diff(event_at))
    first_of = np.repeat(event_at[:-1], np.diff(event_at))
    _judge(trace, first_of, last_of, times, row_of, *told, lookaheads, thresholds, judged)


@njit(cache=True)
def _judge(
    trace: IntArray, first_of: IntArray, last_of: IntArray, times: IntArray, row_of: IntArray, owner: IntArray,
    grids: IntArray, pace: IntArray, spot_at: IntArray, spots: IntArray, hazards: FloatArray, lookaheads: IntArray,
    thresholds: FloatArray, judged: FloatArray,
) -> None:  # fmt: skip
    """From the last event back, so that it is known of each instance when its next descendant completes."""
    instances, most = len(row_of), hazards.shape[2]
    soonest = np.full(instances, _NEVER, np.int64)
    newly = np.full(instances, _NEVER, np.int64)
    active = np.empty(instances, np.int64)
    place = np.empty(instances, np.int64)
    seen = np.full(instances, -1, np.int64)
    row_place = np.empty(instances, np.int64)
    row_soonest = np.empty(instances, np.int64)
    state_of = np.empty(instances, np.int64)
    deadlines = np.empty((instances, 3), np.int64)
    spot_of_instance = np.empty(instances, np.int64)
    last_open = np.empty(instances, np.int64)
    combined = np.empty((64, most))
    rows_state = np.empty(64, np.int64)
    rows_soonest = np.empty(64, np.int64)
    count, at = 0, len(trace) - 1
    for event in range(len(last_of), -1, -1):
        if event < len(last_of):
            rows = 0
            here = pace[_pace(times[event] - times[first_of[event]], event - first_of[event])]
            for number in range(count):
                instance = active[number]
                spot_of_instance[instance] = _spot_at(
                    deadlines[instance], grids[state_of[instance]], times[event], event - first_of[event]
                )
                if seen[row_of[instance]] != event:
                    last_open[row_of[instance]] = _NEVER
                if spot_of_instance[instance] < OPEN:
                    last_open[row_of[instance]] = min(last_open[row_of[instance]], spot_of_instance[instance])
                seen[row_of[instance]] = event
            for number in range(count):
                seen[row_of[active[number]]] = -1
            for number in range(count):
                instance = active[number]
                row, state, spot = row_of[instance], state_of[instance], spot_of_instance[instance]
                if seen[row] != event:
                    seen[row] = event
                    if rows == len(combined):
                        combined = np.concatenate((combined, np.empty_like(combined)))
                        rows_state = np.concatenate((rows_state, np.empty_like(rows_state)))
                        rows_soonest = np.concatenate((rows_soonest, np.empty_like(rows_soonest)))
                    row_place[row] = rows
                    combined[rows] = 0.0
                    rows_state[rows] = state
                    rows_soonest[rows] = row_soonest[row] = soonest[instance]
                    rows += 1
                slot = row_place[row]
                row_soonest[row] = rows_soonest[slot] = min(rows_soonest[slot], soonest[instance])
                # As `passage.telling` leaves them out.
                if last_open[row] < _NEVER and spot != last_open[row] and ends_sooner(spot, last_open[row]):
                    continue
                known = _nearest(spots, spot_at[state], spot_at[state + 1], spot)
                for step in range(most):
                    combined[slot, step] = max(combined[slot, step], hazards[here, known, step])
            for slot in range(rows):
                which, unmatched = 0, 1.0
                for step in range(1, most + 1):
                    unmatched *= 1.0 - combined[slot, step - 1]
                    if which < len(lookaheads) and lookaheads[which] == step:
                        if event + step <= last_of[event]:
                            hit = rows_soonest[slot] <= event + step
                            _add(judged[owner[rows_state[slot]], which], thresholds, 1.0 - unmatched, hit)
                        which += 1
        first = at + 1
        while at >= 0 and trace[at, 2] == event:
            kind, instance, other = trace[at, 0], trace[at, 1], trace[at, 3]
            if kind == ENDED_AT:
                active[count], place[instance] = instance, count
                state_of[instance] = trace[at, 4]
                count += 1
            if kind in (ENDED_AT, LOOKED_AT):
                deadlines[instance] = trace[at, 5:8]
            at -= 1
            if kind == BEGUN:
                count -= 1
                moved = active[count]
                active[place[instance]], place[moved] = moved, place[instance]
            elif kind == COMPLETED and instance >= 0:
                newly[instance] = event
            elif kind == EDGE and instance >= 0:
                newly[instance] = min(newly[instance], soonest[other])
            elif kind == FELL and other >= 0 and seen[other] == event:
                newly[instance] = min(newly[instance], row_soonest[other])
        # Not before all rows of the event were read: no event serves twice.
        for row in range(at + 1, first):
            instance = trace[row, 1]
            if trace[row, 0] in (EDGE, COMPLETED, FELL) and instance >= 0:
                soonest[instance] = min(soonest[instance], newly[instance])
                newly[instance] = _NEVER


@subkernel
def _pace(span: int, events: int) -> int:
    """The pace of a partition after so many events and one, as `waiting_times.pace_of` finds it."""
    return 1 + int(np.floor(np.log2(max(span / events, 1.0)))) if events else ANY_PACE


@subkernel
def _spot_at(deadlines: IntArray, grids: IntArray, time: int, rank: int) -> int:
    """Where an instance stands after an event, as `Grids.spot` finds it."""
    spot = 0
    for part in (2, 1, 0):
        above, below, slots = grids[part, 0], grids[part, 1], grids[part, 2]
        end = deadlines[2] if part == 2 else deadlines[1] if part == 1 else deadlines[0]
        rest = end - (rank - 1 if part == 1 else time)
        spot *= RADIX
        if slots < 0 or (part == 2 and rest <= 0) or (part < 2 and end >= _NEVER):
            continue
        passed = -(-rest * below // above) if part == 2 else max(0, rest) * below // above
        spot += RADIX - 1 - min(slots, passed)
    return spot


@subkernel
def _nearest(spots: IntArray, begin: int, end: int, spot: int) -> int:
    """The place of a spot, or of the most similar one, as `passage.nearest` finds it."""
    found = begin + np.searchsorted(spots[begin:end], spot)
    if found < end and spots[found] == spot:
        return found
    least = int(_NEVER)
    for at in range(begin, end):
        apart, one, other = 0, spots[at], spot
        for _ in range(3):
            apart += abs(one % RADIX - other % RADIX)
            one, other = one // RADIX, other // RADIX
        if apart < least:
            found, least = at, apart
    return found


@subkernel
def _add(judged: FloatArray, thresholds: FloatArray, probability: float, hit: bool) -> None:
    """Add a forecast to those above thresholds, to its bin, and to all."""
    bin_ = min(BINS - 1, max(0, int(np.ceil(probability * BINS)) - 1))
    for at in range(len(judged)):
        among = at == len(judged) - 1 or at == len(thresholds) + bin_
        if at < len(thresholds):
            among = probability > thresholds[at]
        if among:
            judged[at, 0] += 1
            judged[at, 1] += hit
            judged[at, 2] += probability
            judged[at, 3] += (probability - hit) ** 2


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


def verdicts(judged: FloatArray, lookaheads: Sequence[int], thresholds: Sequence[float]) -> Iterator[Verdict]:
    """How good the forecasts of a subscription were.

    Parameters
    ----------
    judged
        float64[n, t + BINS + 1, 4], as `judge` adds to it.
    lookaheads, thresholds
        What was asked for.
    """
    edges = [step / BINS for step in range(BINS + 1)]
    ranges = [("threshold", low, 1.0) for low in thresholds]
    ranges += [("calibration", low, high) for low, high in pairwise(edges)]
    for of_lookahead, lookahead in zip(judged, lookaheads, strict=True):
        total, all_hits, _, error = of_lookahead[-1].tolist()
        brier = error / total if total else None
        for (kind, low, high), (forecasts, hits, summed, _) in zip(ranges, of_lookahead[:-1].tolist(), strict=True):
            if kind == "calibration" and not forecasts:
                continue
            mean = summed / forecasts if forecasts else None
            yield Verdict(lookahead, kind, low, high, int(forecasts), int(hits), int(all_hits), mean, brier)

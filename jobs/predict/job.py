"""The job `predict`: new events of a stream go through the machines of its subscriptions, and train them.

Subscriptions are a catalogue: those that are new take the stream's events from the first one on, those that are gone
are seen no more, the others go on from their live partial matches. Events are taken once their time is at or below the
watermark, in the order of (time, position).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from patternlake.delta_tables.batches import phases
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.gathering.gather import Gather
from patternlake.delta_tables.reading.state_reader import Condition, among, between
from patternlake.delta_tables.reading.visibility import published_rows
from patternlake.delta_tables.schema import timestamps
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.machine_transitions import MOVE_COLUMNS
from patternlake.delta_tables.tables.publications import Publication, PublicationsReader
from patternlake.jobs.batches import few
from patternlake.jobs.batches.contexts import in_own_session
from patternlake.jobs.batches.following import Work, follow, next_batch, refuse_earlier_events
from patternlake.jobs.batches.made_rows import MadeRows
from patternlake.jobs.batches.partitioned import PartitionWork, make
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.file import SubscriptionConfiguration
from patternlake.jobs.machines.forecasts import KEPT, forecast_rows
from patternlake.jobs.machines.forecasts import TABLE as FORECASTS
from patternlake.jobs.machines.subscriptions import (
    by_partition,
    check,
    check_measures_of,
    events_of,
    order_groups,
    refuse_new_meanings,
)
from patternlake.jobs.predict.machine_rows import MoveKey, move_rows, state_rows, subscription_rows
from patternlake.udfs.attributes import types_of_attributes
from patternlake.udfs.language.query.partitions import join_columns
from patternlake.udfs.machines.batch import Batches
from patternlake.udfs.machines.forecasts.waiting_times import (
    Waits,
    as_document,
    from_document,
    from_numbers,
    together,
)
from patternlake.udfs.machines.from_config import Group, groups_of
from patternlake.udfs.machines.request import COUNTING
from patternlake.udfs.machines.state import (
    BATCH_SCHEMA,
    COUNTS,
    INSTANCE,
    INSTANCE_COLUMNS,
    MATCH,
    TOTALS_COLUMNS,
    WAITS,
    totals_of,
)
from patternlake.udfs.partitions import PART

logger = logging.getLogger(__name__)

JOB = "predict"
SUBSCRIPTIONS, STATES, MOVES = "subscriptions", "machine_states", "machine_transitions"
MATCHES, INSTANCES = "subscription_matches", "machine_instances"
FOUND_SCHEMA = BATCH_SCHEMA.append(pa.field("partitioned_by", pa.string()))
"""What `Batches` makes, with the PARTITION BY of its pass; ``group`` is counted through all passes."""
_MATCH_COLUMNS = ("subscription", "last_time", "first_position", "last_position", "first_time", PART, "bindings")
_INSTANCE_COLUMNS = ("partitioned_by", PART, *INSTANCE_COLUMNS, "age")


@in_own_session
def predict(
    db: Database,
    name: str,
    subscriptions: Mapping[str, SubscriptionConfiguration],
    *,
    kept_forecasts: Mapping[str, float] | None = None,
    rebuild: bool = False,
) -> Summary:
    """Bring the subscriptions to a stream up to its last published event that is settled.

    Parameters are as of `runs.steps.Job.work`, with all subscriptions to the stream by name. `kept_forecasts` has, of
    those whose forecasts are kept, the probability that a forecast must exceed for it.

    Raises
    ------
    PatternLakeError
        A subscription does not compile; the stream has no published events, or its events never settle.
    """
    if not subscriptions and PublicationsReader(db).latest(JOB, name) is None:
        return Summary(JOB, name, None, 0, 0, 0, 0, 0.0)
    above = {each: {KEPT: bound} for each, bound in (kept_forecasts or {}).items()}
    meaning = {
        "subscriptions": {each: {**one.meaning, **above.get(each, {})} for each, one in sorted(subscriptions.items())}
    }

    def begin(first: bool) -> Work | None:
        return next_batch(
            db,
            JOB,
            name,
            name,
            meaning,
            rebuild=rebuild and first,
            check=lambda stream, last: _check(db, name, meaning["subscriptions"], stream, last),
            catalogue="subscriptions",
        )

    return follow(JOB, name, begin, lambda work: _Builder(db, work).build())


def _check(db: Database, name: str, now: Mapping[str, Any], stream: Publication, last: Publication | None) -> None:
    check(now, stream)
    refuse_earlier_events(db, JOB, name, stream, last)
    before = {} if last is None else last.configuration["subscriptions"]
    if last is not None:
        refuse_new_meanings({name: now[name] for name in _list_same(now, last)}, stream, last)
    check_measures_of(db.spark, {name: one for name, one in now.items() if before.get(name) != one}, stream)


@dataclass(frozen=True)
class Pass:
    """Events that some subscriptions take in this batch.

    Attributes
    ----------
    groups
        The subscriptions.
    begun
        They go on from what is remembered, with new events; False: they take all events.
    known
        Ids of states whose instances other passes keep.
    """

    groups: Sequence[Group]
    begun: bool
    known: frozenset[str] = frozenset()


class _Builder:
    """Builds one batch."""

    def __init__(self, db: Database, work: Work) -> None:
        self.db = db
        self.batch, self.stream, self.last = work.batch, work.stream, work.last
        configuration = self.batch.configuration["stream"]
        self.types = types_of_attributes(configuration)
        self.now: dict[str, Any] = dict(self.batch.configuration["subscriptions"])
        self.before: dict[str, Any] = {} if self.last is None else dict(self.last.configuration["subscriptions"])
        self.same = _list_same(self.now, self.last)
        others = sorted(self.now.keys() - set(self.same))
        old = order_groups(groups_of({name: self.now[name] for name in self.same}, configuration))
        new = order_groups(groups_of({name: self.now[name] for name in others}, configuration))
        self.known = frozenset(state for group in old for state in group.compiled.graph.ids)
        self.passes = [Pass(old, begun=True), Pass(new, begun=False, known=self.known)]
        self.groups = [*old, *new]
        self.watermark = None if self.stream.watermark is None else timestamps.to_micros(self.stream.watermark)

    def build(self) -> Publication:
        """Write what new events amount to, the catalogue, close what that replaces, publish."""
        phases.at("running machines")
        with make(self.db, self._works, FOUND_SCHEMA) as found:
            return self._write(found)

    def _write(self, found: MadeRows) -> Publication:
        batch = self.batch
        counted = found.counts()
        phases.at("training machines")
        totals = self._totals(found)
        waits = self._waits(found)
        # Made before the first write: values that no table takes leave nothing behind.
        moves = move_rows(self._former_moves(), self.groups, totals)
        changed = [name for name in self.now if self.before.get(name) != self.now[name]]
        entries = {name: self.now[name] for name in changed}
        catalogue = subscription_rows(entries, self.groups)
        if counted.get(MATCH):
            batch.append(MATCHES, found.of([MATCH], _MATCH_COLUMNS))
        batch.append(INSTANCES, found.of([INSTANCE], _INSTANCE_COLUMNS))
        batch.append(MOVES, moves)
        new = self.passes[1].groups
        if changed:
            batch.append(SUBSCRIPTIONS, catalogue)
        if new:
            batch.append(STATES, state_rows(new))
        if self.last is not None:
            self._close(found, changed)
        phases.at("forecasting")
        forecasts = forecast_rows(batch, self.watermark, waits)
        if forecasts is not None:
            batch.append(FORECASTS, forecasts)
        return batch.publish(
            rows_in=batch.source_to - batch.source_from,
            rows_out=counted.get(MATCH, 0),
            watermark=self.stream.watermark,
            state={
                "subscriptions": len(self.now),
                "instances": counted.get(INSTANCE, 0),
                "counting": COUNTING,
                "waits": {columns: as_document(each) for columns, each in waits.items()},
            },
        )

    def _close(self, found: MadeRows, changed: Sequence[str]) -> None:
        batch = self.batch
        for columns, groups in by_partition(self.passes[0].groups).items():
            roots = [group.compiled.graph.ids[0] for group in groups]
            mine = [Condition("partitioned_by", "=", join_columns(columns))]
            batch.close_partitions(INSTANCES, self._find_advanced(found, roots), mine)
        batch.close_rows(MOVES, [])
        gone = sorted(self.before.keys() - set(self.same))
        if gone and self.last is not None:
            # Attributes that came since may have names that meant something else then.
            former = groups_of(self.before, self.last.configuration["stream"])
            states = {state for group in former for state in group.compiled.graph.ids}
            batch.close_rows(INSTANCES, [among("state_id", sorted(states - self.known))])
            batch.close_rows(MATCHES, [among("subscription", gone)])
            batch.close_rows(STATES, [among("subscription", gone)])
        outdated = sorted({*gone, *changed} & self.before.keys())
        if outdated:
            batch.close_rows(SUBSCRIPTIONS, [among("subscription", outdated)])

    @cached_property
    def _works(self) -> list[PartitionWork]:
        """What `Batches` makes of the events of both passes."""
        found = []
        number = 0
        for each in self.passes:
            for columns, groups in by_partition(each.groups).items():
                found.append(self._work(each, columns, groups, number))
                number += len(groups)
        return found

    def _work(self, each: Pass, columns: tuple[str, ...], groups: Sequence[Group], number: int) -> PartitionWork:
        """What the subscriptions of a pass with one PARTITION BY make of their events, their groups counted on."""
        types, now, known = self.types, self.watermark or 0, each.known
        last = self.last if each.begun else None
        taken = 0 if last is None else last.source_to
        settled = between("time", None, self.watermark)
        asked = [[*few.of_stream(self.stream, taken + 1, self.batch.source_to), *settled]]
        instances = None
        if last is not None:
            late = None if last.watermark is None else timestamps.to_micros(last.watermark) + 1
            asked.append([*few.of_stream(self.stream, 1, taken), *settled, *between("time", late, None)])
            mine = Condition("partitioned_by", "=", join_columns(columns))
            where = (*published_rows(TABLES[INSTANCES], last), mine)
            instances = Gather(INSTANCES, (PART, *INSTANCE_COLUMNS), where)

        def found(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from _of_pass(Batches(groups, types, now, known).rows(batches), number, join_columns(columns))

        events = [events_of(where, columns, groups, types) for where in asked]
        size = self.batch.source_to - taken
        remembered = pa.schema([BATCH_SCHEMA.field(name) for name in INSTANCE_COLUMNS])
        return PartitionWork(events, size, instances, remembered, ("time", "position"), found, FOUND_SCHEMA)

    def _find_advanced(self, found: MadeRows, roots: Sequence[str]) -> DataFrame | pa.Array:
        """The partitions that have an instance in one of some states."""
        if found.counts().get(INSTANCE, 0) > few.FEW_EVENTS:
            written = self.batch.written(INSTANCES)
            return written.where(F.col("state_id").isin(list(roots))).select(PART).distinct()
        instances = found.read(INSTANCE, ["state_id", PART])
        return instances.filter(pc.is_in(instances["state_id"], pa.array(roots, pa.string())))[PART].combine_chunks()

    def _totals(self, found: MadeRows) -> list[Any]:
        """`Machines.totals` of every group, of all tasks together."""
        totals: list[Any] = [None] * len(self.groups)
        for row in found.read(COUNTS, ["group", *TOTALS_COLUMNS]).to_pylist():
            own = totals_of(row)
            totals[row["group"]] = own if totals[row["group"]] is None else totals[row["group"]] + own
        return totals

    def _waits(self, found: MadeRows) -> dict[str, Waits]:
        """By columns of PARTITION BY, how long partitions have waited for their events."""
        former = {} if self.last is None else self.last.state.get("waits", {})
        counted: dict[int, list[Waits]] = {}
        for row in found.read(WAITS, ["group", "keys"]).to_pylist():
            counted.setdefault(row["group"], []).append(from_numbers(row["keys"]))
        waits: dict[str, Waits] = {}
        number = 0
        for each in self.passes:
            for columns, groups in by_partition(each.groups).items():
                before = from_document(former.get(join_columns(columns), [])) if each.begun else {}
                # What is new has taken all events, which those that go on have counted as well.
                waits[join_columns(columns)] = together([before, *counted.get(number, [])], self.watermark or 0)
                number += len(groups)
        return waits

    def _former_moves(self) -> dict[MoveKey, float]:
        """The counts so far of the subscriptions that go on, as old as they are now."""
        if self.last is None or not self.same:
            return {}
        where = [*published_rows(TABLES[MOVES], self.last), among("subscription", self.same)]
        rows = self.db.state.rows(MOVES, ("subscription", *MOVE_COLUMNS, "moves"), where)
        days = 0.0
        if self.last.watermark is not None and self.stream.watermark is not None:
            days = (self.stream.watermark - self.last.watermark).total_seconds() / 86_400
        lasting = {name: (1.0 - self.now[name]["decay"]) ** days for name in self.same}
        return {
            (row["subscription"], *(row[column] for column in MOVE_COLUMNS)): row["moves"]
            * lasting[row["subscription"]]
            for row in rows.to_pylist()
            if row["left_state"] is not None
        }


def _of_pass(batches: Iterable[pa.RecordBatch], number: int, partitioned_by: str) -> Iterator[pa.RecordBatch]:
    """What `Batches` makes, with groups counted on from a number, in `FOUND_SCHEMA`."""
    place = BATCH_SCHEMA.get_field_index("group")
    for batch in batches:
        columns = list(batch.columns)
        columns[place] = pc.add(columns[place], pa.scalar(number, columns[place].type))
        columns.append(pa.repeat(pa.scalar(partitioned_by), batch.num_rows))
        yield pa.RecordBatch.from_arrays(columns, schema=FOUND_SCHEMA)


def _list_same(now: Mapping[str, Any], last: Publication | None) -> list[str]:
    """The subscriptions that go on from what a publication keeps."""
    if last is None or last.state.get("counting") != COUNTING:
        return []
    before = last.configuration["subscriptions"]
    return sorted(name for name in now if name in before and _same(now[name], before[name]))


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two subscriptions have the same machines and counts."""
    return all(one[key] == other[key] for key in ("query", "params", "decay"))

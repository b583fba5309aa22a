"""What a batch of `predict` forecasts, of the subscriptions whose forecasts are kept: the rows of `predict_match`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from patternlake.delta_tables.batches.batch import Batch
from patternlake.delta_tables.gathering.gather import Gather, deal
from patternlake.delta_tables.reading.state_reader import Condition, among
from patternlake.delta_tables.reading.visibility import published_rows
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.writing.row_files import TaskRows
from patternlake.jobs.batches import few
from patternlake.udfs.language.query.partitions import join_columns
from patternlake.udfs.machines.forecasts.passage import Waited
from patternlake.udfs.machines.forecasts.waiting_times import Waits
from patternlake.udfs.machines.passing_time import rows_read, standing_rows
from patternlake.udfs.machines.request import MOVE_NAMES, Question, Told, forecast, question_of
from patternlake.udfs.machines.result import INSTANCE_COLUMNS, ROWS, live_rows
from patternlake.udfs.partitions import PART, ByPartition, count_portions, up_to_last_value
from patternlake.udfs.record_batches import BATCH_ROWS, columns_of

TABLE, INSTANCES, MOVES = "forecasts", "machine_instances", "machine_transitions"

KEPT = "kept_above"
"""Key of a published subscription whose forecasts are kept: the probability that they exceed."""

_TASK_BYTES = 16 << 20
"""Bytes of instances' files for one task, about; the instances of a partition are never divided."""
_CARRIED = (PART, "joins")
_LISTS = pa.list_(pa.string())
_SCHEMA = pa.schema(
    [("subscription", pa.string()), ("lookahead", pa.int32()), *ROWS, *((name, _LISTS) for name in _CARRIED)]
)


@dataclass(frozen=True)
class Asked:
    """One subscription whose forecasts are kept.

    Attributes
    ----------
    name, lookahead, threshold
        Its name, how far it looks, and what a forecast must exceed.
    told
        As `forecast` gives it.
    question
        What is asked.
    """

    name: str
    lookahead: int
    threshold: float
    told: Told
    question: Question


def forecast_rows(batch: Batch, now: int | None, waits: Mapping[str, Waits]) -> TaskRows | pa.Table | None:
    """Rows of `forecasts`, made in the driver's process where few instances are there; None: no forecasts are kept.

    Parameters
    ----------
    batch
        A batch of `predict` whose instances and moves are written, and those that they replace closed.
    now
        Microseconds since the epoch: the watermark up to which it took events, or None.
    waits
        By columns of PARTITION BY, as `join_columns` writes them, the waits that it has counted.
    """
    entries = {name: one for name, one in batch.configuration["subscriptions"].items() if KEPT in one}
    if not entries:
        return None
    asked = _list_questions(batch, entries, now, waits)
    more = [rows_read(each.question) for each in asked]
    states = sorted(
        {state["state_id"] for each in asked for state in each.told.states}
        | {one for _, others in more for one in others}
    )
    read = list(dict.fromkeys((*INSTANCE_COLUMNS, *(column for columns, _ in more for column in columns))))
    of_states = [*published_rows(TABLES[INSTANCES], batch), among("state_id", states)]
    if few.few_bytes(batch.database, INSTANCES, of_states):
        instances = columns_of(batch.database.state.rows(INSTANCES, read, of_states))
        made_here = [_SCHEMA.empty_table(), *(_rows(each, instances, now) for each in asked)]
        return pa.concat_tables(made_here).drop_columns("key")
    database = batch.database
    portions = count_portions(database.state.size(INSTANCES, of_states), _TASK_BYTES)
    by_columns: dict[tuple[str, ...], list[Asked]] = {}
    for each in asked:
        by_columns.setdefault(each.question.group.partition, []).append(each)
    # Rows are dealt out by lists of one length.
    live = [
        Gather(INSTANCES, tuple(read), (*of_states, Condition("partitioned_by", "=", join_columns(columns))))
        for columns in by_columns
    ]
    blobs, dealt = deal(database, database.state, [(each, ByPartition(portions)) for each in live], portions)

    def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, tables in dealt.read(batches):
            for some, found in zip(by_columns.values(), tables, strict=True):
                columns = columns_of(found)
                for each in some:
                    yield from _rows(each, columns, now).drop_columns("key").to_batches(max_chunksize=BATCH_ROWS)

    return TaskRows(blobs, made, _SCHEMA.remove(_SCHEMA.get_field_index("key")))


def _list_questions(
    batch: Batch, entries: Mapping[str, Mapping[str, Any]], now: int | None, waits: Mapping[str, Waits]
) -> list[Asked]:
    """What the subscriptions forecast, by the moves that the batch has written."""
    moves: dict[str, list[dict[str, Any]]] = {name: [] for name in entries}
    mine = [Condition("stream_id", "=", batch.stream_id), Condition("from_batch", "=", batch.batch_id)]
    mine.append(among("subscription", sorted(entries)))
    for row in batch.database.state.rows(MOVES, ("subscription", *MOVE_NAMES), mine).to_pylist():
        moves[row["subscription"]].append({name: row[column] for column, name in MOVE_NAMES.items()})
    found = []
    for name, entry in sorted(entries.items()):
        question = question_of(name, entry, batch.configuration["stream"])
        waited = Waited(waits.get(join_columns(question.group.partition), {}), now or 0)
        told = forecast(question, moves[name], waited)
        found.append(Asked(name, int(entry["lookahead"]), float(entry[KEPT]), told, question))
    return found


def _rows(asked: Asked, instances: Mapping[str, pa.Array], now: int | None) -> pa.Table:
    """Rows of `_SCHEMA` that a subscription forecasts of instances."""
    # Of the subscription alone: partitions of another PARTITION BY, or of another window's root, are not its own.
    own = pc.is_in(instances["state_id"], pa.array(asked.question.group.compiled.graph.ids))
    held = standing_rows(asked.question, {name: each.filter(own) for name, each in instances.items()}, now)
    found = live_rows(held, asked.told, asked.question.operands, asked.threshold, _CARRIED)
    same = {"subscription": asked.name, "lookahead": asked.lookahead}
    columns = {
        field.name: (
            pa.repeat(pa.scalar(same[field.name], field.type), found.num_rows)
            if field.name in same
            else found[field.name].combine_chunks().cast(field.type)
        )
        for field in _SCHEMA
    }
    # How many join variables there are, other subscriptions take part in.
    columns["joins"] = up_to_last_value(columns["joins"])
    return pa.table(columns, schema=_SCHEMA)

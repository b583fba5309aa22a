"""Measures of matches that are kept with the positions of their events: these events are read beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from patternlake.delta_tables.reading.state_reader import Condition, between
from patternlake.delta_tables.schema.quoting import identifier
from patternlake.delta_tables.writing.arrow_rows import arrow_schema
from patternlake.sql_ext.answering import tasks
from patternlake.sql_ext.answering.event_conditions import event_conditions, in_blocks
from patternlake.sql_ext.declarations.declaration import schema_of
from patternlake.sql_ext.declarations.measured_rows import found_schema
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.udfs.attributes import attribute_columns, is_attribute, stored_type, type_of
from patternlake.udfs.blocks import block_of
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.events import integers
from patternlake.udfs.language.predicate.scopes import BUILT_IN
from patternlake.udfs.measures.of_matches import measure_columns, with_columns
from patternlake.udfs.measures.pattern_measures import PatternMeasures
from patternlake.udfs.own_names import OWN
from patternlake.udfs.requests import BatchRange

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROW, _ID, _EVENTS = f"{OWN}row", f"{OWN}id", f"{OWN}events"


def with_events(
    lake: Lake,
    rows: DataFrame | pa.Table,
    columns: Mapping[str, str],
    events: BatchRange,
    measures: PatternMeasures | None,
) -> DataFrame | pa.Table:
    """Add what measures need to rows with ``bindings``.

    Parameters
    ----------
    lake
        Where the events are.
    rows
        Of the answer.
    columns
        Of the answer, and their Spark types.
    events
        Those that the matches are of.
    measures
        None: nothing is added.

    Returns
    -------
    DataFrame or pyarrow.Table
        Rows of `found_schema`.
    """
    if measures is None:
        return rows
    read = _columns_read(measures)
    if isinstance(rows, pa.Table):
        offsets, positions, operands = _read_bindings(measures, rows["bindings"].combine_chunks())
        where = event_conditions(events) + _at(positions)
        if lake.small("events", where, read):
            given = lake.reader.rows("events", read, where).combine_chunks()
            return with_columns(rows, _find_needed(measures, given, offsets, positions, operands))
        rows = lake.local(rows, schema_of(columns))
    return _by_tasks(lake, rows, columns, event_conditions(events), measures)


def _columns_read(measures: PatternMeasures) -> tuple[str, ...]:
    """The columns of events that measures read."""
    of_events = (name for name in sorted(measures.types) if name in BUILT_IN)
    types = {name: kind for name, kind in measures.types.items() if name not in BUILT_IN}
    return tuple(dict.fromkeys(("position", "name", *of_events, *attribute_columns(types, types))))


def _type_of(column: str) -> str:
    """The Spark type of a column of events."""
    return stored_type(type_of(column)) if is_attribute(column) else BUILT_IN[column]


def _at(positions: np.ndarray) -> list[Condition]:
    """The conditions on events at some positions, and perhaps on some between them."""
    if not len(positions):
        return between("position", 0, 0)
    blocks = sorted({block_of(int(position)) for position in np.unique(positions)})
    return [*in_blocks(blocks), *between("position", int(positions.min()), int(positions.max()))]


def _read_bindings(measures: PatternMeasures, bindings: pa.MapArray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the events of each match begin, their positions, and the operands that bind them."""
    names = pa.array(measures.clause.variables, pa.string())
    items = pc.list_flatten(bindings.cast(pa.list_(pa.struct([("key", pa.string()), ("value", pa.list_(pa.int64()))]))))
    number, lists = pc.index_in(items.field("key"), value_set=names), items.field("value")
    sizes = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    per_match = pc.list_value_length(bindings.cast(pa.list_(items.type))).to_numpy(zero_copy_only=False)
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    offsets = ends[np.concatenate([[0], np.cumsum(per_match)]).astype(np.int64)]
    return offsets, integers(pc.list_flatten(lists)), np.repeat(integers(number), sizes)


def _find_needed(
    measures: PatternMeasures, events: pa.Table, offsets: np.ndarray, positions: np.ndarray, operands: np.ndarray
) -> dict[str, pa.Array]:
    """What measures need of matches, given the events that they bind, and perhaps others."""
    there = integers(events["position"].combine_chunks())
    order = np.argsort(there)
    place = np.searchsorted(there, positions, sorter=order)
    missing = positions[~np.isin(positions, there)]
    if len(missing):
        raise ArgumentError(
            f"the event at position {missing.min()}, which a match binds, is not kept any more, so its measures are "
            "not known; ask for later matches, with from_time"
        )
    rows = order[place]
    columns = {name: events[name].combine_chunks() for name in events.column_names}
    return measure_columns(measures, columns, offsets, rows, operands)


def _by_tasks(
    lake: Lake, rows: DataFrame, columns: Mapping[str, str], where: Sequence[Condition], measures: PatternMeasures
) -> DataFrame:
    """As above, of events that Spark joins."""
    read = _columns_read(measures)
    numbered = rows.select(F.monotonically_increasing_id().alias(_ID), F.struct(*columns).alias(_ROW))
    taken = numbered.select("*", F.explode_outer(F.flatten(F.map_values(f"{_ROW}.bindings"))).alias("position"))
    events = lake.frame("events", where).select(*read)
    joined = taken.join(events, "position", "left").groupBy(_ID)
    gathered = joined.agg(F.first(_ROW).alias(_ROW), F.collect_list(F.struct(*read)).alias(_EVENTS))
    types = ", ".join(f"{identifier(name)}: {_type_of(name)}" for name in read)
    given = cast(StructType, StructType.fromDDL(f"{schema_of(columns)}, {_EVENTS} ARRAY<STRUCT<{types}>>"))
    names, nothing = list(columns), arrow_schema(given).empty_table()

    def portions(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
        held = list(batches)
        yield 0, pa.Table.from_batches(held) if held else nothing

    def work(_: int, found: pa.Table) -> Iterator[pa.Table]:
        found = found.combine_chunks()
        flat = pc.list_flatten(found[_EVENTS].combine_chunks())
        events = pa.table({name: flat.field(name) for name in read})
        offsets, positions, operands = _read_bindings(measures, found["bindings"].combine_chunks())
        yield with_columns(found.select(names), _find_needed(measures, events, offsets, positions, operands))

    return tasks.answer_portions(
        gathered.select(F.col(f"{_ROW}.*"), _EVENTS), portions, work, found_schema(columns, measures)
    )

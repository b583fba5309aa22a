"""What measures ask of matches of events: columns beside their rows, at once or from what is kept of each match."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.attributes import is_attribute
from patternlake.udfs.language.predicate.scopes import BUILT_IN
from patternlake.udfs.measures.event_values import arrow_type, column_values, event_values
from patternlake.udfs.measures.matched_rows import Matches
from patternlake.udfs.measures.pattern_measures import PatternMeasures, quoted_column
from patternlake.udfs.measures.translation import CLASSIFIER, MATCH_NUMBER
from patternlake.udfs.measures.values import LISTS, NUMBER, AtomValues, RowsShown

KEPT = pa.map_(pa.string(), pa.string())
"""What is kept of a match: by columns, a JSON list of their texts in its events, in the order of these."""


def column_types(measures: PatternMeasures) -> dict[str, str]:
    """The columns that `measure_columns` gives, and their Spark types."""
    types = {name: measures.atom_type(name) for name in measures.atoms}
    if measures.folded:
        listed = (f"{quoted_column(name)}: {measures.handed_type(name)}" for name in measures.listed)
        fields = [f"{NUMBER}: int", *listed]
        types[LISTS] = f"array<struct<{', '.join([*fields, f'{CLASSIFIER}: string', f'{MATCH_NUMBER}: bigint'])}>>"
    return types


def measure_columns(
    measures: PatternMeasures, rows: Mapping[str, pa.Array], offsets: IntArray, events: IntArray, operands: Any
) -> dict[str, pa.Array]:
    """What measures need of k matches that bind e events together.

    Parameters
    ----------
    measures
        The measures.
    rows
        Events, as for `event_values`.
    offsets
        int64[k + 1]: match i has the events ``offsets[i]:offsets[i + 1]``, in their order.
    events, operands
        int64[e], integer[e]: the row of each event, and the number of the operand that binds it.
    """
    used, places = np.unique(events, return_inverse=True)
    taken = pa.array(used)
    given = {name: column.take(taken) for name, column in rows.items() if _is_measured(name, measures)}
    return atom_columns(measures, event_values(given, measures.types), offsets, places.astype(np.int64), operands)


def _is_measured(column: str, measures: PatternMeasures) -> bool:
    return column == "name" or column in measures.types or is_attribute(column)


def with_columns(rows: pa.Table, columns: Mapping[str, pa.Array]) -> pa.Table:
    """A table with further columns."""
    for name, column in columns.items():
        rows = rows.append_column(name, column)
    return rows


def kept_texts(
    measures: PatternMeasures | None, rows: Mapping[str, pa.Array], offsets: IntArray, events: IntArray
) -> pa.MapArray:
    """What is kept of matches, as `KEPT`, so that `kept_columns` can tell later; parameters as above."""
    count = len(offsets) - 1
    if measures is None:
        return pa.MapArray.from_arrays(pa.array(np.zeros(count + 1, np.int32)), *[pa.array([], pa.string())] * 2)
    used, places = np.unique(events, return_inverse=True)
    taken = pa.array(used)
    given = {name: column.take(taken) for name, column in rows.items() if _is_measured(name, measures)}
    names = sorted(measures.types)
    values = event_values(given, {name: _kept_type(name) for name in names})
    lists = {name: np.array(values[name].cast(pa.string()).to_pylist(), object)[places] for name in names}
    texts = [
        json.dumps(lists[name][offsets[row] : offsets[row + 1]].tolist()) for row in range(count) for name in names
    ]
    ends = pa.array(np.arange(count + 1, dtype=np.int32) * np.int32(len(names)))
    return pa.MapArray.from_arrays(ends, pa.array(names * count, pa.string()), pa.array(texts, pa.string()))


def kept_columns(measures: PatternMeasures, rows: pa.Table) -> dict[str, pa.Array]:
    """As `measure_columns`, from rows with ``operands`` and what is kept of them in ``values``."""
    rows = rows.combine_chunks()
    operands = rows["operands"].combine_chunks()
    sizes = pc.list_value_length(operands).to_numpy(zero_copy_only=False).astype(np.int64)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    kept = [dict(items) for items in rows["values"].to_pylist()]
    columns = {}
    for name, kind in measures.types.items():
        texts = pa.array([text for match in kept for text in json.loads(match[name])], pa.string())
        given = _kept_type(name) if name in BUILT_IN else kind
        columns[name] = column_values(texts, name, given).cast(arrow_type(kind))
    numbers = pc.list_flatten(operands).to_numpy(zero_copy_only=False)
    return atom_columns(measures, columns, offsets, np.arange(offsets[-1]), numbers)


def _kept_type(name: str) -> str:
    """The type as whose text a column is kept: moments as microseconds, attributes as they are."""
    return "bigint" if name == "time" else BUILT_IN.get(name, "string")


def atom_columns(
    measures: PatternMeasures, columns: Mapping[str, pa.Array], offsets: IntArray, rows: IntArray, operands: Any
) -> dict[str, pa.Array]:
    """As `measure_columns`, of columns whose types are known already; `rows` are the events' places in these."""
    count = len(offsets) - 1
    matches = Matches(
        starts=np.zeros(count, np.int64),
        numbers=np.zeros(count, np.int64),
        offsets=offsets,
        rows=rows,
        variables=np.asarray(operands).astype(np.int32),
        excluded=np.zeros(len(rows), np.bool_),
        unmatched=np.zeros(0, np.int64),
        steps=0,
    )
    shown = RowsShown(np.arange(count), np.diff(offsets), matches.starts)
    given = {quoted_column(name): column for name, column in columns.items()}
    values = AtomValues(measures.clause, matches, np.array([0, rows.max(initial=-1) + 1]), given, shown)
    found = {name: values.of(atom) for name, atom in measures.atoms.items()}
    # Arrow's own lists, as Spark's are.
    found = {
        name: column.cast(pa.list_(column.type.value_type)) if pa.types.is_large_list(column.type) else column
        for name, column in found.items()
    }
    if measures.folded:
        listed = {name: columns[name] for name in measures.listed}
        found[LISTS] = values.lists_of(list(measures.folded.values()), listed)
    return found

"""Rows of the answers of `cet_count` and `cet_trends`, from the trends that a task found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.digits import digits
from patternlake.udfs.measures.event_values import arrow_type, column_values
from patternlake.udfs.measures.of_matches import atom_columns, with_columns
from patternlake.udfs.measures.pattern_measures import PatternMeasures
from patternlake.udfs.trends.kernels.extraction import Batch
from patternlake.udfs.trends.kernels.trends import Trends
from patternlake.udfs.trends.panes import Windows
from patternlake.udfs.trends.request import TrendsRequest

_MOMENT = pa.timestamp("us", "UTC")

COUNT_ROWS = pa.schema(
    [
        ("key", pa.string()),
        ("window", pa.int64()),
        ("window_start", _MOMENT),
        ("window_end", _MOMENT),
        ("trends", pa.string()),
        ("trends_approx", pa.float64()),
        ("longest", pa.int32()),
        ("total_length", pa.string()),
        ("final", pa.bool_()),
    ]
)
"""One row for each partition and window."""

TREND_ROWS = pa.schema(
    [
        ("key", pa.string()),
        ("window", pa.int64()),
        ("window_start", _MOMENT),
        ("window_end", _MOMENT),
        ("positions", pa.list_(pa.int64())),
        ("length", pa.int32()),
        ("first_time", _MOMENT),
        ("last_time", _MOMENT),
        ("final", pa.bool_()),
    ]
)


@dataclass(frozen=True)
class Answered:
    """The trends that a task found, with what their cells are called.

    Attributes
    ----------
    trends
        By cell.
    order
        int64[v]: which row each of the vertices was made of.
    keys
        What is shown of the partition of each of the cells' keys.
    windows
        Of the query.
    asked
        The request.
    texts
        Of each row the texts of `TrendQuery.measured`; None: of nothing.
    """

    trends: Trends
    order: IntArray
    keys: list[str | None]
    windows: Windows
    asked: TrendsRequest
    texts: pa.ListArray | None = None

    def columns(self, cell: IntArray) -> dict[str, pa.Array]:
        """``key``, ``window``, ``window_start``, ``window_end`` and ``final`` of cells."""
        cells = self.trends.cells
        window = cells.window[cell]
        # By the number of windows: windows of events have no bounds in time before their events are looked up.
        timed = bool(self.windows.width) and not self.windows.counted
        start, end = self.windows.bounds(window)
        final = self.windows.final(window, self.asked.watermark) if timed else np.zeros(len(window), np.bool_)
        bounds = {
            name: pa.array(values).cast(_MOMENT) if timed else pa.nulls(len(window), _MOMENT)
            for name, values in (("window_start", start), ("window_end", end))
        }
        names = pa.array([self.keys[key] for key in cells.key.tolist()], pa.string())
        return {"key": names.take(pa.array(cell)), "window": pa.array(window), **bounds, "final": pa.array(final)}


def count_rows(answered: Answered) -> pa.Table:
    """How many trends each cell has: rows of `COUNT_ROWS`."""
    counts = answered.trends.counts()
    columns = answered.columns(np.arange(len(answered.trends.cells.key))) | {
        "trends": pa.array(list(map(digits, counts.trends)), pa.string()),
        "trends_approx": pa.array(counts.approximate),
        "longest": pa.array(counts.longest.astype(np.int32)),
        "total_length": pa.array(list(map(digits, counts.total_length)), pa.string()),
    }
    return table_of(columns, COUNT_ROWS)


def trend_rows(answered: Answered, batch: Batch) -> pa.Table:
    """Extracted trends: rows of `TREND_ROWS`, with what measures need."""
    cells = answered.trends.cells
    begin, end = batch.offsets[:-1], batch.offsets[1:]
    positions = pa.array(cells.position[batch.row])
    measures = answered.asked.layout.query.measures
    rows = table_of(
        answered.columns(batch.cell)
        | {
            "positions": pa.ListArray.from_arrays(pa.array(batch.offsets.astype(np.int32)), positions),
            "length": pa.array((end - begin).astype(np.int32)),
            "first_time": pa.array(cells.time[batch.row[begin]]).cast(_MOMENT),
            "last_time": pa.array(cells.time[batch.row[end - 1]]).cast(_MOMENT),
        },
        TREND_ROWS,
    )
    return rows if measures is None else with_columns(rows, _read_measured(answered, measures, batch))


def no_trends(asked: TrendsRequest) -> pa.Table:
    """No row, with what measures need."""
    rows, measures = TREND_ROWS.empty_table(), asked.layout.query.measures
    if measures is None:
        return rows
    columns = {name: pa.array([], arrow_type(kind)) for name, kind in measures.types.items()}
    nothing = np.zeros(0, np.int64)
    return with_columns(rows, atom_columns(measures, columns, np.zeros(1, np.int64), nothing, nothing))


def _read_measured(answered: Answered, measures: PatternMeasures, batch: Batch) -> dict[str, pa.Array]:
    """What measures need of trends: columns of the vertices that they are made of."""
    cells, names = answered.trends.cells, answered.asked.layout.query.measured
    used, places = np.unique(batch.row, return_inverse=True)
    rows = answered.order[cells.row[used]]
    texts = pa.array([], pa.string()) if answered.texts is None else pc.list_flatten(answered.texts)
    columns = {
        name: column_values(texts.take(pa.array(rows * len(names) + at)), name, measures.types[name])
        for at, name in enumerate(names)
    }
    own = {"position": pa.array(cells.position[used]), "time": pa.array(cells.time[used]).cast(_MOMENT)}
    columns |= {name: column for name, column in own.items() if name in measures.types}
    offsets, operands = batch.offsets.astype(np.int64), cells.term[answered.trends.assign(batch)]
    return atom_columns(measures, columns, offsets, places.astype(np.int64), operands)


def table_of(columns: Mapping[str, pa.Array], schema: pa.Schema) -> pa.Table:
    """The columns as a table, each cast to its type in a schema."""
    return pa.Table.from_arrays([columns[field.name].cast(field.type) for field in schema], schema=schema)

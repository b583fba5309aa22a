"""One part of an answer: the trends of some partitions and blocks of windows, counted or listed.

The vertices of a part come with the block that they are there for; a vertex of two blocks comes twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from numpy.typing import NDArray

from patternlake.udfs.digits import digits
from patternlake.udfs.partitions import shown
from patternlake.udfs.trends.kernels.cells import Blocks
from patternlake.udfs.trends.kernels.extraction import Batch
from patternlake.udfs.trends.kernels.trends import Trends
from patternlake.udfs.trends.panes import Windows
from patternlake.udfs.trends.request import TrendsRequest
from patternlake.udfs.trends.vertex_rows import vertices_from

IntArray = NDArray[np.int64]
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
class _Part:
    """The trends of one part, with what its cells are called."""

    trends: Trends
    keys: list[str | None]
    windows: Windows
    asked: TrendsRequest

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


def trends_of(asked: TrendsRequest, rows: Mapping[str, pa.Array]) -> _Part:
    """Build the graph of a part.

    Parameters
    ----------
    asked
        The request.
    rows
        ``block`` and the columns of `vertex_rows.VERTEX_SCHEMA` but for ``key``: all vertices of the part.
    """
    query = asked.layout.query
    block = rows["block"].to_numpy(zero_copy_only=False).astype(np.int64)
    position = rows["position"].to_numpy(zero_copy_only=False)
    term = rows["term"].to_numpy(zero_copy_only=False)
    # The order that `vertices_from` gives its vertices; equal ones differ in their block alone.
    order = np.lexsort((block, term, position))
    sorted_rows = {name: column.take(pa.array(order)) for name, column in rows.items()}
    vertices, parts = vertices_from(asked.layout, sorted_rows)
    block = block[order]
    codes, of = pd.factorize(vertices.key * (int(block.max()) - int(block.min()) + 1) + block - block.min(), sort=True)
    first = np.zeros(len(of), np.int64)
    first[codes] = np.arange(len(codes))
    keys = [shown(parts[code]) if parts[code] else asked.key for code in vertices.key[first].tolist()]
    dealt = replace(vertices, key=codes.astype(np.int64))
    return _Part(
        Trends(query, dealt, Blocks(asked.block, block[first], asked.first, asked.last)),
        keys,
        Windows.of(query),
        asked,
    )


def count_trends(asked: TrendsRequest, rows: Mapping[str, pa.Array]) -> pa.Table:
    """Count the trends of a part.

    Returns
    -------
    Rows of `COUNT_ROWS`.

    Raises
    ------
    PatternLakeError
        What the vertices do not allow.
    """
    if not len(rows["block"]):
        return COUNT_ROWS.empty_table()
    part = trends_of(asked, rows)
    counts = part.trends.counts()
    cells = part.trends.cells
    columns = part.columns(np.arange(len(cells.key))) | {
        "trends": pa.array(list(map(digits, counts.trends)), pa.string()),
        "trends_approx": pa.array(counts.approximate),
        "longest": pa.array(counts.longest.astype(np.int32)),
        "total_length": pa.array(list(map(digits, counts.total_length)), pa.string()),
    }
    return _table(columns, COUNT_ROWS)


def list_trends(
    asked: TrendsRequest, rows: Mapping[str, pa.Array], ranges: Iterable[tuple[int, int]]
) -> Iterator[pa.Table]:
    """List trends of a part by their numbers, in the order of partition, window and positions.

    Parameters
    ----------
    asked, rows
        As of `trends_of`.
    ranges
        First number and the one behind the last, of each run of trends that is listed.

    Returns
    -------
    Rows of `TREND_ROWS`, so many at a time that memory does not grow with their number.

    Raises
    ------
    PatternLakeError
        What the vertices do not allow.
    """
    part = trends_of(asked, rows)
    for low, high in ranges:
        for batch in part.trends.extract(low, high):
            yield _trend_rows(part, batch)


def _trend_rows(part: _Part, batch: Batch) -> pa.Table:
    cells = part.trends.cells
    begin, end = batch.offsets[:-1], batch.offsets[1:]
    positions = pa.array(cells.position[batch.row])
    return _table(
        part.columns(batch.cell)
        | {
            "positions": pa.ListArray.from_arrays(pa.array(batch.offsets.astype(np.int32)), positions),
            "length": pa.array((end - begin).astype(np.int32)),
            "first_time": pa.array(cells.time[batch.row[begin]]).cast(_MOMENT),
            "last_time": pa.array(cells.time[batch.row[end - 1]]).cast(_MOMENT),
        },
        TREND_ROWS,
    )


def _table(columns: Mapping[str, pa.Array], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_arrays([columns[field.name].cast(field.type) for field in schema], schema=schema)

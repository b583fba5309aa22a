"""What one task of an answer does: the trends of some partitions and blocks of windows are counted or listed.

Vertices come with the block that they are there for; a vertex of two blocks comes twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa

from patternlake.udfs.events import integers
from patternlake.udfs.partitions import partition_texts
from patternlake.udfs.record_batches import in_order
from patternlake.udfs.trends.kernels.cells import Blocks
from patternlake.udfs.trends.kernels.trends import Trends
from patternlake.udfs.trends.panes import Windows
from patternlake.udfs.trends.request import TrendsRequest
from patternlake.udfs.trends.result import COUNT_ROWS, Answered, count_rows, trend_rows
from patternlake.udfs.trends.vertex_rows import VALUES, vertices_from


def trends_of(asked: TrendsRequest, rows: Mapping[str, pa.Array]) -> Answered:
    """Build the graph of a task's vertices.

    Parameters
    ----------
    asked
        The request.
    rows
        ``block`` and the columns of `vertex_rows.VERTEX_SCHEMA` but for ``key``: all of its vertices; with ``values``
        where texts of their events are asked for.
    """
    query = asked.layout.query
    # The order that `vertices_from` gives its vertices; equal ones differ in their block alone.
    sorted_rows, order = in_order(rows, "position", "term", "block")
    vertices, parts = vertices_from(asked.layout, sorted_rows)
    block = integers(sorted_rows["block"])
    codes, of = pd.factorize(vertices.key * (int(block.max()) - int(block.min()) + 1) + block - block.min(), sort=True)
    first = np.zeros(len(of), np.int64)
    first[codes] = np.arange(len(codes))
    texts = partition_texts(parts).to_pylist() if query.partition else [asked.key]
    keys = [texts[code] for code in vertices.key[first].tolist()]
    dealt = replace(vertices, key=codes.astype(np.int64))
    return Answered(
        Trends(query, dealt, Blocks(asked.block, block[first], asked.first, asked.last)),
        order,
        keys,
        Windows.of(query),
        asked,
        rows.get(VALUES),
    )


def count_trends(asked: TrendsRequest, rows: Mapping[str, pa.Array]) -> pa.Table:
    """Count the trends of a task's vertices.

    Returns
    -------
    Rows of `result.COUNT_ROWS`.

    Raises
    ------
    PatternLakeError
        What the vertices do not allow.
    """
    if not len(rows["block"]):
        return COUNT_ROWS.empty_table()
    return count_rows(trends_of(asked, rows))


def list_trends(
    asked: TrendsRequest, rows: Mapping[str, pa.Array], ranges: Iterable[tuple[int, int]]
) -> Iterator[pa.Table]:
    """List trends of a task's vertices by their numbers, in the order of partition, window and positions.

    Parameters
    ----------
    asked, rows
        As of `trends_of`.
    ranges
        First number and the one behind the last, of each run of trends that is listed.

    Returns
    -------
    Rows of `result.TREND_ROWS`, so many at a time that memory does not grow with their number.

    Raises
    ------
    PatternLakeError
        What the vertices do not allow.
    """
    answered = trends_of(asked, rows)
    for low, high in ranges:
        for batch in answered.trends.extract(low, high):
            yield trend_rows(answered, batch)


def pick_trends(asked: TrendsRequest, rows: Mapping[str, pa.Array], numbers: Sequence[int]) -> Iterator[pa.Table]:
    """List some trends of a task's vertices, each by its number.

    Parameters
    ----------
    asked, rows
        As of `trends_of`.
    numbers
        Of any size, as `list_trends` numbers them.

    Returns
    -------
    Rows of `result.TREND_ROWS`, in the order of the numbers, some at a time.

    Raises
    ------
    PatternLakeError
        What the vertices do not allow.
    """
    answered = trends_of(asked, rows)
    for batch in answered.trends.pick(numbers):
        yield trend_rows(answered, batch)

"""The values that partition events, of events that are here as Arrow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

TEXTS = ("key", "name")
"""Columns of events that are texts as they are."""
CAST = ("time", "position", "step", "probability")
"""Columns of events that Spark writes as texts."""


def fit_here(columns: Sequence[str]) -> bool:
    """Whether `parts` can tell the values of these columns: texts, not what Spark would have to write as text."""
    return not set(columns) & set(CAST)


def parts(rows: pa.Table, columns: Sequence[str]) -> pa.Array:
    """The values that partition events, as lists of texts, by columns that `fit_here`."""
    count, width = rows.num_rows, len(columns)
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * np.int32(width))
    texts = [_whole(rows[column] if column in TEXTS else _attribute(rows, column)) for column in columns]
    flat = pa.concat_arrays([pa.array([], pa.string()), *texts])
    place = np.arange(count * width).reshape(width, count).T.ravel()
    return pa.ListArray.from_arrays(offsets, flat.take(pa.array(place)))


def _attribute(rows: pa.Table, name: str) -> pa.ChunkedArray:
    return pc.map_lookup(rows["attributes"], name, "first")


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks().cast(pa.string())

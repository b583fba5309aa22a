"""How the values of a stream's attributes lie, counted in the driver's process: the same as `attribute_counts` says.

Counts of distinct values and quantiles are exact here.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from patternlake.udfs.attributes import column_of
from patternlake.udfs.language.predicate.columns import value_type
from patternlake.udfs.language.predicate.event_columns import column_of_values

_MOMENTS = ("timestamp", "date")
_NUMBERS = ("bigint", "double", *_MOMENTS)
_SUMMARIES = pa.list_(
    pa.struct(
        {
            "attribute": pa.string(),
            "events": pa.int64(),
            "known": pa.int64(),
            "distinct": pa.int64(),
            "quantiles": pa.list_(pa.float64()),
        }
    )
)
"""As `event_statistics` has them; Arrow, left to itself, would put the fields in the order of their names."""


def count_values(events: pa.Table, types: Mapping[str, str], steps: int) -> pa.Table:
    """Summaries of all attributes, and of the key, by name.

    Parameters
    ----------
    events
        ``name``, ``key`` and the columns of attributes, see `attributes`, of all events.
    types
        Spark type of each attribute.
    steps
        Quantiles are so many equal steps apart.

    Returns
    -------
    pyarrow.Table
        ``name``, ``attributes`` (as `event_statistics` has it).
    """
    words = events["name"].combine_chunks().dictionary_encode()
    codes = words.indices.to_numpy().astype(np.int64)
    names = words.dictionary.to_pylist()
    summaries = [_summary("key", events["key"], "string", codes, len(names), steps)]
    for name, type_ in types.items():
        summaries.append(_summary(name, events[column_of(name, type_)], type_, codes, len(names), steps))
    by_name = [[one[place] for one in summaries] for place in range(len(names))]
    return pa.table({"name": names, "attributes": pa.array(by_name, _SUMMARIES)})


def _summary(
    attribute: str, values: pa.ChunkedArray, type_: str, codes: NDArray[np.int64], names: int, steps: int
) -> list[dict[str, Any]]:
    """Of one attribute, by name."""
    words = values.combine_chunks().dictionary_encode()
    numbers = words.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    known = numbers >= 0
    pairs = np.unique(codes[known] * max(1, len(words.dictionary)) + numbers[known])
    events, told = np.bincount(codes, minlength=names), np.bincount(codes[known], minlength=names)
    distinct = np.bincount(pairs // max(1, len(words.dictionary)), minlength=names)
    quantiles = _quantiles(words, numbers, type_, codes, names, steps)
    return [
        {
            "attribute": attribute,
            "events": int(events[place]),
            "known": int(told[place]),
            "distinct": int(distinct[place]),
            "quantiles": quantiles[place],
        }
        for place in range(names)
    ]


def _quantiles(
    words: pa.DictionaryArray,
    numbers: NDArray[np.int64],
    type_: str,
    codes: NDArray[np.int64],
    names: int,
    steps: int,
) -> list[list[float] | None]:
    """By name, values at equal steps; None of what is no number, and where there is none."""
    if value_type(type_) not in _NUMBERS:
        return [None] * names
    distinct = column_of_values(words.dictionary, type_)
    values = np.append(np.asarray(distinct.values).astype(np.float64), np.nan)
    values[:-1][~distinct.known] = np.nan
    all_values = values[numbers]
    there = ~np.isnan(all_values)
    order = np.lexsort((all_values[there], codes[there]))
    ordered, of = all_values[there][order], codes[there][order]
    begins = np.searchsorted(of, np.arange(names + 1))
    found: list[list[float] | None] = []
    for begin, end in pairwise(begins.tolist()):
        count = end - begin
        ranks = np.maximum(np.ceil(np.arange(steps + 1) * count / steps).astype(np.int64) - 1, 0)
        found.append(ordered[begin + ranks].tolist() if count else None)
    return found

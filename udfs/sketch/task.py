"""What one task of an exact answer does: the events of some keys, or of the whole stream, are matched one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from patternlake.udfs.language.event_columns import event_columns
from patternlake.udfs.limits import by_partition
from patternlake.udfs.sketch.kernels.exact import Events, match_events, presence
from patternlake.udfs.sketch.request import SketchRequest
from patternlake.udfs.sketch.result import rows_of


def match_exactly(request: SketchRequest, columns: Mapping[str, pa.Array]) -> Iterator[pa.Table]:
    """Match the events of one task.

    Parameters
    ----------
    request
        The request.
    columns
        ``position``, ``time`` and ``name`` of n `events` in any order; ``tokens`` where they are not the names alone;
        ``key``, ``step``, ``probability`` and ``attributes`` where the question or its conditions read them.

    Returns
    -------
    Rows of `result.ROWS`, those of a partition in one table.

    Raises
    ------
    PatternLakeError
        A partition, or the answer where there is none, has more rows than asked for; what matching itself raises.
    """
    keys: list[str | None] = [request.key]
    positions = columns["position"].to_numpy(zero_copy_only=False).astype(np.int64)
    if request.every_key:
        codes, keys = _ranked(columns["key"])
        order = np.lexsort((positions, codes))
        offsets = np.searchsorted(codes[order], np.arange(len(keys) + 1))
    else:
        order = np.argsort(positions)
        offsets = np.array([0, len(order)], np.int64)
    rows = {name: column.take(pa.array(order)) for name, column in columns.items()}
    events = Events(
        positions=positions[order],
        times=pc.cast(rows["time"], pa.int64()).to_numpy(zero_copy_only=False),
        present=presence(request.pattern.names, _token_columns(request, rows)),
        columns=event_columns(rows, request.pattern.columns, request.types),
        offsets=offsets if request.every_key or request.one_key else None,
    )

    def run(first: int, last: int) -> pa.Table:
        matches = match_events(
            request.pattern,
            events if len(keys) == 1 else _of_keys(events, offsets, first, last),
            policy=request.policy,
            after_match=request.after_match,
            max_matches=request.max_matches,
            truncate=request.truncate and last - first <= 1,
            window=request.window,
        )
        return rows_of(request, matches, keys[first:last])

    yield from by_partition(0, len(keys), run)


def _of_keys(events: Events, offsets: NDArray[np.int64], first: int, last: int) -> Events:
    """The events of some keys."""
    begin, end = int(offsets[first]), int(offsets[last])
    return Events(
        positions=events.positions[begin:end],
        times=events.times[begin:end],
        present=events.present[begin:end],
        columns={name: column.rows(begin, end) for name, column in events.columns.items()},
        offsets=offsets[first : last + 1] - begin,
    )


def _ranked(key: pa.Array) -> tuple[NDArray[np.int64], list[str | None]]:
    """int64[n] number of each event's key, and the keys in order, NULL first."""
    dictionary = key.dictionary_encode()
    codes = dictionary.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    known = dictionary.dictionary.to_pylist()
    order = sorted(range(len(known)), key=known.__getitem__)
    rank = np.empty(len(known) + 1, np.int64)
    nameless = bool((codes < 0).any())
    rank[order] = np.arange(len(known)) + nameless
    rank[-1] = 0
    return rank[codes], [*([None] if nameless else []), *(known[place] for place in order)]


def _token_columns(request: SketchRequest, rows: Mapping[str, pa.Array]) -> list[pa.Array]:
    if "tokens" not in rows or rows["tokens"].null_count:  # of a stream whose only token is the name
        return [rows["name"]]
    flat, count = pc.list_flatten(rows["tokens"]), request.expressions
    numbers = np.arange(0, len(flat), count)
    return [flat.take(pa.array(numbers + column)) for column in range(count)]

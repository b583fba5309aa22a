"""Rows of the answer of `match_paths`, from the paths of portions.

A portion knows its own partitions alone. Its counts add up, for no partition is in two; the times that its paths took
stay as they are, for medians are exact.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.partitions import number_values
from patternlake.udfs.paths.kernels.ways import equal_paths
from patternlake.udfs.paths.request import PathsRequest
from patternlake.udfs.slots import lists_by_slot, numbers_with_slots, percentiles

OTHER = "…"
"""What names beyond the alphabet are called."""

PARTS = pa.schema(
    [
        ("group", pa.string()),
        ("path", pa.list_(pa.int32())),
        ("partitions", pa.int64()),
        ("micros", pa.list_(pa.int64())),
    ]
)
"""What a portion adds: for each group and path, as codes of the alphabet, how many partitions have it, and how long
each occurrence took."""

ROWS = pa.schema(
    [
        ("path", pa.list_(pa.string())),
        ("partitions", pa.int64()),
        ("occurrences", pa.int64()),
        ("share", pa.float64()),
        ("seconds_p50", pa.float64()),
        ("group", pa.string()),
    ]
)
"""By group, NULL first; in each the most frequent first, of equally many those of more partitions, then by names."""


def parts_of(
    codes: IntArray,
    groups: pa.Array,
    begins: IntArray,
    ends: IntArray,
    partitions: IntArray,
    numbers: IntArray,
    micros: IntArray,
) -> pa.Table:
    """Paths of a portion, as rows of `PARTS`.

    Parameters
    ----------
    codes
        int64[n]: of the items.
    groups
        string[paths].
    begins, ends, partitions
        int64[paths]: the items of each path, and how many partitions have it.
    numbers, micros
        int64[m]: the path of each occurrence, and how long it took.
    """
    lengths = ends - begins
    behind = np.cumsum(lengths)
    items = np.repeat(begins - (behind - lengths), lengths) + np.arange(int(lengths.sum()))
    paths = pa.ListArray.from_arrays(
        pa.array(np.append(0, behind).astype(np.int32)), pa.array(codes[items].astype(np.int32))
    )
    columns = [groups, paths, pa.array(partitions), lists_by_slot(numbers, len(begins), pa.array(micros))]
    return pa.Table.from_arrays(columns, schema=PARTS)


def merge(request: PathsRequest, parts: pa.Table) -> pa.Table:
    """The paths of all portions.

    Parameters
    ----------
    request
        The request.
    parts
        Rows of `PARTS`, of any number of portions and in any order.

    Returns
    -------
    Rows of `ROWS`.
    """
    group, shown = number_values(parts["group"].combine_chunks())
    path = parts["path"].combine_chunks()
    codes = path.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
    lengths = path.value_lengths().to_numpy(zero_copy_only=False)
    ends = np.cumsum(lengths).astype(np.int64)
    begins = ends - lengths
    numbers, firsts = equal_paths(codes, group, begins, ends)
    count = len(firsts)
    partitions = np.zeros(count, np.int64)
    np.add.at(partitions, numbers, parts["partitions"].to_numpy())
    micros, owner = numbers_with_slots(parts["micros"].combine_chunks(), numbers)
    occurrences = np.bincount(owner, minlength=count)
    group, begins, ends = group[firsts], begins[firsts], ends[firsts]
    totals = np.zeros(len(shown), np.int64)
    np.add.at(totals, group, occurrences)
    kept = _most_frequent(request.max_paths, codes, group, occurrences, partitions, begins, ends)
    (median,) = percentiles(micros, owner, count, 5)
    names = np.array([*request.alphabet, OTHER], object)
    rows = pa.array(kept)
    columns = [
        pa.array([names[codes[begins[one] : ends[one]]].tolist() for one in kept.tolist()], pa.list_(pa.string())),
        pa.array(partitions[kept]),
        pa.array(occurrences[kept].astype(np.int64)),
        pa.array(occurrences[kept] / totals[group[kept]]),
        median.take(rows),
        pa.array(shown, pa.string()).take(pa.array(group[kept])),
    ]
    return pa.Table.from_arrays(columns, schema=ROWS)


def _most_frequent(
    most: int,
    codes: IntArray,
    group: IntArray,
    occurrences: IntArray,
    partitions: IntArray,
    begins: IntArray,
    ends: IntArray,
) -> IntArray:
    """The paths of each group that are told, in their order."""
    order = np.lexsort((-partitions, -occurrences, group))
    of_group = group[order]
    begun = np.searchsorted(of_group, of_group)  # where the group of each begins
    # Paths that tie are ordered by their names, which takes long: only where one of the tie may be told.
    begins_tie = np.ones(len(order), np.bool_)
    begins_tie[1:] = np.any([values[order][1:] != values[order][:-1] for values in (group, occurrences, partitions)], 0)
    first_of_tie = np.maximum.accumulate(np.where(begins_tie, np.arange(len(order)), 0))
    told = np.flatnonzero(first_of_tie - begun < most)
    # Codes ascend with names, and bytes of the greatest first compare as they do, a shorter path before a longer one.
    texts = codes.astype(">i4").tobytes()
    bounds = zip((4 * begins[order[told]]).tolist(), (4 * ends[order[told]]).tolist(), strict=True)
    ties = zip(first_of_tie[told].tolist(), (texts[begin:end] for begin, end in bounds), strict=True)
    chosen = [order[place] for _, place in sorted(zip(ties, told.tolist(), strict=True))]
    places: dict[int, int] = {}
    kept = []
    for one in chosen:
        number = int(group[one])
        places[number] = places.get(number, 0) + 1
        if places[number] <= most:
            kept.append(one)
    return np.array(kept, np.int64)

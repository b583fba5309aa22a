"""Paths of items: which items each occurrence has, and which occurrences have equal paths.

Items of a partition lie side by side, in order. A path is a run of them, so it is two numbers and never copied. Equal
paths are found in a table of open addressing, by a hash of their codes; a hash alone decides nothing: paths are
compared. Both take O(items of all paths).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.subkernels import subkernel

NO_WINDOW = -1

_FACTOR, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


@njit(cache=True)
def paths_around(
    codes: IntArray,
    spans: IntArray,
    last_spans: IntArray,
    offsets: IntArray,
    around: int,
    before: int,
    after: int,
    within: int,
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Find the path of each item of one code.

    Parameters
    ----------
    codes
        int64[n]: what each item is called.
    spans, last_spans
        int64[n]: what the window measures, times or ranks, of the first and of the last event of each item; never falls
        inside a partition.
    offsets
        int64[p + 1]: partition i has the items ``offsets[i]:offsets[i + 1]``.
    around
        The code.
    before, after
        Items before and behind it, at most.
    within
        They are less than this away from it; `NO_WINDOW`: nothing limits it.

    Returns
    -------
    int64[m] four times
        The partition of each, its middle, the first item of its path and one behind the last.
    """
    count = 0
    for item in range(len(codes)):
        count += codes[item] == around
    partitions, middles = np.empty(count, np.int64), np.empty(count, np.int64)
    begins, ends = np.empty(count, np.int64), np.empty(count, np.int64)
    found = 0
    for partition in range(len(offsets) - 1):
        low, high = offsets[partition], offsets[partition + 1]
        for middle in range(low, high):
            if codes[middle] != around:
                continue
            begin, end = max(low, middle - before), min(high, middle + after + 1)
            if within >= 0:
                while spans[middle] - last_spans[begin] >= within:
                    begin += 1
                while spans[end - 1] - last_spans[middle] >= within:
                    end -= 1
            partitions[found], middles[found], begins[found], ends[found] = partition, middle, begin, end
            found += 1
    return partitions, middles, begins, ends


@njit(cache=True)
def whole_paths(spans: IntArray, offsets: IntArray, within: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Find the path of each partition that has items: all of them, or those of a window behind the first.

    Parameters and what is returned are as of `paths_around`; the middle is the first item.
    """
    count = len(offsets) - 1
    partitions, begins, ends = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    found = 0
    for partition in range(count):
        begin, end = offsets[partition], offsets[partition + 1]
        if begin == end:
            continue
        if within >= 0:
            last = begin + 1
            while last < end and spans[last] - spans[begin] < within:
                last += 1
            end = last
        partitions[found], begins[found], ends[found] = partition, begin, end
        found += 1
    return partitions[:found].copy(), begins[:found].copy(), begins[:found].copy(), ends[:found].copy()


@njit(cache=True)
def equal_paths(codes: IntArray, groups: IntArray, begins: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
    """Number the different paths of m occurrences.

    Parameters
    ----------
    codes
        int64[n]: what each item is called.
    groups
        int64[m]: paths of different groups differ.
    begins, ends
        int64[m]: occurrence i has the items ``begins[i]:ends[i]``.

    Returns
    -------
    int64[m]
        The number of each occurrence's path, from 0 in the order in which they first stand.
    int64[paths]
        The first occurrence of each.
    """
    count = len(begins)
    size = 16
    while size < 2 * count:
        size *= 2
    table, hashes = np.full(size, -1, np.int64), np.empty(size, np.uint64)
    numbers, firsts, used = np.empty(count, np.int64), np.empty(count, np.int64), 0
    for occurrence in range(count):
        hashed = _hash(codes, groups[occurrence], begins[occurrence], ends[occurrence])
        place = np.int64(hashed & np.uint64(size - 1))
        # The table is half empty at least, so an empty place comes soon. Whole hashes of different paths hardly ever
        # agree, so paths, which lie elsewhere in memory, are read almost only where they are equal.
        while table[place] >= 0 and not (
            hashes[place] == hashed and _same(codes, groups, begins, ends, firsts[table[place]], occurrence)
        ):
            place = (place + 1) & (size - 1)
        if table[place] < 0:
            table[place], hashes[place] = used, hashed
            firsts[used] = occurrence
            used += 1
        numbers[occurrence] = table[place]
    return numbers, firsts[:used].copy()


@subkernel
def _hash(codes: IntArray, group: int, begin: int, end: int) -> np.uint64:
    hashed = np.uint64(group + 1) * _FACTOR
    for item in range(begin, end):
        hashed = (hashed ^ (hashed >> _HALF) ^ np.uint64(codes[item] + 1)) * _FACTOR
    return hashed ^ (hashed >> _HALF)


@subkernel
def _same(codes: IntArray, groups: IntArray, begins: IntArray, ends: IntArray, one: int, other: int) -> bool:
    """Whether two occurrences have equal paths."""
    length = ends[one] - begins[one]
    if groups[one] != groups[other] or ends[other] - begins[other] != length:
        return False
    item = 0
    while item < length and codes[begins[one] + item] == codes[begins[other] + item]:
        item += 1
    return item == length


@njit(cache=True)
def count_partitions(numbers: IntArray, partitions: IntArray, count: int) -> IntArray:
    """int64[count]: in how many partitions each path occurs; occurrences of one partition stand side by side."""
    last, found = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    for occurrence in range(len(numbers)):
        path = numbers[occurrence]
        if last[path] != partitions[occurrence]:
            last[path] = partitions[occurrence]
            found[path] += 1
    return found

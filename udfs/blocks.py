"""Blocks of positions: the partitions of `events`, and so the least that a scan can skip."""

from __future__ import annotations

from collections.abc import Iterable

BLOCK_BITS = 17
"""A block is 2^17 positions: files of a few megabytes. Where candidates are rare, an exact answer reads a block for
each; ones of 2^20 made it read nearly all of a stream of 10^8 events for a hundred candidates."""

SPAN_BLOCKS = 8
"""So many blocks are one span. What lies by key is merged into a file for each span that is full: of 10^7 events of
10^5 keys, a key's are then ten to a file instead of one or two, and half as long to read."""


def block_of(position: int) -> int:
    """Return the block that holds a position, which counts from 1."""
    return (position - 1) >> BLOCK_BITS


def positions_in(blocks: Iterable[int]) -> list[tuple[int, int]]:
    """Return the ranges of positions, both ends included, that ascending blocks hold; of neighbours one."""
    found: list[tuple[int, int]] = []
    for block in blocks:
        first, last = (block << BLOCK_BITS) + 1, (block + 1) << BLOCK_BITS
        if found and found[-1][1] + 1 == first:
            first = found.pop()[0]
        found.append((first, last))
    return found

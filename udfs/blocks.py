"""Blocks of positions: the partitions of `events`, and so the least that a scan can skip."""

from __future__ import annotations

BLOCK_BITS = 17
"""A block is 2^17 positions: files of a few megabytes. Where candidates are rare, an exact answer reads a block for
each; ones of 2^20 made it read nearly all of a stream of 10^8 events for a hundred candidates."""


def block_of(position: int) -> int:
    """Return the block that holds a position, which counts from 1."""
    return (position - 1) >> BLOCK_BITS

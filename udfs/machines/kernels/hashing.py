"""Hash tables of the numbers of instances or groups: open addressing with linear probing, deletion by shifting back."""

from __future__ import annotations

import numpy as np

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.subkernels import kernel

EMPTY = -1
MOST = (1 << 63) - 1
"""As a mask: makes a hash not negative."""
_FIRST, _SECOND, _STEP = np.int64(-49064778989728563), np.int64(-4265267296055464877), np.int64(-7046029254386353131)


@kernel
def mixed(digest: int, value: int) -> int:
    """A hash with one more value in it."""
    found = np.int64(digest) ^ (np.int64(value) + _STEP)
    found = (found ^ ((found >> 33) & 0x7FFFFFFF)) * _FIRST
    found = (found ^ ((found >> 33) & 0x7FFFFFFF)) * _SECOND
    return int(found ^ ((found >> 33) & 0x7FFFFFFF))


@kernel
def insert(table: IntArray, digest: int, number: int) -> None:
    """Enter a number; the table is never full."""
    last = len(table) - 1
    at = digest & last
    while table[at] != EMPTY:
        at = (at + 1) & last
    table[at] = number


@kernel
def delete(table: IntArray, digests: IntArray, number: int) -> None:
    """Take out a number that the table has."""
    last = len(table) - 1
    at = digests[number] & last
    while table[at] != number:
        at = (at + 1) & last
    probe = at
    while True:
        table[at] = EMPTY
        while True:
            probe = (probe + 1) & last
            if table[probe] == EMPTY:
                return
            home = digests[table[probe]] & last
            # It may move to the hole unless its home lies behind the hole.
            between = at < home <= probe if at <= probe else at < home or home <= probe
            if not between:
                break
        table[at] = table[probe]
        at = probe

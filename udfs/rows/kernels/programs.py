"""A compiled pattern as kernels take it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.arrays import BoolArray, IntArray

MATCH, SPLIT, AT_START, AT_END, ACCEPT = range(5)
"""Operations: take a row of a variable; go on at one of two places; ``^``; ``$``; the match is complete."""


class Program(NamedTuple):
    """A program of `p` instructions; the first one is where it begins.

    Attributes
    ----------
    operation
        int64[p]: MATCH, SPLIT, AT_START, AT_END or ACCEPT.
    variable
        int64[p]: of MATCH, the number of its variable, else -1.
    excluded
        bool[p]: of MATCH, whether it stands in an exclusion.
    following
        int64[p]: the next instruction; of SPLIT, the preferred one.
    other
        int64[p]: of SPLIT, the other one, else -1.
    ahead
        uint64[p, w]: the variables one of which the next row must be of, as bits.
    empty
        bool[p]: whether the match may be complete without a further row.
    slot
        int64[p]: where it is noted that the pattern failed from here at a row, else -1. Places that a single one leads
        to have none, nor have those that `group` has.
    slots
        How many there are.
    group
        int64[p]: of a place that several lead to and that a condition which looks back may follow: which conditions,
        as a number of `Conditions`; else -1.
    deadline_begin, deadline
        int64[p + 1], int64[d, 3]: for each place, columns that may not be too far above their value in a row taken
        before, as a variable that must follow then has no row: integer column, row (`Conditions.row`), and the most.
    """

    operation: IntArray
    variable: IntArray
    excluded: BoolArray
    following: IntArray
    other: IntArray
    ahead: NDArray[np.uint64]
    empty: BoolArray
    slot: IntArray
    slots: int
    group: IntArray
    deadline_begin: IntArray
    deadline: IntArray

"""Matches as runs of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.arrays import BoolArray, IntArray


@dataclass(frozen=True)
class Matches:
    """Matches of partitions, in order; rows are numbered over all partitions.

    Attributes
    ----------
    starts, numbers
        int64[m]: the first row of each match, or of an empty one the row that it begins before; its MATCH_NUMBER.
    offsets
        int64[m + 1]: where the rows of each match begin in `rows`, `variables` and `excluded`.
    rows
        int64[r]: the rows of all matches, match by match; a row may be of several.
    variables
        int32[r]: the number of each row's variable in `Clause.variables`, its CLASSIFIER.
    excluded
        bool[r]: whether it stands in ``{- -}``: ALL ROWS PER MATCH leaves it out.
    unmatched
        int64[u]: the rows of WITH UNMATCHED ROWS that are of no match and before which no empty one begins.
    steps
        Steps of the search.
    """

    starts: IntArray
    numbers: IntArray
    offsets: IntArray
    rows: IntArray
    variables: NDArray[np.int32]
    excluded: BoolArray
    unmatched: IntArray
    steps: int

    @property
    def lengths(self) -> IntArray:
        """int64[m]: rows of each match; 0 for an empty one."""
        return np.diff(self.offsets)

"""Which row of a match a term looks at."""

from __future__ import annotations

from dataclasses import dataclass

CURRENT, FIRST, LAST = range(3)
"""Which row is looked at: the one asked about, or the n-th of a set from its begin or its end."""


@dataclass(frozen=True)
class Seen:
    """A row that is looked at.

    Attributes
    ----------
    kind
        CURRENT, the row asked about; FIRST or LAST, of the rows taken that are of some variables, this row included.
    variables
        These variables; none: all, as for a column without a variable.
    offset
        So many rows of theirs behind the first one, or before the last one.
    shift
        So many rows of the partition on from there: -1 for PREV, 1 for NEXT.
    """

    kind: int = CURRENT
    variables: tuple[str, ...] = ()
    offset: int = 0
    shift: int = 0

"""How the trends of an answer are dealt out: which numbers of which part each task lists (SPEC section 5, extraction).

A part is dealt out by the numbers of its trends, whatever they have in common, so that a start that owns all trends
keeps all cores at work.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from patternlake.udfs.digits import shown
from patternlake.udfs.equal_shares import equal_shares
from patternlake.udfs.errors import ArgumentError

LEAST_SHARE = 50_000
"""Trends that are worth a task of their own, which builds the graph of its part again."""
MOST_SHARE = 1_000_000
"""Trends that one task lists at once, at most: their chunks are one value of a row until they are spread out."""
SHARES = 8
"""Into how many shares an answer of middle size is dealt."""


@dataclass(frozen=True)
class Cell:
    """A partition and window of a part, with the number of its trends."""

    part: int
    key: str | None
    window: int
    trends: int


@dataclass(frozen=True)
class Share:
    """The trends number `low` to `high` (exclusive) of a part."""

    part: int
    low: int
    high: int


def shares(
    cells: Sequence[Cell], max_trends: int, *, truncate: bool, allowed: Collection[int] | None = None
) -> tuple[list[Share], bool]:
    """Deal out the trends of cells.

    Parameters
    ----------
    cells
        Of all parts; those of one part in the order in which it numbers its trends.
    max_trends, truncate
        How many trends may be listed, and whether the first ones are wanted where there are more.
    allowed
        Windows to list; None: all.

    Returns
    -------
    The shares, and whether there are more trends than they list.

    Raises
    ------
    ArgumentError
        There are more than `max_trends`, and they are not to be truncated; names the number, or its size.
    """
    wanted = [cell for cell in cells if cell.trends and (allowed is None or cell.window in allowed)]
    total = sum(cell.trends for cell in wanted)
    taken = {id(cell): cell.trends for cell in wanted}
    if total > max_trends:
        if not truncate:
            raise ArgumentError(
                f"the query has {shown(total)} trends, more than max_trends = {max_trends}; raise max_trends, narrow "
                "the key or the times, ask cet_count for the numbers alone, or ask with truncate => true for the first "
                "rows"
            )
        left = max_trends
        for cell in sorted(wanted, key=lambda cell: (cell.key is not None, cell.key or "", cell.window)):
            taken[id(cell)] = min(left, cell.trends)
            left -= taken[id(cell)]
    ranges: list[Share] = []
    begin: dict[int, int] = {}
    for cell in cells:
        low = begin.get(cell.part, 0)
        begin[cell.part] = low + cell.trends
        high = low + taken.get(id(cell), 0)
        if low == high:
            continue
        if ranges and ranges[-1].part == cell.part and ranges[-1].high == low:
            ranges[-1] = Share(cell.part, ranges[-1].low, high)
        else:
            ranges.append(Share(cell.part, low, high))
    size = min(MOST_SHARE, max(LEAST_SHARE, -(-min(total, max_trends) // SHARES)))
    return [piece for share in ranges for piece in _pieces(share, size)], total > max_trends


def _pieces(share: Share, size: int) -> list[Share]:
    """A range in as many equal pieces as needed for none to be larger than `size`."""
    length = share.high - share.low
    equal = equal_shares(length, -(-length // size))
    return [Share(share.part, share.low + low, share.low + high) for low, high in equal]

"""How the trends of an answer are dealt out: which numbers of which part each task lists (SPEC section 5, extraction).

A part is dealt out by the numbers of its trends, whatever they have in common, so that a start that owns all trends
keeps all cores at work.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate

from patternlake.udfs.digits import show_number
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
    cells: Sequence[Cell],
    max_trends: int,
    *,
    truncate: bool,
    allowed: Collection[int] | None = None,
    passed: int = 0,
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
    passed
        So many trends, the first by key, window and positions, are passed over.

    Returns
    -------
    The shares, and whether there are more trends behind those that they list.

    Raises
    ------
    ArgumentError
        There are more than `max_trends`, and they are not to be truncated; names the number, or its size.
    """
    wanted = _in_order(cells, allowed)
    total = sum(cell.trends for cell in wanted)
    left = max(0, total - passed)
    if left > max_trends and not truncate:
        of_them = f", {show_number(left)} of them from from_trend = {passed + 1} on" if passed else ""
        raise ArgumentError(
            f"the query has {show_number(total)} trends{of_them}, more than max_trends = {max_trends}; raise "
            "max_trends, narrow the key or the times, ask cet_count for the numbers alone, or ask with "
            "truncate => true for the first rows"
        )
    listed = min(left, max_trends)
    taken: dict[int, tuple[int, int]] = {}
    before = 0
    for cell in wanted:
        skipped = min(cell.trends, max(0, passed - before))
        until = min(cell.trends, max(0, passed + listed - before))
        taken[id(cell)] = skipped, max(skipped, until)
        before += cell.trends
    ranges: list[Share] = []
    begin: dict[int, int] = {}
    for cell in cells:
        first = begin.get(cell.part, 0)
        begin[cell.part] = first + cell.trends
        low, high = (first + number for number in taken.get(id(cell), (0, 0)))
        if low == high:
            continue
        if ranges and ranges[-1].part == cell.part and ranges[-1].high == low:
            ranges[-1] = Share(cell.part, ranges[-1].low, high)
        else:
            ranges.append(Share(cell.part, low, high))
    size = min(MOST_SHARE, max(LEAST_SHARE, -(-listed // SHARES)))
    return [piece for share in ranges for piece in _pieces(share, size)], left > max_trends


def picks(
    cells: Sequence[Cell], count: int, seed: str, allowed: Collection[int] | None = None
) -> tuple[dict[int, list[int]], bool]:
    """Numbers of trends that are drawn at random, each set of so many as likely as any other.

    Parameters
    ----------
    cells, allowed
        As of `shares`.
    count
        How many; all, where there are no more.
    seed
        The same numbers are drawn of the same cells, whatever parts these are in.

    Returns
    -------
    By part, the numbers of its trends, ascending; and whether there are more trends.

    Notes
    -----
    Floyd's algorithm: exact for totals of any size, in `count` steps.
    """
    wanted = _in_order(cells, allowed)
    ends = list(accumulate(cell.trends for cell in wanted))
    total = ends[-1] if ends else 0
    draw = random.Random(seed)
    drawn: set[int] = set()
    for top in range(max(0, total - count), total):
        one = draw.randrange(top + 1)
        drawn.add(top if one in drawn else one)
    begin: dict[int, int] = {}
    first: dict[int, int] = {}
    for cell in cells:
        first[id(cell)] = begin.get(cell.part, 0)
        begin[cell.part] = first[id(cell)] + cell.trends
    found: dict[int, list[int]] = {}
    for number in sorted(drawn):
        at = bisect_right(ends, number)
        cell = wanted[at]
        found.setdefault(cell.part, []).append(first[id(cell)] + number - (ends[at] - cell.trends))
    return {part: sorted(numbers) for part, numbers in found.items()}, total > count


def _in_order(cells: Sequence[Cell], allowed: Collection[int] | None) -> list[Cell]:
    """Cells with trends that are to be listed, by key and window."""
    wanted = [cell for cell in cells if cell.trends and (allowed is None or cell.window in allowed)]
    return sorted(wanted, key=lambda cell: (cell.key is not None, cell.key or "", cell.window))


def _pieces(share: Share, size: int) -> list[Share]:
    """A range in as many equal pieces as needed for none to be larger than `size`."""
    length = share.high - share.low
    equal = equal_shares(length, -(-length // size))
    return [Share(share.part, share.low + low, share.low + high) for low, high in equal]

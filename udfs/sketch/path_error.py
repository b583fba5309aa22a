"""How often filters one above the other err together: they hash the same tokens, so more often than each by itself.

Source: thesis 4.1 and 4.4.1, which take the filters of a tree for independent. Departure: they are not. A parent has
the tokens of its children, a token has the same hashes at each level, and hash h sets the bit ⌊h · m⌋ of m. So where a
child's bit is set by one of its tokens, the parent's bit is likely set by the same token.

Hashes are points of [0, 1) here, and a bit is the interval of the points that set it. A filter claims a token if, for
each of its k hashes h, some hash of some token of the node lies in the interval around h. Points of different tokens
are independent (Poisson's process, whose density is the filter's own), and the tokens of the nodes of a path are
nested. Where intervals of different width overlap only in part they are taken to overlap as far as they can, which
makes them err together more often: the result is an upper bound of this model.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

_FULL = 1.0 - 1e-12
"""A filter of more ones than this has as many tokens as one likes."""


def chance_of_paths(bits: Sequence[int], hashes: Sequence[int], densities: Sequence[float]) -> NDArray[np.float64]:
    """How often all filters of a path claim a token that none of their nodes holds.

    Parameters
    ----------
    bits, hashes, densities
        Of each filter, from the lowest level upwards: its size m, its hashes k, and the share of its bits that are set.

    Returns
    -------
    float64[levels]
        For paths from the lowest filter to each one: the first is ``densities[0] ** hashes[0]``, and none is more than
        the one before.

    Examples
    --------
    Two levels of half-full filters err together more often than 2^-8 of the time, less often than each:

    >>> chance_of_paths([64, 128], [4, 4], [0.5, 0.5]).round(4).tolist()
    [0.0625, 0.0156]
    """
    filled = np.minimum(np.asarray(densities, np.float64), _FULL)
    # How many tokens fill a filter so far; a parent has no fewer than its child.
    tokens = np.maximum.accumulate(-np.log1p(-filled) * np.asarray(bits) / np.asarray(hashes))
    gained = np.diff(tokens, prepend=0.0)
    chances = [float(np.asarray(densities, np.float64)[0] ** hashes[0])]
    for top in range(1, len(bits)):
        chance = 1.0
        for number in range(max(hashes[: top + 1])):
            asked = tuple(level for level in range(top + 1) if hashes[level] > number)
            areas, signs = _areas(tuple(bits[: top + 1]), tuple(hashes[: top + 1]), asked)
            chance *= min(1.0, max(0.0, float(signs @ np.exp(-areas @ gained[: top + 1]))))
        chances.append(min(chance, chances[-1]))
    return np.array(chances)


@lru_cache(maxsize=512)
def _areas(
    bits: tuple[int, ...], hashes: tuple[int, ...], asked: tuple[int, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What inclusion and exclusion over the empty ones among some levels needs.

    Returns
    -------
    (float64[subsets, levels], float64[subsets])
        For each set of levels whose intervals are empty, how many points a token that is new at each level (in it and
        all above) has in them on average; and the sign of the set.
    """
    areas, signs = [], []
    for size in range(len(asked) + 1):
        for empty in combinations(asked, size):
            areas.append(
                [_union([(1 / bits[at], hashes[at]) for at in empty if at >= new]) for new in range(len(bits))]
            )
            signs.append(-1.0 if size % 2 else 1.0)
    return np.array(areas), np.array(signs)


def _union(rectangles: list[tuple[float, int]]) -> float:
    """The area that rectangles (width, height) with a common corner cover."""
    area, height = 0.0, 0
    falling = sorted(rectangles, reverse=True)
    for number, (width, own) in enumerate(falling):
        height = max(height, own)
        narrower = falling[number + 1][0] if number + 1 < len(falling) else 0.0
        area += (width - narrower) * height
    return area

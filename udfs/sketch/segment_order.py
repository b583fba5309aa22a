"""Which segments can take part in a match, by what their tops claim: the rest of the tree need not be read.

Source: thesis 4.3.2: where names lie in different subtrees, their order is that of the subtrees, and "no" may be said
at once. A top claims a name wherever one of its nodes does, so that a segment which is left out here has no place in
any match, on nodes or on events: one segment may hold all operands. A departure: "yes" is never said by tops, which err
often; SPEC section 2 asks for leaves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from patternlake.udfs.arrays import BoolArray
from patternlake.udfs.sketch.query import Alternative, SketchPattern


def taking_part(pattern: SketchPattern, claims: BoolArray) -> BoolArray:
    """The segments whose nodes can be in a match, or between those of one.

    Parameters
    ----------
    pattern
        The pattern.
    claims
        bool[n, t]: which names of ``pattern.names`` the tops of n segments claim, in the order of the stream.

    Returns
    -------
    bool[n]; all False where there is no match.
    """
    nothing = np.zeros(len(claims), np.bool_)
    slots = [_claimed(pattern, slot.alternatives, claims) for slot in pattern.slots]
    if not len(claims) or not all(slot.any() for slot in slots):
        return nothing
    blocks = [slots[begin:end] for begin, end in zip(pattern.blocks, pattern.blocks[1:], strict=False)]
    earliest, latest = [0], [len(claims) - 1]
    for block in blocks:
        # One segment may hold all: their order inside of it is not known here.
        firsts = [_first(slot, earliest[-1]) for slot in block]
        earliest.append(max(firsts))
    for block in reversed(blocks):
        lasts = [_last(slot, latest[-1]) for slot in block]
        latest.append(min(lasts))
    latest.reverse()
    if earliest[-1] >= len(claims) or latest[0] < 0:
        return nothing
    found = nothing
    number = np.arange(len(claims))
    for place, block in enumerate(blocks):
        inside = (number >= earliest[place]) & (number <= latest[place + 1])
        for slot in block:
            found = found | (slot & inside)
    for gap in pattern.gaps:
        # What is denied denies wherever it stands between two operands.
        found = found | _claimed(pattern, gap, claims)
    return found


def _claimed(pattern: SketchPattern, alternatives: Sequence[Alternative], claims: BoolArray) -> BoolArray:
    """bool[n]: the segments that claim any of some names."""
    admitted = [pattern.names_of(alternative) for alternative in alternatives]
    if None in admitted:
        return np.ones(len(claims), np.bool_)
    columns = [pattern.names.index(name) for names in admitted for name in names or ()]
    return np.asarray(claims[:, columns].any(axis=1), np.bool_)


def _first(flags: BoolArray, begin: int) -> int:
    """The first flag that is set from a place on; behind the last one for none."""
    places = np.flatnonzero(flags[begin:])
    return begin + int(places[0]) if len(places) else len(flags)


def _last(flags: BoolArray, end: int) -> int:
    """The last flag that is set up to a place; -1 for none."""
    places = np.flatnonzero(flags[: end + 1]) if end >= 0 else np.zeros(0, np.int64)
    return int(places[-1]) if len(places) else -1

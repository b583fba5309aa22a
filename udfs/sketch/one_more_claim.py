"""What one more claim of a name does to an answer: the pattern is matched again as if some nodes had made it.

Source: SPEC section 2; no paper counts how many rows a false claim spoils. See `answer_error` for why these rows are
counted, and not those of the claims that are there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.limits import by_partition
from patternlake.udfs.sketch.kernels.hits import Hits, joined
from patternlake.udfs.sketch.kernels.matching import node_rows, search
from patternlake.udfs.sketch.request import SketchRequest

_DRAWS = 32
"""So many nodes of each name are tried."""
_TOGETHER = 16
"""Of so many claims of a name, one more is tried at a time: more of them together stand in each other's way."""
_NODES_AT_ONCE = 1 << 18
"""Nodes of all trials that are searched at once: some 20 MB."""


def effect_of_one_more(
    request: SketchRequest, hits: Hits, offsets: IntArray, keys: Sequence[str | None], name: int, claims: pa.Table
) -> tuple[float, float]:
    """How often any row rests on one more claim of a name, and how many do.

    Both are averages over the nodes that might have made the claim, and no less than what so few draws leave open.

    Parameters
    ----------
    request
        The request.
    hits, offsets, keys
        What `gathering.gather_hits` gives.
    name
        The name's place in the pattern's.
    claims
        Rows of `possible_claims.CLAIMS` of this name.
    """
    rng = np.random.default_rng((request.seed, name, len(hits)))
    weights = claims["expected"].to_numpy()
    drawn = claims.take(rng.choice(len(weights), _DRAWS, p=weights / weights.sum()))
    place_of = {key: place for place, key in enumerate(keys)} if request.every_key else {None: 0}
    place = np.array([place_of.get(key, -1) for key in drawn["key"].to_pylist()], np.int64)
    gained = []
    for key in np.unique(place).tolist():
        # A key that no node claims any name of is asked for as well.
        mine = hits.take(np.arange(offsets[key], offsets[key + 1]) if key >= 0 else np.zeros(0, np.int64))
        more = drawn.filter(pa.array(place == key))
        together = max(1, int(mine.present[:, name].sum()) // _TOGETHER)
        gained.append(rows_gained(request, mine, name, more, np.arange(more.num_rows) // together))
    counts = np.concatenate(gained).astype(np.float64)
    share, rows = (float(each.mean() + each.std() / math.sqrt(_DRAWS)) + 1.0 / _DRAWS for each in (counts > 0, counts))
    return min(share, 1.0), rows


def rows_gained(request: SketchRequest, hits: Hits, name: int, claims: pa.Table, trial: IntArray) -> IntArray:
    """How many rows rest on each of some nodes if they claim a name in addition to what nodes of one key claim.

    A row rests on the claim where it is all that makes the node one of its steps.

    Parameters
    ----------
    request, name
        As of `effect_of_one_more`.
    hits
        Nodes of one key.
    claims
        Rows of `possible_claims.CLAIMS` of this name and key.
    trial
        int64[claims], rising from 0: claims of one trial are made together, those of different ones apart.
    """
    pos_lo = claims["pos_lo"].to_numpy()
    nodes, which = np.unique(pos_lo, return_index=True)
    before = _with_nodes(hits, claims.take(which[~np.isin(nodes, hits.pos_lo)]))
    at = np.searchsorted(before.pos_lo, pos_lo)
    size = len(before)

    def run(first: int, last: int) -> IntArray:
        # Each trial is a copy of the nodes, and searched as a key of its own.
        copies = before.take(np.tile(np.arange(size), last - first))
        mine = (trial >= first) & (trial < last)
        claiming = np.zeros(len(copies), np.bool_)
        claiming[(trial[mine] - first) * size + at[mine]] = True
        held = copies.present.copy()
        copies.present[claiming, name] = True
        rows = node_rows(request.pattern, copies, np.arange(last - first + 1) * size)
        layout = request.pattern.layout(request.policy)
        cut = last - first <= 1
        _, _, steps = search(rows, layout, request.policy, request.after_match, request.max_matches, cut)
        rests = []
        for place, slot in enumerate(request.pattern.slots):
            taken = steps[:, place]
            choices = [request.pattern.names.index(choice.name) for choice in slot.alternatives]
            row = np.flatnonzero(claiming[taken] & ~held[taken][:, choices].any(axis=1))
            rests.append(np.stack([row, taken[row]], axis=1))
        # A row rests on a node once, however many of its steps the node is.
        pairs = np.unique(np.concatenate(rests), axis=0)
        of_node = np.bincount(pairs[:, 1], minlength=len(copies))
        return of_node[(trial[mine] - first) * size + at[mine]]

    trials = int(trial[-1]) + 1
    at_once = max(1, _NODES_AT_ONCE // max(1, size))
    parts = [
        part for first in range(0, trials, at_once) for part in by_partition(first, min(first + at_once, trials), run)
    ]
    return np.concatenate(parts)


def _with_nodes(hits: Hits, claims: pa.Table) -> Hits:
    """Nodes of one key with some more, which claim nothing, by position."""
    nothing = np.zeros((claims.num_rows, hits.present.shape[1]))
    places = {name: claims[name].to_numpy() for name in ("pos_lo", "pos_hi", "time_lo", "time_hi")}
    level = claims["level"].to_numpy().astype(np.int8)
    more = Hits(**places, level=level, present=nothing.astype(np.bool_), fp=nothing)
    every = joined(hits, more)
    return every.take(np.argsort(every.pos_lo, kind="stable"))

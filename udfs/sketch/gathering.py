"""From the hits of all rows of the tree to the nodes that an answer is about, by key and position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from patternlake.udfs.sketch.kernels.hits import Hits
from patternlake.udfs.sketch.request import SketchRequest

HITS_TYPE = pa.struct(
    [
        ("segment", pa.int64()),
        ("level", pa.int32()),
        ("confirmed", pa.bool_()),
        ("keys", pa.list_(pa.string())),
        ("key", pa.list_(pa.int32())),
        ("node", pa.list_(pa.int32())),
        ("pos_lo", pa.list_(pa.int64())),
        ("pos_hi", pa.list_(pa.int64())),
        ("time_lo", pa.list_(pa.int64())),
        ("time_hi", pa.list_(pa.int64())),
        ("present", pa.list_(pa.int64())),
        ("fp", pa.list_(pa.float64())),
    ]
)
"""Hits of one row: of one level of a segment.

`confirmed`: all nodes above them have been asked. `present` packs 62 names to a word, the words of one node side by
side; `fp` is that of one probe.
"""

_WORD = 62


def gather_hits(request: SketchRequest, found: pa.StructArray) -> tuple[Hits, NDArray[np.int64], list[str | None]]:
    """All hits of a question, an array of `HITS_TYPE`, sorted by (key, position).

    Returns
    -------
    The hits, int64[keys + 1] offsets of each key's hits, and the keys; one nameless key unless every key is asked for.
    """
    flat = found.filter(found.is_valid())
    counts = pa.compute.list_value_length(flat.field("pos_lo")).to_numpy(zero_copy_only=False).astype(np.int64)
    names, words = len(request.pattern.names), _words(request)
    pos_lo, pos_hi, time_lo, time_hi, words_of, fp, node = (
        _flat(flat, name) for name in ("pos_lo", "pos_hi", "time_lo", "time_hi", "present", "fp", "node")
    )
    level, segment = (
        np.repeat(flat.field(name).to_numpy(zero_copy_only=False), counts).astype(np.int64)
        for name in ("level", "segment")
    )
    key, keys = _keys(request, flat, counts)
    present = unpack(words_of.reshape(-1, words), names)
    confirmed = np.repeat(flat.field("confirmed").to_numpy(zero_copy_only=False).astype(np.bool_), counts)
    kept = _confirm(request, level, segment, node.astype(np.int64), key, confirmed, present)
    rate = 1.0 - (1.0 - fp) ** request.expressions
    hits = Hits(pos_lo, pos_hi, time_lo, time_hi, level.astype(np.int8), present, np.where(present, rate[:, None], 0.0))
    order = np.flatnonzero(kept)
    order = order[np.lexsort((pos_lo[order], key[order]))]
    return hits.take(order), np.searchsorted(key[order], np.arange(len(keys) + 1)), keys


def _keys(
    request: SketchRequest, rows: pa.StructArray, counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], list[str | None]]:
    """int64[n] number of each hit's key, and the keys in order, NULL first."""
    if not request.every_key:
        return np.zeros(int(counts.sum()), np.int64), [None]
    lists = rows.field("keys").to_pylist()
    keys = sorted({key for row in lists for key in row}, key=lambda key: (key is not None, key or ""))
    rank = {key: number for number, key in enumerate(keys)}
    first = np.concatenate([[0], np.cumsum([len(row) for row in lists])]).astype(np.int64)[:-1]
    ranks = np.array([rank[key] for row in lists for key in row], np.int64)
    inside = _flat(rows, "key").astype(np.int64)
    return ranks[inside + np.repeat(first, counts)] if len(ranks) else inside, keys


def _confirm(
    request: SketchRequest,
    level: NDArray[np.int64],
    segment: NDArray[np.int64],
    node: NDArray[np.int64],
    key: NDArray[np.int64],
    confirmed: NDArray[np.bool_],
    present: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Take from `present` what a node above denies; True for the nodes at the level that the answer is about."""
    floors = np.full(len(level), request.level, np.int64)
    for floor in request.floors:
        floors = np.where(segment < floor.before_segment, np.maximum(floors, floor.level or 0), floors)
    if not request.uniform:
        # One number for (key, segment, node), so that a parent is found by binary search.
        place = key * (int(segment.max(initial=0)) + 1) + segment
        for lower in range(request.height - 3, -1, -1):
            children, parents = np.flatnonzero((level == lower) & ~confirmed), np.flatnonzero(level == lower + 1)
            if len(children) == 0:
                continue
            width = request.fanout ** (request.height - 1 - lower)
            parent_of = place[children] * width + node[children] // request.fanout
            known = place[parents] * width + node[parents]
            order = np.argsort(known)
            parents, known = parents[order], known[order]
            at = np.minimum(np.searchsorted(known, parent_of), max(len(known) - 1, 0))
            found = known[at] == parent_of if len(known) else np.zeros(len(children), np.bool_)
            above = np.zeros((len(children), present.shape[1]), np.bool_)
            above[found] = present[parents[at[found]]] if len(known) else False
            present[children] &= above
    relevant = (level == floors) if not request.uniform else (level <= floors)
    return np.asarray(relevant & counts(request, present))


def counts(request: SketchRequest, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether a node matters: it may hold a name, or the pattern has a primitive that any event may be."""
    if any(admitted is None for admitted in request.pattern.admitted.values()):
        return np.ones(present.shape[:-1], np.bool_)
    return np.asarray(present.any(axis=-1))


def _words(request: SketchRequest) -> int:
    return max(1, -(-len(request.pattern.names) // _WORD))


def pack(present: NDArray[np.bool_]) -> NDArray[np.int64]:
    """int64[n, words] of bool[n, names]: 62 names to a word."""
    nodes, names = present.shape
    words = max(1, -(-names // _WORD))
    padded = np.zeros((nodes, words * _WORD), np.int64)
    padded[:, :names] = present
    weights = np.int64(1) << np.arange(_WORD, dtype=np.int64)
    return np.asarray(padded.reshape(nodes, words, _WORD) @ weights)


def unpack(packed: NDArray[np.int64], names: int) -> NDArray[np.bool_]:
    """What `pack` was given."""
    shifts = np.arange(_WORD, dtype=np.int64)
    bits = (packed[:, :, None] >> shifts) & 1
    return np.asarray(bits.reshape(len(packed), packed.shape[1] * _WORD)[:, :names] != 0)


def _flat(rows: pa.StructArray, name: str) -> NDArray[Any]:
    return np.asarray(rows.field(name).flatten().to_numpy(zero_copy_only=False))

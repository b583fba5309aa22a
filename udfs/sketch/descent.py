"""From the stored rows of the tree to the nodes that may hold a question's names: first the tops, then the nodes.

Source: thesis 4.3 (a walk from the top). Departure: the levels of a segment are tested side by side, each row by
itself, and a node counts if all nodes above it, up to the top, have the name as well. That is what a walk finds,
without bringing the rows of a segment together first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from patternlake.udfs.sketch.hashing import hash_keyed
from patternlake.udfs.sketch.hits import Hits
from patternlake.udfs.sketch.probe import false_positive_rate, probe
from patternlake.udfs.sketch.question import Question

TOP_TYPE = pa.struct([("hit", pa.bool_()), ("keys", pa.list_(pa.string()))])
"""Whether a segment may hold a name of the pattern, and for which keys, where every key is asked for."""

HITS_TYPE = pa.struct(
    [
        ("segment", pa.int64()),
        ("level", pa.int32()),
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

`present` packs 62 names to a word, the words of one node side by side; `fp` is that of one probe.
"""

_WORD = 62
_KEYS_AT_ONCE = 256


def top_hits(question: Question, rows: pa.StructArray) -> pa.Array:
    """Test the top rows of segments.

    Parameters
    ----------
    question
        The question.
    rows
        Struct array of top rows: ``k``, ``ones``, ``pos_lo``, ``pos_hi``, ``time_lo``, ``time_hi``, ``keys``, ``bits``.

    Returns
    -------
    Array of `TOP_TYPE`. A segment without a top node (`uniform` left it out as too dense) is always a hit.
    """
    hashes = None if question.every_key else question.hashes()
    return pa.array([_top_hit(question, row, hashes) for row in _rows(rows)], TOP_TYPE)


def node_hits(question: Question, segments: NDArray[np.int64], rows: pa.StructArray, keys: pa.ListArray) -> pa.Array:
    """Test the nodes of rows at the level that the question asks for, and above it.

    Parameters
    ----------
    question
        The question.
    segments
        int64[r], segment of each row.
    rows
        Struct array as for `top_hits`, and ``level``, ``node``, ``topmost``.
    keys
        For each row the keys to test, where every key is asked for.

    Returns
    -------
    Array of `HITS_TYPE`, NULL for a row without hits.
    """
    hashes = None if question.every_key else question.hashes()
    return pa.array(
        [
            _row_hits(question, int(segment), row, hashes, key_list)
            for segment, row, key_list in zip(segments, _rows(rows), keys.to_pylist(), strict=True)
        ],
        HITS_TYPE,
    )


def gathered(question: Question, found: pa.ListArray) -> tuple[Hits, NDArray[np.int64], list[str | None]]:
    """All hits of a question, sorted by (key, position).

    Returns
    -------
    The hits, int64[keys + 1] offsets of each key's hits, and the keys; one nameless key unless every key is asked for.
    """
    flat = found.flatten()
    flat = flat.filter(flat.is_valid())
    counts = pa.compute.list_value_length(flat.field("pos_lo")).to_numpy(zero_copy_only=False).astype(np.int64)
    names, words = len(question.pattern.names), _words(question)
    pos_lo, pos_hi, time_lo, time_hi, packed, fp, node = (
        _flat(flat, name) for name in ("pos_lo", "pos_hi", "time_lo", "time_hi", "present", "fp", "node")
    )
    level, segment = (
        np.repeat(flat.field(name).to_numpy(zero_copy_only=False), counts).astype(np.int64)
        for name in ("level", "segment")
    )
    key, keys = _keys(question, flat, counts)
    present = _unpacked(packed.reshape(-1, words), names)
    kept = _confirmed(question, level, segment, node.astype(np.int64), key, present)
    rate = 1.0 - (1.0 - fp) ** question.expressions
    hits = Hits(pos_lo, pos_hi, time_lo, time_hi, level.astype(np.int8), present, np.where(present, rate[:, None], 0.0))
    order = np.flatnonzero(kept)
    order = order[np.lexsort((pos_lo[order], key[order]))]
    return hits.take(order), np.searchsorted(key[order], np.arange(len(keys) + 1)), keys


def _keys(
    question: Question, rows: pa.StructArray, counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], list[str | None]]:
    """int64[n] number of each hit's key, and the keys in order, NULL first."""
    if not question.every_key:
        return np.zeros(int(counts.sum()), np.int64), [None]
    lists = rows.field("keys").to_pylist()
    keys = sorted({key for row in lists for key in row}, key=lambda key: (key is not None, key or ""))
    rank = {key: number for number, key in enumerate(keys)}
    first = np.concatenate([[0], np.cumsum([len(row) for row in lists])]).astype(np.int64)[:-1]
    ranks = np.array([rank[key] for row in lists for key in row], np.int64)
    inside = _flat(rows, "key").astype(np.int64)
    return ranks[inside + np.repeat(first, counts)] if len(ranks) else inside, keys


def _confirmed(
    question: Question,
    level: NDArray[np.int64],
    segment: NDArray[np.int64],
    node: NDArray[np.int64],
    key: NDArray[np.int64],
    present: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Take from `present` what a node above denies; True for the nodes at the level that the answer is about."""
    floors = np.full(len(level), question.level, np.int64)
    for floor in question.floors:
        floors = np.where(segment < floor.before_segment, np.maximum(floors, floor.level or 0), floors)
    if not question.uniform:
        # One number for (key, segment, node), so that a parent is found by binary search.
        place = key * (int(segment.max(initial=0)) + 1) + segment
        for lower in range(question.height - 3, -1, -1):
            children, parents = np.flatnonzero(level == lower), np.flatnonzero(level == lower + 1)
            if len(children) == 0:
                continue
            width = question.fanout ** (question.height - 1 - lower)
            parent_of = place[children] * width + node[children] // question.fanout
            known = place[parents] * width + node[parents]
            order = np.argsort(known)
            parents, known = parents[order], known[order]
            at = np.minimum(np.searchsorted(known, parent_of), max(len(known) - 1, 0))
            found = known[at] == parent_of if len(known) else np.zeros(len(children), np.bool_)
            above = np.zeros((len(children), present.shape[1]), np.bool_)
            above[found] = present[parents[at[found]]] if len(known) else False
            present[children] &= above
    relevant = (level == floors) if not question.uniform else (level <= floors)
    return np.asarray(relevant & _counts(question, present))


def _rows(rows: pa.StructArray) -> Iterator[dict[str, Any]]:
    """Each row as numpy views on the Arrow buffers."""
    names = [field.name for field in rows.type]
    columns = {name: rows.field(name) for name in names}
    for index in range(len(rows)):
        row: dict[str, Any] = {}
        for name in names:
            value = columns[name][index]
            if name == "keys":
                row[name] = value.values
            elif pa.types.is_list(value.type):
                row[name] = value.values.to_numpy(zero_copy_only=False)
            else:
                row[name] = value.as_buffer() if name == "bits" else value.as_py()
        row["bits"] = (
            np.frombuffer(row["bits"], np.uint8).reshape(len(row["pos_lo"]), -1) if len(row["pos_lo"]) else None
        )
        yield row


def _top_hit(question: Question, row: dict[str, Any], hashes: NDArray[np.uint64] | None) -> dict[str, Any]:
    keys = row["keys"] if question.every_key else None
    if row["bits"] is None:
        return {"hit": True, "keys": keys.to_pylist() if keys is not None else None}
    if not _inside(question, row).any():
        return {"hit": False, "keys": None}
    wanted = _operands(question)
    if not question.pattern.names or not wanted.all_names:
        return {"hit": True, "keys": keys.to_pylist() if keys is not None else None}
    if keys is None:
        assert hashes is not None
        return {"hit": bool(_present(question, row, hashes)[:, wanted.columns].any()), "keys": None}
    found: list[str | None] = []
    for begin in range(0, len(keys), _KEYS_AT_ONCE * 16):
        part = keys.slice(begin, _KEYS_AT_ONCE * 16)
        answers = _present_by_key(question, row, part)[:, :, wanted.columns].any(axis=(0, 2))
        found += part.filter(pa.array(answers)).to_pylist()
    return {"hit": bool(found), "keys": found}


def _row_hits(
    question: Question,
    segment: int,
    row: dict[str, Any],
    hashes: NDArray[np.uint64] | None,
    keys: list[str | None] | None,
) -> dict[str, Any] | None:
    if row["bits"] is None:
        return None
    wanted = max(question.level, question.floor(segment))
    if row["level"] > wanted and question.uniform:
        # A child's bits are among its parent's, so that a parent can't contradict it.
        return None
    asked = _inside(question, row)
    if row["level"] < wanted:
        asked &= row["topmost"]
    if not asked.any():
        return None
    nodes = np.flatnonzero(asked)
    row = {**row, "bits": row["bits"][nodes]}
    if not question.every_key:
        assert hashes is not None
        present = _present(question, row, hashes)
        hit, key = np.flatnonzero(_counts(question, present)), np.zeros(0, np.int32)
        present = present[hit]
    else:
        parts = [_key_hits(question, row, begin, keys or []) for begin in range(0, len(keys or []), _KEYS_AT_ONCE)]
        if not parts:
            return None
        hit, key, present = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    if len(hit) == 0:
        return None
    nodes = nodes[hit]
    return {
        "segment": segment,
        "level": row["level"],
        "keys": keys if question.every_key else None,
        "key": key,
        **{name: row[name][nodes] for name in ("node", "pos_lo", "pos_hi", "time_lo", "time_hi")},
        "present": _packed(present).ravel(),
        "fp": false_positive_rate(row["ones"][nodes], row["bits"].shape[1] * 8, row["k"]),
    }


def _key_hits(
    question: Question, row: dict[str, Any], begin: int, keys: Sequence[str | None]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]:
    part = keys[begin : begin + _KEYS_AT_ONCE]
    answers = _present_by_key(question, row, pa.array(part, pa.string())).transpose(1, 0, 2)
    number, node = np.nonzero(_counts(question, answers))
    return node, (number + begin).astype(np.int32), answers[number, node]


def _counts(question: Question, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether a node matters: it may hold a name, or the pattern has a primitive that any event may be."""
    if any(admitted is None for admitted in question.pattern.admitted.values()):
        return np.ones(present.shape[:-1], np.bool_)
    return np.asarray(present.any(axis=-1))


def _inside(question: Question, row: dict[str, Any]) -> NDArray[np.bool_]:
    """bool[c]: nodes that the question's bounds of position and time touch."""
    return question.window.of_intervals(row["pos_lo"], row["pos_hi"], row["time_lo"], row["time_hi"])


class _Wanted:
    """Columns of the names that operands (not negations) ask for; `all_names` unless an operand may be any event."""

    def __init__(self, question: Question) -> None:
        wanted: set[str] = set()
        self.all_names = True
        for slot in question.pattern.slots:
            for alternative in slot.alternatives:
                names = question.pattern.names_of(alternative)
                if names is None:
                    self.all_names = False
                else:
                    wanted |= names
        self.columns = np.array([name in wanted for name in question.pattern.names], np.bool_)


def _operands(question: Question) -> _Wanted:
    return _Wanted(question)


def _present(question: Question, row: dict[str, Any], hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """bool[c, names]: any of the token expressions may have the name's value in the node."""
    answers = probe(np.ascontiguousarray(row["bits"]), row["k"], hashes)
    return np.asarray(answers.reshape(len(answers), -1, question.expressions).any(axis=2))


def _present_by_key(question: Question, row: dict[str, Any], keys: pa.StringArray) -> NDArray[np.bool_]:
    """bool[c, keys, names]."""
    names = question.pattern.names
    known = keys.drop_null()
    codes = np.full(len(keys), -1, np.int32)
    codes[np.asarray(keys.is_valid())] = np.arange(len(known), dtype=np.int32)
    pairs_key = np.repeat(codes, len(names))
    pairs_name = np.tile(np.arange(len(names), dtype=np.int32), len(keys))
    answers = np.zeros((len(row["bits"]), len(keys) * len(names)), np.bool_)
    for expression in range(question.expressions):
        hashes = hash_keyed(known, pa.array(names, pa.string()), pairs_key, pairs_name, expression, question.seed)
        answers |= probe(np.ascontiguousarray(row["bits"]), row["k"], hashes)
    return answers.reshape(len(row["bits"]), len(keys), len(names))


def _words(question: Question) -> int:
    return max(1, -(-len(question.pattern.names) // _WORD))


def _packed(present: NDArray[np.bool_]) -> NDArray[np.int64]:
    nodes, names = present.shape
    words = max(1, -(-names // _WORD))
    padded = np.zeros((nodes, words * _WORD), np.int64)
    padded[:, :names] = present
    weights = np.int64(1) << np.arange(_WORD, dtype=np.int64)
    return np.asarray(padded.reshape(nodes, words, _WORD) @ weights)


def _unpacked(packed: NDArray[np.int64], names: int) -> NDArray[np.bool_]:
    shifts = np.arange(_WORD, dtype=np.int64)
    bits = (packed[:, :, None] >> shifts) & 1
    return np.asarray(bits.reshape(len(packed), packed.shape[1] * _WORD)[:, :names] != 0)


def _flat(rows: pa.StructArray, name: str) -> NDArray[Any]:
    return np.asarray(rows.field(name).flatten().to_numpy(zero_copy_only=False))

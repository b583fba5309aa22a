"""From the stored rows of the tree to the nodes that may hold a question's names: first the tops, then the nodes.

Source: thesis 4.3 (a walk from the top). Departure: a segment's rows, one per level, may come in several batches; what
is here is walked from the highest level down, and where a level above is not here, a node counts only if a later step
finds that the nodes above it have the name as well (`gathering.gather_hits`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from patternlake.udfs.sketch.gathering import HITS_TYPE, counts, pack
from patternlake.udfs.sketch.kernels.hashing import hash_keyed, hash_plain
from patternlake.udfs.sketch.kernels.probe import false_positive_rate, probe_pairs
from patternlake.udfs.sketch.request import SketchRequest

TOP_TYPE = pa.struct([("hit", pa.bool_()), ("keys", pa.list_(pa.string())), ("names", pa.list_(pa.int64()))])
"""Whether a segment may hold a name of the pattern, for which keys, where every key is asked for, else which names, as
`gathering.pack` packs them; NULL: any."""

HASHES_AT_ONCE = 1 << 20
"""Pairs of key and name whose hashes are held at once: 16 MiB for each token expression."""


@dataclass(frozen=True)
class Asked:
    """What the filters are asked for: ``hashes[expression]`` is uint64[keys · names, 2], names of a key together."""

    keys: int
    names: int
    hashes: tuple[NDArray[np.uint64], ...]

    def of(self, row: dict[str, Any], keys: NDArray[np.int64], nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool[p, names]: any of the token expressions may have the name's value, for pairs of a key and a node."""
        present = np.zeros((len(keys), self.names), np.bool_)
        for hashes in self.hashes:
            probe_pairs(row["bits"], row["k"], hashes, keys, nodes, present)
        return present


def top_hits(request: SketchRequest, rows: pa.StructArray) -> pa.Array:
    """Test the top rows of segments.

    Parameters
    ----------
    request
        The request.
    rows
        Struct array of top rows: ``k``, ``ones``, ``pos_lo``, ``pos_hi``, ``time_lo``, ``time_hi``, ``bits``, and
        ``keys`` where every key is asked for.

    Returns
    -------
    Array of `TOP_TYPE`. A segment without a top node (`uniform` left it out as too dense) is always a hit.
    """
    asked = None if request.every_key else asked_once(request)
    reader = NodeRows(rows)
    tested = has_names_only(request)
    return pa.array([_top_hit(request, reader.row(number), asked, tested) for number in range(len(rows))], TOP_TYPE)


def node_hits(
    request: SketchRequest, segments: NDArray[np.int64], rows: pa.StructArray, keys: pa.ListArray
) -> pa.Array:
    """Test the nodes of rows at the level that the question asks for, and above it.

    Parameters
    ----------
    request
        The request.
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
    asked = None if request.every_key else asked_once(request)
    levels = rows.field("level").to_numpy(zero_copy_only=False)
    copies = _copies(segments, levels)
    order = np.lexsort((-levels, copies, segments))
    reader = NodeRows(rows)
    found: list[dict[str, Any] | None] = [None] * len(rows)
    cuts = np.flatnonzero(np.diff(segments[order]) | np.diff(copies[order])) + 1
    for mine in np.split(order, cuts) if len(order) else []:
        segment = int(segments[mine[0]])
        tested = keys[int(mine[0])].values if request.every_key else None
        if request.every_key and (tested is None or len(tested) == 0):
            continue
        _walk(request, segment, mine, levels, reader, tested, asked, found)
    return pa.array(found, HITS_TYPE)


def _copies(segments: NDArray[np.int64], levels: NDArray[np.int32]) -> NDArray[np.int64]:
    """int64[r]: how many rows of the same segment and level stand before each one.

    Rows of a table that ask the same question bring each its own copy of the tree.
    """
    order = np.lexsort((levels, segments))
    begins = np.flatnonzero(np.diff(segments[order], prepend=-1) | np.diff(levels[order], prepend=-1))
    copies = np.empty(len(order), np.int64)
    copies[order] = np.arange(len(order)) - np.repeat(begins, np.diff(begins, append=len(order)))
    return copies


@dataclass
class _Above:
    """The walk's last row: which of its nodes exist, and the pairs of key and node that may hold a name."""

    level: int
    nodes: NDArray[np.int32]
    key: NDArray[np.int64]
    node: NDArray[np.int64]
    present: NDArray[np.bool_]


def _walk(
    request: SketchRequest,
    segment: int,
    mine: NDArray[np.int64],
    levels: NDArray[np.int32],
    reader: NodeRows,
    keys: pa.StringArray | None,
    plain: Asked | None,
    found: list[dict[str, Any] | None],
) -> None:
    """Walk the rows of one segment from the highest level down; what is found goes to its row's place in `found`."""
    wanted = max(request.level, request.floor(segment))
    at_once = max(1, HASHES_AT_ONCE // max(1, len(request.pattern.names)))
    parts: dict[int, list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]]] = {}
    confirmed: dict[int, bool] = {}
    rows = {int(number): reader.row(int(number)) for number in mine}
    for begin in range(0, 1 if keys is None else len(keys), at_once):
        asked = plain if keys is None else asked_of_keys(request, keys.slice(begin, at_once))
        assert asked is not None
        above: _Above | None = None
        chain = False
        for number in mine:
            level, row = int(levels[number]), rows[int(number)]
            if level < wanted and not request.uniform:
                break
            if row["bits"] is None:
                continue
            inside = nodes_inside(request, row)
            if level < wanted:
                inside &= row["topmost"]
            if above is not None and above.level != level + 1:
                above = None
            # Tops have been asked before, and chose this row's segment.
            chain = level >= request.height - 2 or (chain and above is not None)
            key, node, allowed = _pairs(request, asked.keys, row, inside, above)
            present = asked.of(row, key, node)
            if allowed is not None:
                present &= allowed
            kept = np.flatnonzero(counts(request, present))
            key, node, present = key[kept], node[kept], present[kept]
            above = _Above(level, row["node"], key, node, present)
            if level <= wanted or not request.uniform:
                parts.setdefault(int(number), []).append((key + begin, node, present))
                confirmed[int(number)] = chain
    # A walk without gaps needs no look at the levels above again.
    last = next((number for number in map(int, mine) if levels[number] == wanted and confirmed.get(number)), None)
    for number, made in parts.items():
        if last is not None and number != last and not request.uniform:
            continue
        key, node, present = (np.concatenate(arrays) for arrays in zip(*made, strict=True))
        if len(key):
            row = rows[number]
            found[number] = {
                "segment": segment,
                "level": int(levels[number]),
                "confirmed": confirmed[number],
                "keys": None if keys is None else keys.to_pylist(),
                "key": np.zeros(0, np.int32) if keys is None else key.astype(np.int32),
                **{name: row[name][node] for name in ("node", "pos_lo", "pos_hi", "time_lo", "time_hi")},
                "present": pack(present).ravel(),
                "fp": false_positive_rate(row["ones"][node], row["bits"].shape[1] * 8, row["k"]),
            }


def _pairs(
    request: SketchRequest, keys: int, row: dict[str, Any], inside: NDArray[np.bool_], above: _Above | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_] | None]:
    """Pairs of key and node (its place in the row) to ask for, and bool[p, names]: which names are left to ask for.

    Children of what was found above, and for all keys the nodes whose parent is not there.
    """
    if above is None:
        nodes = np.flatnonzero(inside)
        return np.repeat(np.arange(keys), len(nodes)), np.tile(nodes, keys), None
    parent = row["node"] // request.fanout
    # Where each node of the row above has its children, which stand side by side.
    first = np.searchsorted(parent, above.nodes[above.node])
    size = np.searchsorted(parent, above.nodes[above.node], side="right") - first
    pair = np.repeat(np.arange(len(first)), size)
    node = first[pair] + np.arange(len(pair)) - np.repeat(np.cumsum(size) - size, size)
    kept = np.flatnonzero(inside[node]) if len(node) else np.zeros(0, np.int64)
    pair, node = pair[kept], node[kept]
    key, allowed = above.key[pair], above.present[pair]
    orphans = np.flatnonzero(inside & ~np.isin(parent, above.nodes)) if request.uniform else np.zeros(0, np.int64)
    if len(orphans):
        key = np.concatenate([key, np.repeat(np.arange(keys), len(orphans))])
        node = np.concatenate([node, np.tile(orphans, keys)])
        free = np.ones((len(key) - len(allowed), allowed.shape[1]), np.bool_)
        allowed = np.concatenate([allowed, free])
    return key, node.astype(np.int64), allowed


class NodeRows:
    """Rows of the tree as numpy views on the Arrow buffers."""

    def __init__(self, rows: pa.StructArray) -> None:
        self._columns = {field.name: rows.field(field.name) for field in rows.type}

    def row(self, index: int) -> dict[str, Any]:
        """One row: numbers, numpy arrays, ``keys`` as Arrow array; ``bits`` uint8[c, m/8], None without nodes."""
        row: dict[str, Any] = {}
        for name, column in self._columns.items():
            value = column[index]
            if name == "keys":
                row[name] = value.values
            elif name == "bits":
                row[name] = value.as_buffer()
            elif pa.types.is_list(value.type):
                row[name] = value.values.to_numpy(zero_copy_only=False)
            else:
                row[name] = value.as_py()
        count = len(row["pos_lo"])
        row["bits"] = np.frombuffer(row["bits"], np.uint8).reshape(count, -1) if count else None
        return row


def _top_hit(request: SketchRequest, row: dict[str, Any], plain: Asked | None, tested: bool) -> dict[str, Any]:
    keys = row["keys"] if request.every_key else None
    inside = None if row["bits"] is None else np.flatnonzero(nodes_inside(request, row))
    if inside is not None and len(inside) == 0:
        return {"hit": False, "keys": None, "names": None}
    if inside is None or not request.pattern.names or not tested:
        return {"hit": True, "keys": keys.to_pylist() if keys is not None else None, "names": None}
    if keys is None:
        assert plain is not None
        present = plain.of(row, np.zeros(len(inside), np.int64), inside)
        names = pack(np.asarray(present.any(axis=0)).reshape(1, -1))[0]
        return {"hit": bool(present.any()), "keys": None, "names": names}
    found: list[str | None] = []
    at_once = max(1, HASHES_AT_ONCE // len(request.pattern.names))
    for begin in range(0, len(keys), at_once):
        part = keys.slice(begin, at_once)
        asked = asked_of_keys(request, part)
        present = asked.of(row, np.repeat(np.arange(len(part)), len(inside)), np.tile(inside, len(part)))
        hit = present.any(axis=1).reshape(len(part), len(inside)).any(axis=1)
        found += part.filter(pa.array(hit)).to_pylist()
    return {"hit": bool(found), "keys": found, "names": None}


def nodes_inside(request: SketchRequest, row: dict[str, Any]) -> NDArray[np.bool_]:
    """bool[c]: nodes that the question's bounds of position and time touch."""
    return request.window.of_intervals(row["pos_lo"], row["pos_hi"], row["time_lo"], row["time_hi"])


def has_names_only(request: SketchRequest) -> bool:
    """Whether every operand asks for names, so that a segment without any of the pattern's can be left out.

    Negated names are looked for as well: a segment that holds nothing else may lie between two operands.
    """
    return all(
        request.pattern.names_of(alternative) is not None
        for slot in request.pattern.slots
        for alternative in slot.alternatives
    )


def asked_once(request: SketchRequest) -> Asked:
    """The names of a question that is not about every key; with the key, if it is about one."""
    if request.one_key:
        return asked_of_keys(request, pa.array([request.key], pa.string()))
    names = pa.array(request.pattern.names, pa.string())
    hashes = tuple(hash_plain(names, expression, request.seed) for expression in range(request.expressions))
    return Asked(1, len(names), hashes)


def asked_of_keys(request: SketchRequest, keys: pa.StringArray) -> Asked:
    """The names of a question, for each of some keys."""
    names = request.pattern.names
    known = keys.drop_null()
    codes = np.full(len(keys), -1, np.int32)
    codes[np.asarray(keys.is_valid())] = np.arange(len(known), dtype=np.int32)
    by_key = np.repeat(codes, len(names))
    by_name = np.tile(np.arange(len(names), dtype=np.int32), len(keys))
    texts = pa.array(names, pa.string())
    hashes = tuple(
        hash_keyed(known, texts, by_key, by_name, expression, request.seed) for expression in range(request.expressions)
    )
    return Asked(len(keys), len(names), hashes)

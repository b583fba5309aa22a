"""The false claims that a walk down the tree might have met: each name, wherever a node denied it.

Source: thesis 4.3, 4.4.1; SPEC section 2 ("the bound follows the descent"). An answer's node claims a name falsely only
if it errs itself and each node above it that does not hold the name errs, too. The walk says which nodes these may be.
Where a node denies a name, neither it nor any node below it holds the name. Had it claimed the name, the nodes below
would have been asked, and a claim of one of the answer's nodes would have been false.

Let p be the chance that a node and all below it, down to one of the answer's nodes, err (`path_error`), and q that of
the node alone. The node denies with 1 - q what it does not hold and never what it holds. So p / (1 - q), counted where
it denies, is p on average wherever it does not hold the name, and nothing where it does: the sum over all denials is,
on average over seeds, no less than the number of false claims, without knowing which claims are true. (It is more
where a node errs and one below denies: then both count.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from patternlake.udfs.sketch.descent import (
    HASHES_AT_ONCE,
    Asked,
    NodeRows,
    asked_of_keys,
    asked_once,
    has_names_only,
    nodes_inside,
)
from patternlake.udfs.sketch.kernels.probe import false_positive_rate, places
from patternlake.udfs.sketch.path_error import chance_of_paths
from patternlake.udfs.sketch.request import SketchRequest

_KNOWN = pa.struct(
    [("set", pa.list_(pa.int64())), ("nodes", pa.int64()), ("denying", pa.int64()), ("rates", pa.float64())]
)
"""Of `nodes` known not to hold a name: how many have each of the name's bits set, how many deny it themselves, and the
sum of how often they err by their densities."""

CLAIMS = pa.schema(
    [
        ("name", pa.int32()),
        ("key", pa.string()),
        ("pos_lo", pa.int64()),
        ("pos_hi", pa.int64()),
        ("time_lo", pa.int64()),
        ("time_hi", pa.int64()),
        ("level", pa.int32()),
        ("expected", pa.float64()),
        ("bits", pa.int32()),
        ("hashes", pa.int32()),
        ("rate", pa.float64()),
        ("denies", pa.bool_()),
        ("known", _KNOWN),
    ]
)
"""Nodes that might have claimed a name of the pattern (its number) and hold none.

`expected` of all rows of a name adds up to the false claims of it that are to be expected if it is a name like any
other; `fit_to_names` gives what is expected of this one. Each row stands for others of its segment as well. `bits` and
`hashes` are those of the node's filter, `rate` is how often it errs itself, and `denies` whether it denies the name
itself or one above it does.

A row with `known` is about no node: it says what all nodes of some segments, of this size, tell of the name."""

_DRAWN = 8
"""So many nodes stand for all of a segment, for each name."""
_PRIOR = 10.0
"""So many nodes is worth what is known of a name before any node denies it."""
_ROUNDS = 40
_SUREST = 0.9
"""No name is taken to be claimed more often than this by nodes that now and then deny it."""
_CLAIMED = -1
"""The state of a node that, with all above it, claims a name; else it is the level of the node that denied first."""


def possible_claims(request: SketchRequest, rows: pa.Table) -> pa.Table:
    """Where the nodes that answer a question might have erred.

    Parameters
    ----------
    request
        The request.
    rows
        Of the table `sketch_nodes`: all levels of some segments from the lowest that is asked for upwards, with
        ``segment``, ``level``, ``k``, ``node``, ``ones``, ``pos_lo``, ``pos_hi``, ``time_lo``, ``time_hi``,
        ``topmost``, ``bits``, and ``keys`` where every key is asked for.

    Returns
    -------
    Rows of `CLAIMS`.
    """
    segments, levels = (rows[name].to_numpy() for name in ("segment", "level"))
    names = [name for name in rows.column_names if name != "segment"]
    reader = NodeRows(pa.StructArray.from_arrays([rows[name].combine_chunks() for name in names], names=names))
    order = np.lexsort((-levels, segments))
    cuts = np.flatnonzero(np.diff(segments[order])) + 1

    def walked() -> Iterator[_Nodes]:
        for mine in np.split(order, cuts) if len(order) else []:
            every = [(int(levels[at]), reader.row(int(at))) for at in mine]
            tree = [(level, row) for level, row in every if row["bits"] is not None]
            walk = _nodes if request.uniform else _lowest_of_tree
            for asked, keys in _questions(request, every):
                yield from walk(request, int(segments[mine[0]]), tree, asked, keys)

    found: list[dict[str, Any]] = []
    known: dict[_NameAndSize, _Known] = {}
    for nodes in walked():
        found += _drawn(request, nodes)
        # Keys and expressions make so many tokens of a name that they err as filters do on average.
        if not request.every_key and request.expressions == 1:
            _add_known(request, nodes, known)
    found += [
        {"name": name, "bits": bits, "hashes": hashes, "known": asdict(each)}
        for (name, bits, hashes), each in known.items()
    ]
    return pa.Table.from_pylist(found, schema=CLAIMS)


def fit_to_names(claims: pa.Table) -> pa.Table:
    """Give what is expected of just these names: the rows of `CLAIMS` that are about nodes.

    A name's bits are the same in all filters of one size, and are set more often than others where a frequent name
    sets one of them. Nodes that don't hold the name tell how often each bit is set: those that deny it, and those
    below a node that does, which may claim it or not.

    Parameters
    ----------
    claims
        What `possible_claims` gives, of all segments.
    """
    told = claims.filter(claims["known"].is_valid())
    pooled: dict[_NameAndSize, list[_Known]] = {}
    for row in told.select(["name", "bits", "hashes", "known"]).to_pylist():
        pooled.setdefault((row["name"], row["bits"], row["hashes"]), []).append(_Known(**row["known"]))
    rows = claims.filter(claims["known"].is_null())
    name, bits, hashes, rate, denies = (
        rows[column].to_numpy() for column in ("name", "bits", "hashes", "rate", "denies")
    )
    # Below a node that denies the name, a node errs at most always.
    times = np.ones(rows.num_rows)
    for size, each in pooled.items():
        factor = _factor(each)
        mine = (name == size[0]) & (bits == size[1]) & (hashes == size[2])
        itself, below = mine & denies, mine & ~denies
        times[below] = np.minimum(factor, 1.0 / rate[below])
        more = np.minimum(rate[itself] * factor, np.maximum(rate[itself], _SUREST))
        times[itself] = _odds(more) / _odds(rate[itself])
    place = CLAIMS.names.index("expected")
    return rows.set_column(place, "expected", pa.array(rows["expected"].to_numpy() * times, pa.float64()))


_Tree = list[tuple[int, dict[str, Any]]]
"""A segment's levels from the highest to the lowest, with their rows."""
_Keys = list[str | None] | None
"""The keys that are asked for, where every key is."""
_NameAndSize = tuple[int, int, int]
"""A name's number, and bits and hashes of filters."""


@dataclass(frozen=True)
class _Nodes:
    """Nodes of one segment that may be in the answer.

    Attributes
    ----------
    segment, level, row
        What they are nodes of.
    node
        int64[nodes]: their places in the row.
    denied
        bool[keys, nodes, names]: the node itself denies the name.
    above
        float64[keys, nodes, names]: what a node counts that another above it denied; 0 elsewhere.
    keys
        As of `_questions`.
    hashes
        uint64[names, 2], where no key or one is asked for.
    """

    segment: int
    level: int
    row: dict[str, Any]
    node: NDArray[np.int64]
    denied: NDArray[np.bool_]
    above: NDArray[np.float64]
    keys: _Keys
    hashes: NDArray[np.uint64]

    @property
    def size(self) -> tuple[int, int]:
        """Bits and hashes of their filters."""
        return self.row["bits"].shape[1] * 8, int(self.row["k"])


def _nodes(request: SketchRequest, segment: int, tree: _Tree, asked: Asked, keys: _Keys) -> Iterator[_Nodes]:
    """Of `uniform`: all filters are of one size, so where a node errs those above it do, and the walk spares none."""
    wanted = max(request.level, request.floor(segment))
    for level, row in tree:
        if level > wanted:
            continue
        inside = nodes_inside(request, row)
        if level < wanted:
            inside &= row["topmost"]
        node = np.flatnonzero(inside)
        denied = ~_ask(asked, row, np.ones((asked.keys, len(node), asked.names), np.bool_), node)
        yield _Nodes(segment, level, row, node, denied, np.zeros(denied.shape), keys, asked.hashes[0])


def _lowest_of_tree(request: SketchRequest, segment: int, tree: _Tree, asked: Asked, keys: _Keys) -> Iterator[_Nodes]:
    """Of `leveled`: a node is asked where the one above it claims the name."""
    wanted = max(request.level, request.floor(segment))
    tree = [(level, row) for level, row in tree if level >= wanted]
    if not tree or tree[-1][0] != wanted:
        return
    row = tree[-1][1]
    node = np.flatnonzero(nodes_inside(request, row))
    if len(node) == 0:
        return
    rate = _rate(request, row, node)
    state = _states(request, asked, tree)[:, node]
    # The nodes of a level differ in how full they are; what is above them is taken as it is on average.
    above = _weights(request, tree)[state] * (rate / rate.mean())[:, None] if rate.any() else np.zeros(state.shape)
    above = np.where((state == _CLAIMED) | (state == wanted), 0.0, above)
    yield _Nodes(segment, wanted, row, node, state == wanted, above, keys, asked.hashes[0])


@dataclass(frozen=True)
class _Known:
    """What is known of a name from nodes that don't hold it; as of `_KNOWN`."""

    set: list[int]
    nodes: int
    denying: int
    rates: float


def _add_known(request: SketchRequest, nodes: _Nodes, known: dict[_NameAndSize, _Known]) -> None:
    """Add what nodes tell of each name to what is known."""
    size = nodes.size
    rate = _rate(request, nodes.row, nodes.node)
    for name, place in enumerate(places(*size, nodes.hashes[: len(request.pattern.names)])):
        denied = nodes.denied[0, :, name]
        without = denied | (nodes.above[0, :, name] > 0.0)
        bits = nodes.row["bits"][nodes.node[without][:, None], place >> 3] >> (place & 7) & 1
        which = (name, *size)
        old = known.get(which, _Known([0] * size[1], 0, 0, 0.0))
        known[which] = _Known(
            (np.array(old.set) + bits.sum(axis=0, dtype=np.int64)).tolist(),
            old.nodes + len(bits),
            old.denying + int(denied.sum()),
            old.rates + float(rate[without].sum()),
        )


def _factor(known: Sequence[_Known]) -> float:
    """How often nodes err for a name, in times of what their densities say."""
    nodes, denying = sum(each.nodes for each in known), sum(each.denying for each in known)
    rates = sum(each.rates for each in known)
    if rates <= 0.0:
        return 1.0
    mean = rates / nodes
    ones = np.array([each.set for each in known], np.int64).sum(axis=0)
    # One frequent name that has set all the bits errs wherever it occurs. Nodes without it deny, and tell nothing of
    # that. The mean over all names counts it: as far as they alone tell, it is the least.
    return max(denying / nodes, rate_of_name(ones, nodes, mean, denying) / mean)


def rate_of_name(ones: NDArray[np.int64], nodes: int, rate: float, denying: int) -> float:
    """How often a node that does not hold a name claims it, from nodes that are known not to hold it.

    Parameters
    ----------
    ones
        int64[k]: in how many of the nodes each of the name's k bits is set.
    nodes
        How many nodes there are.
    rate
        How often it is on average over all names; it counts as much as `_PRIOR` nodes.
    denying
        How many of the nodes are known because they deny the name themselves.

    Notes
    -----
    Bits are taken for independent. Beside nodes that deny the name, those are missing that claim it and don't hold it;
    they are filled in until their number fits (expectation and maximisation).
    """
    least = rate ** (1.0 / len(ones))
    for _ in range(_ROUNDS):
        missing = denying * rate / (1.0 - rate) if rate < 1.0 else 0.0
        rate = float(np.prod((ones + missing + _PRIOR * least) / (nodes + missing + _PRIOR)))
    return rate


def _states(request: SketchRequest, asked: Asked, tree: _Tree) -> NDArray[np.int8]:
    """int8[keys, nodes of the lowest level, names]: which level denied each name first, or `_CLAIMED`."""
    top = request.height - 1
    above: tuple[int, NDArray[np.int32], NDArray[np.int8]] | None = None
    state = np.zeros((asked.keys, 0, asked.names), np.int8)
    for level, row in tree:
        count = len(row["node"])
        state = np.full((asked.keys, count, asked.names), _CLAIMED, np.int8)
        if above is not None and above[0] == level + 1:
            parent = np.searchsorted(above[1], row["node"] // request.fanout)
            state = above[2][:, parent]
        inside = np.flatnonzero(nodes_inside(request, row))
        claimed = _ask(asked, row, state[:, inside] == _CLAIMED, inside)
        part = state[:, inside]
        part[(part == _CLAIMED) & ~claimed] = level
        state[:, inside] = part
        if level == top and level > tree[-1][0]:
            # A segment is walked, for all names, if its top may hold any of them.
            missed = (state != _CLAIMED).all(axis=(1, 2)) & has_names_only(request)
            state[:] = np.where(missed, top, _CLAIMED)[:, None, None]
        above = level, row["node"], state
    return state


def _weights(request: SketchRequest, tree: _Tree) -> NDArray[np.float64]:
    """float64[levels]: what one node of the answer counts where a node of each level denied first, on average."""
    upwards = tree[::-1]
    bits = [row["bits"].shape[1] * 8 for _, row in upwards]
    hashes = [int(row["k"]) for _, row in upwards]
    densities = [float(row["ones"].mean()) / size for (_, row), size in zip(upwards, bits, strict=True)]
    chances = chance_of_paths(bits, hashes, densities)
    found = np.zeros(request.height + 1)
    lowest = _either(chances[0], request.expressions)
    for number, (level, _) in enumerate(upwards):
        own = _either(densities[number] ** hashes[number], request.expressions)
        # Each level may claim another of the expressions' tokens.
        path = min(lowest, float(chances[number]) * request.expressions ** (number + 1))
        found[level] = path / (1.0 - own) if own < 1.0 else 0.0
    return found


def _either(rate: float, expressions: int) -> float:
    """How often any of a name's tokens is claimed."""
    return float(1.0 - (1.0 - rate) ** expressions)


def _rate(request: SketchRequest, row: dict[str, Any], node: NDArray[np.int64]) -> NDArray[np.float64]:
    """float64[nodes]: how often each one errs for a name."""
    one = false_positive_rate(row["ones"][node], row["bits"].shape[1] * 8, row["k"])
    return np.asarray(1.0 - (1.0 - one) ** request.expressions)


def _odds(rate: NDArray[np.float64]) -> NDArray[np.float64]:
    """How often a node errs for each time that it denies; nothing where it never denies."""
    return np.divide(rate, 1.0 - rate, out=np.zeros(len(rate)), where=rate < 1.0)


def _questions(request: SketchRequest, tree: _Tree) -> Iterator[tuple[Asked, _Keys]]:
    """What the filters of a segment are asked for, with the keys where every key is."""
    if not request.every_key:
        yield asked_once(request), None
        return
    keys: pa.StringArray = next(row["keys"] for level, row in tree if level == request.height - 1)
    size = max(len(row["node"]) for _, row in tree) or 1
    at_once = max(1, HASHES_AT_ONCE // (size * max(1, len(request.pattern.names))))
    for begin in range(0, len(keys), at_once):
        part = keys.slice(begin, at_once)
        yield asked_of_keys(request, part), part.to_pylist()


def _ask(asked: Asked, row: dict[str, Any], wanted: NDArray[np.bool_], node: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool[keys, nodes, names]: what some nodes of a row claim of what is wanted of them."""
    key, place = np.nonzero(wanted.any(axis=2))
    claimed = np.zeros(wanted.shape, np.bool_)
    claimed[key, place] = asked.of(row, key, node[place])
    return claimed & wanted


def _drawn(request: SketchRequest, nodes: _Nodes) -> list[dict[str, Any]]:
    """Some nodes for all, drawn by what each counts, of each name."""
    found = []
    rng = np.random.default_rng((request.seed, nodes.segment, nodes.level))
    rate = _rate(request, nodes.row, nodes.node)
    own = _odds(rate)
    for name in range(len(request.pattern.names)):
        mine = (nodes.above[:, :, name] + nodes.denied[:, :, name] * own).ravel()
        total = float(mine.sum())
        if total <= 0.0:
            continue
        some = np.flatnonzero(mine)
        chosen = some if len(some) <= _DRAWN else rng.choice(len(mine), _DRAWN, p=mine / total)
        shares = mine[some] if len(some) <= _DRAWN else np.full(_DRAWN, total / _DRAWN)
        for at, share in zip(chosen.tolist(), shares.tolist(), strict=True):
            key, place = divmod(at, len(nodes.node))
            row = {
                "name": name,
                "key": None if nodes.keys is None else nodes.keys[key],
                "level": nodes.level,
                "expected": share,
                "bits": nodes.size[0],
                "hashes": nodes.size[1],
                "rate": float(rate[place]),
                "denies": bool(nodes.denied[key, place, name]),
            }
            for column in ("pos_lo", "pos_hi", "time_lo", "time_hi"):
                row[column] = int(nodes.row[column][nodes.node[place]])
            found.append(row)
    return found

"""The last steps of a function over the sketch: hits and events become rows of the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from patternlake.udfs.blocks import BLOCK_BITS, block_of
from patternlake.udfs.limits import by_partition
from patternlake.udfs.partitions import ranks
from patternlake.udfs.sketch.gathering import gather_hits
from patternlake.udfs.sketch.kernels.candidates import candidate_ranges, needs_every_event
from patternlake.udfs.sketch.kernels.hits import Found, Hits, Matches, OperandMatches, joined
from patternlake.udfs.sketch.kernels.matching import match_nodes_by_key
from patternlake.udfs.sketch.request import SketchRequest

STEP_TYPE = pa.struct([("operand", pa.string()), ("from_position", pa.int64()), ("to_position", pa.int64())])
ROWS = pa.schema(
    [
        ("match_no", pa.int64()),
        ("key", pa.string()),
        ("first_position", pa.int64()),
        ("last_position", pa.int64()),
        ("first_time", pa.timestamp("us", "UTC")),
        ("last_time", pa.timestamp("us", "UTC")),
        ("steps", pa.list_(STEP_TYPE)),
        ("level", pa.int32()),
        ("exact", pa.bool_()),
        ("fp_bound", pa.float64()),
        ("truncated", pa.bool_()),
    ]
)
_FAR = 1 << 61
"""Microseconds from the epoch that no event is away; differences of two such still fit."""


@dataclass(frozen=True)
class Candidates:
    """What an exact answer has to read back; reading more does not change it (see `candidates.candidate_ranges`).

    Attributes
    ----------
    names
        An event must have one of them; None: any event may matter.
    blocks
        Of positions, ascending.
    """

    names: tuple[str, ...] | None
    blocks: tuple[int, ...]


def answer(request: SketchRequest, hits: pa.Array) -> pa.Table:
    """One approximate answer: rows of `ROWS`, numbered in each partition.

    Parameters
    ----------
    request
        The request.
    hits
        Array of `gathering.HITS_TYPE`.

    Raises
    ------
    ArgumentError
        A partition, or the answer where there is none, has more rows than asked for.
    """
    found, offsets, keys = gather_hits(request, hits)

    def run(first: int, last: int) -> pa.Table:
        mine = found.take(np.arange(offsets[first], offsets[last]))
        truncate = request.truncate and last - first <= 1
        matches = _matches(request, mine, offsets[first : last + 1] - offsets[first], request.max_matches, truncate)
        return rows_of(request, matches, keys[first:last])

    return pa.concat_tables(by_partition(0, len(keys), run))


def everywhere(request: SketchRequest) -> Candidates:
    """What an exact answer has to read back where the sketch is not asked."""
    partitioned = request.every_key or request.one_key
    every = needs_every_event(request.pattern, request.policy, partitioned=partitioned)
    return Candidates(None if every else tuple(request.pattern.names), tuple(range(block_of(request.events) + 1)))


def candidates(request: SketchRequest, hits: pa.Array) -> Candidates:
    """What an exact answer has to read back, given an array of `gathering.HITS_TYPE`."""
    if request.every_key:
        return everywhere(request)
    names, last = request.pattern.names, block_of(request.events)
    found, offsets, _ = gather_hits(request, hits)
    found, _ = _with_dropped(request, found, offsets)
    wanted = candidate_ranges(
        request.pattern, found, policy=request.policy, partitioned=request.one_key, window=request.window
    )
    # Bounds of a question may lie far from all events.
    blocks = range(last + 1) if wanted.ranges is None else _touch(np.clip(wanted.ranges, 1, request.events))
    return Candidates(None if wanted.every_event else tuple(names), tuple(blocks))


def blocks_touched(request: SketchRequest, hits: pa.Array) -> list[int]:
    """The blocks, ascending, of the nodes that may hold a name of a question; given an array of `HITS_TYPE`."""
    found, _, _ = gather_hits(request, hits)
    return _touch(np.unique(np.column_stack([found.pos_lo, found.pos_hi]), axis=0)) if len(found) else []


@dataclass(frozen=True)
class Existence:
    """For which keys a pattern occurs; None: only aged, coarse or dropped ranges could hold it.

    Attributes
    ----------
    of
        By key, of those that nodes may hold; the key None where no key is asked for, or for events without one.
    others
        Of every other key.
    """

    of: Mapping[str | None, bool | None]
    others: bool | None

    @property
    def anywhere(self) -> bool | None:
        """Whether it occurs for any key."""
        said = {*self.of.values(), self.others}
        return True if True in said else (None if None in said else False)


def exists(request: SketchRequest, hits: pa.Array) -> Existence:
    """Whether the pattern occurs, given an array of `gathering.HITS_TYPE`."""
    found, offsets, keys = gather_hits(request, hits)
    sure = _occurring(request, found, offsets)
    if not request.floors:
        return Existence({key: bool(one) for key, one in zip(keys, sure, strict=True)}, False)
    coarse, offsets = _with_dropped(request, found, offsets)
    split, offsets = _split(coarse, offsets, len(request.pattern.slots), request.leaf_events)
    perhaps = _occurring(request, split, offsets)
    said = {
        key: True if one else (None if more else False) for key, one, more in zip(keys, sure, perhaps, strict=False)
    }
    # One more key stands for those that nothing is known of.
    return Existence(said, None if len(perhaps) > len(keys) and perhaps[-1] else False)


def _occurring(request: SketchRequest, hits: Hits, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool[keys]: which keys have a match."""
    found = np.zeros(len(offsets) - 1, np.bool_)
    if request.policy != "skip_till_any":
        # No more matches than nodes to begin at.
        found[_matches(request, hits, offsets, max(1, len(hits)), True).key] = True
        return found
    for key in range(len(found)):
        mine = hits.take(np.arange(offsets[key], offsets[key + 1]))
        found[key] = len(_matches(request, mine, np.array([0, len(mine)]), 1, True)) > 0
    return found


def _matches(request: SketchRequest, hits: Hits, offsets: NDArray[np.int64], limit: int, truncate: bool) -> Matches:
    return match_nodes_by_key(
        request.pattern,
        hits,
        offsets,
        policy=request.policy,
        after_match=request.after_match,
        max_matches=limit,
        truncate=truncate,
    )


def rows_of(request: SketchRequest, matches: Matches, keys: Sequence[str | None]) -> pa.Table:
    """Matches as rows of `ROWS`, given the keys that `Matches.key` counts."""
    count, steps = matches.operand.shape
    step_lists = _list_steps(
        pa.array(request.pattern.labels, pa.string()).take(pa.array(matches.operand.ravel())),
        matches.step_lo.ravel(),
        matches.step_hi.ravel(),
        np.arange(count + 1) * steps,
    )
    return _table(request, matches, keys, step_lists, matches.level, matches.fp_bound)


def rows_of_operands(request: SketchRequest, matches: OperandMatches, keys: Sequence[str | None]) -> pa.Table:
    """As `rows_of`, with a step for each event of each operand, in text order and in the order of events."""
    count, width = len(matches), len(matches.operands)
    operand = np.repeat(np.tile(np.arange(width), count), np.diff(matches.offsets))
    labels = pa.array(matches.operands, pa.string()).take(pa.array(operand))
    step_lists = _list_steps(labels, matches.positions, matches.positions, matches.offsets[::width])
    return _table(request, matches, keys, step_lists, np.zeros(count, np.int8), np.zeros(count))


def _list_steps(
    labels: pa.Array, low: NDArray[np.int64], high: NDArray[np.int64], offsets: NDArray[np.int64]
) -> pa.ListArray:
    """The steps of k matches, from those of all of them; match i has the steps ``offsets[i]:offsets[i + 1]``."""
    step = pa.StructArray.from_arrays([labels, pa.array(low), pa.array(high)], fields=list(STEP_TYPE))
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), step)


def _table(
    request: SketchRequest,
    matches: Found,
    keys: Sequence[str | None],
    steps: pa.ListArray,
    level: NDArray[np.int8],
    fp_bound: NDArray[np.float64],
) -> pa.Table:
    """Matches of either engine, with what only one of them has, as rows of `ROWS`."""
    shown = list(keys) if request.every_key else [request.key]
    cut = matches.truncated or (not request.verify and request.dropped is not None)
    columns = [
        pa.array(ranks(matches.key) + 1),
        pa.array(shown, pa.string()).take(pa.array(matches.key)),
        pa.array(matches.first_position),
        pa.array(matches.last_position),
        pa.array(matches.first_time).cast(ROWS.field("first_time").type),
        pa.array(matches.last_time).cast(ROWS.field("last_time").type),
        steps,
        pa.array(level.astype(np.int32)),
        pa.array(np.full(len(matches), request.verify)),
        pa.array(fp_bound),
        pa.array(np.full(len(matches), cut)),
    ]
    return pa.Table.from_arrays(columns, schema=ROWS)


def _touch(ranges: NDArray[np.int64]) -> list[int]:
    """The blocks that ranges of positions touch, ascending."""
    first, last = (ranges - 1).T >> BLOCK_BITS
    return sorted({block for low, high in zip(first, last, strict=True) for block in range(low, high + 1)})


def _with_dropped(request: SketchRequest, hits: Hits, offsets: NDArray[np.int64]) -> tuple[Hits, NDArray[np.int64]]:
    """The hits of each key, and before them one coarse node for what is dropped: it may have held anything at any time.

    Where every key is asked for, one more key has that node alone: a key that nothing else is known of.
    """
    if request.dropped is None:
        return hits, offsets
    low, high = request.dropped
    node = replace(
        hits,
        pos_lo=np.array([low]),
        pos_hi=np.array([high]),
        time_lo=np.array([-_FAR]),
        time_hi=np.array([_FAR]),
        level=np.ones(1, hits.level.dtype),
        present=np.ones((1, hits.present.shape[1]), np.bool_),
        fp=np.ones((1, hits.fp.shape[1])),
    )
    both = joined(node, hits)
    rows = np.insert(np.arange(1, len(hits) + 1), offsets[:-1], 0)
    offsets = offsets + np.arange(len(offsets))
    if request.every_key:
        rows, offsets = np.append(rows, 0), np.append(offsets, len(rows) + 1)
    return both.take(rows), offsets


def _split(hits: Hits, offsets: NDArray[np.int64], pieces: int, leaf_events: int) -> tuple[Hits, NDArray[np.int64]]:
    """Coarse nodes cut into leaves, which is what finer nodes, if kept, could show.

    No match has more than `pieces` leaves of one node, and its span is least where these lie at the node's ends, so the
    leaves between stay together.
    """
    first, last = (hits.pos_lo - 1) // leaf_events, (hits.pos_hi - 1) // leaf_events
    ends = 2 * pieces
    copies = np.where(hits.level > 0, np.minimum(last - first + 1, ends + 1), 1)
    row = np.repeat(np.arange(len(hits)), copies)
    number = np.arange(len(row)) - np.repeat(np.cumsum(copies) - copies, copies)
    taken, whole = hits.take(row), hits.level[row] == 0
    from_end = number - copies[row] + 1
    long = (last - first)[row] > ends
    low = np.where(long & (number > pieces), last[row] + from_end, first[row] + number)
    high = np.where(long & (number == pieces), last[row] - pieces, low)
    split = replace(
        taken,
        pos_lo=np.where(whole, taken.pos_lo, np.maximum(taken.pos_lo, low * leaf_events + 1)),
        pos_hi=np.where(whole, taken.pos_hi, np.minimum(taken.pos_hi, (high + 1) * leaf_events)),
    )
    return split, np.concatenate([[0], np.cumsum(copies)])[offsets]

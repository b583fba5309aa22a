"""What the functions over a sketch read of it: from the tops of its segments to the nodes that may hold a match.

Sizes stand in the table's log: what is small is walked in the driver's process, the rest by Spark's tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from patternlake.delta_tables.reading.state_reader import Condition, StateReader, among
from patternlake.delta_tables.reading.visibility import visible_rows
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.sql_ext.answering.reading_tasks import RowsRead, place_of, rows_dealt
from patternlake.udfs.sketch.batch import TOP_BUCKET
from patternlake.udfs.sketch.descent import node_hits, top_hits
from patternlake.udfs.sketch.gathering import HITS_TYPE, unpack
from patternlake.udfs.sketch.possible_claims import CLAIMS, possible_claims
from patternlake.udfs.sketch.reads import SketchReads
from patternlake.udfs.sketch.request import SketchRequest
from patternlake.udfs.sketch.segment_order import taking_part

if TYPE_CHECKING:
    from patternlake.sql_ext.lakes.lake import Lake

_NODE = ("level", "k", "node", "ones", "pos_lo", "pos_hi", "time_lo", "time_hi", "topmost", "bits")
_KEYS = "keys"
"""A segment's keys: most of the bytes of the tops, and asked for by questions about every key alone."""
_SEGMENTS_AT_ONCE = 32
"""Whose nodes a task holds: some fifty megabytes."""
_TOPS = pa.schema([("segment", pa.int64()), ("keys", pa.list_(pa.string())), ("names", pa.list_(pa.int64()))])
_HIT = pa.schema([("hit", HITS_TYPE)])
_TOP_ROW = "segment BIGINT, keys ARRAY<STRING>, names ARRAY<BIGINT>"
_HIT_ROW = (
    "hit STRUCT<segment: BIGINT, level: INT, confirmed: BOOLEAN, keys: ARRAY<STRING>, key: ARRAY<INT>, "
    "node: ARRAY<INT>, pos_lo: ARRAY<BIGINT>, pos_hi: ARRAY<BIGINT>, time_lo: ARRAY<BIGINT>, time_hi: ARRAY<BIGINT>, "
    "present: ARRAY<BIGINT>, fp: ARRAY<DOUBLE>>"
)


_CLAIMS_ROW = (
    "name INT, key STRING, pos_lo BIGINT, pos_hi BIGINT, time_lo BIGINT, time_hi BIGINT, level INT, expected DOUBLE, "
    "bits INT, hashes INT, rate DOUBLE, denies BOOLEAN, "
    "known STRUCT<set: ARRAY<BIGINT>, nodes: BIGINT, denying: BIGINT, rates: DOUBLE>"
)


class Place(Protocol):
    """Where a sketch is read: a lake, or a task that reads for itself."""

    @property
    def reader(self) -> StateReader:
        """Reads its rows."""

    def small(
        self, table: str, where: Sequence[Condition], columns: Sequence[str] = (), few: int | None = None
    ) -> bool:
        """Whether this process may read these rows, or these columns of them."""

    def apart(self) -> Lake:
        """The lake, for Spark's tasks to read what this process may not."""


def descend(
    lake: Place, reads: SketchReads, request: SketchRequest | None = None, *, keys: Sequence[str | None] = ()
) -> pa.Array:
    """The nodes that may hold a question's names.

    Parameters
    ----------
    lake
        Where the sketch is.
    reads
        The call.
    request
        What to ask, if it is not the call's own.
    keys
        Of a question about every key: only these; none: all.

    Returns
    -------
    Array of `gathering.HITS_TYPE`.
    """
    asked = reads.request if request is None else request
    tops = tops_hit(lake, reads, request, keys=keys)
    if tops_tell(asked):
        tops = tops_taking_part(asked, tops)
    return nodes_below(lake, reads, tops, request, every="top" in asked.tiers())


def tops_tell(request: SketchRequest) -> bool:
    """Whether the tops say of every segment of a question which names it may hold, for all keys or one together."""
    return not request.every_key and not request.floors and request.tiers() == ["body"]


def tops_taking_part(request: SketchRequest, tops: pa.Table) -> pa.Table:
    """Of the rows of `tops_hit`, those of segments that can be in a match, in the order of the stream.

    Parameters
    ----------
    request
        A question of which the tops tell (`tops_tell`).
    tops
        Rows of `tops_hit`.
    """
    tops = tops.sort_by("segment")
    return tops.filter(pa.array(taking_part(request.pattern, _claims(request, tops)), pa.bool_()))


def tops_hit(
    lake: Place, reads: SketchReads, request: SketchRequest | None = None, *, keys: Sequence[str | None] = ()
) -> pa.Table:
    """The segments whose tops may hold a name of a question, with what `descent.TOP_TYPE` says; given as `descend`."""
    asked = reads.request if request is None else request
    top = [*shown_in(reads), Condition("bucket", "=", TOP_BUCKET)]
    columns = ("segment", *_NODE, *([_KEYS] if asked.every_key else []))
    every = range(-(-asked.events // asked.segment_events))
    return _map_segments(lake, top, columns, every, _TOPS, _TOP_ROW, _Tops(asked, tuple(keys)))


def nodes_below(
    lake: Place, reads: SketchReads, tops: pa.Table, request: SketchRequest | None = None, *, every: bool = False
) -> pa.Array:
    """The nodes of some segments that may hold a question's names.

    Parameters
    ----------
    lake, reads, request
        As of `descend`.
    tops
        Rows of `tops_hit`.
    every
        Look at the tops again, as they answer where nodes below have gone.

    Returns
    -------
    Array of `gathering.HITS_TYPE`.
    """
    asked = reads.request if request is None else request
    segments = tops["segment"].to_numpy()
    tested = dict(zip(segments.tolist(), tops["keys"].to_pylist(), strict=True))
    buckets = {TOP_BUCKET} if every else set()
    if "body" in asked.tiers():
        buckets |= set((segments // reads.segments_together).tolist())
    where = [*shown_in(reads), among("bucket", sorted(buckets))]
    columns, some = ("segment", *_NODE), sorted(tested)
    return _map_segments(lake, where, columns, some, _HIT, _HIT_ROW, _Nodes(asked, tested))["hit"].combine_chunks()


def claims_to_expect(lake: Place, reads: SketchReads) -> pa.Table:
    """Where the nodes that answer a call might have erred; it reads the filters of all segments.

    Parameters
    ----------
    lake
        Where the sketch is.
    reads
        The call.

    Returns
    -------
    Rows of `possible_claims.CLAIMS`.
    """
    asked = reads.request
    every = range(-(-asked.events // asked.segment_events))
    lowest = 0 if asked.uniform else asked.level
    levels = [*shown_in(reads), among("level", range(lowest, asked.height))]
    columns = ("segment", *_NODE, *([_KEYS] if asked.every_key else []))
    return _map_segments(lake, levels, columns, every, CLAIMS, _CLAIMS_ROW, _Claims(asked), whole=True)


def shown_in(reads: SketchReads) -> list[Condition]:
    """The conditions on the rows of the sketch that a call asks."""
    return visible_rows(TABLES["sketch_nodes"], reads.nodes.number, *astuple(reads.nodes))


def _map_segments(
    lake: Place,
    where: Sequence[Condition],
    columns: tuple[str, ...],
    segments: Sequence[int],
    schema: pa.Schema,
    ddl: str,
    walk: Callable[[pa.Table], pa.Table],
    *,
    whole: bool = False,
) -> pa.Table:
    """What a function gives for rows of the sketch's table, which lie in some segments, here or in Spark's tasks.

    `whole`: it needs all rows of a segment together, that of the top as well, which lies in another file.
    """
    touched = (*columns, *(condition.column for condition in where))
    if lake.small("sketch_nodes", where, touched):
        return walk(lake.reader.rows("sketch_nodes", columns, where))

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # A segment's rows, one for each level, lie in one file, and are walked together where they come together.
        held = [batch for batch in batches if batch.num_rows]
        if held:
            yield from walk(pa.Table.from_batches(held)).to_batches()

    apart = lake.apart()
    place = place_of(apart)
    if place is None:
        rows = apart.frame("sketch_nodes", where).select(*columns)
        found = (rows.repartition("segment") if whole else rows).mapInArrow(run, ddl).toArrow()
    else:
        read = RowsRead("sketch_nodes", columns, tuple(where), "segment", _SEGMENTS_AT_ONCE, walk)
        found = rows_dealt(apart, place, read, segments, ddl).toArrow()
    return found.cast(schema) if found.num_rows else schema.empty_table()


@dataclass(frozen=True)
class _Tops:
    """From top rows to the segments that may hold a name, with the keys for which they may."""

    request: SketchRequest
    keys: Sequence[str | None]

    def __call__(self, rows: pa.Table) -> pa.Table:
        if self.keys and self.request.every_key:
            rows = _of_keys(rows, self.keys)
        found = top_hits(self.request, _node_rows(rows))
        hit = found.field("hit")
        segments = rows["segment"].combine_chunks().filter(hit)
        told = [found.field(name).filter(hit) for name in ("keys", "names")]
        return pa.Table.from_arrays([segments, *told], schema=_TOPS)


@dataclass(frozen=True)
class _Nodes:
    """From rows of nodes to hits, given the segments to test, with the keys where every key is asked for."""

    request: SketchRequest
    tested: Mapping[int, list[str | None] | None]

    def __call__(self, rows: pa.Table) -> pa.Table:
        # A bucket holds segments that the tops have denied as well, of which leaves would claim more.
        rows = rows.filter(pa.array(np.isin(rows["segment"].to_numpy(), list(self.tested)), pa.bool_()))
        segments = rows["segment"].to_numpy()
        keys = pa.array([self.tested[segment] for segment in segments.tolist()], pa.list_(pa.string()))
        found = node_hits(self.request, segments, _node_rows(rows), keys)
        return pa.Table.from_arrays([found.filter(found.is_valid())], schema=_HIT)


@dataclass(frozen=True)
class _Claims:
    """From the rows of whole segments to the claims that their nodes might have made."""

    request: SketchRequest

    def __call__(self, rows: pa.Table) -> pa.Table:
        return possible_claims(self.request, rows)


def _claims(request: SketchRequest, tops: pa.Table) -> NDArray[np.bool_]:
    """bool[n, names]: what the tops claim; all names where nothing is known."""
    names = len(request.pattern.names)
    found = np.ones((tops.num_rows, names), np.bool_)
    known = np.flatnonzero(tops["names"].is_valid().to_numpy())
    if len(known):
        words = pc.list_flatten(tops["names"].combine_chunks()).to_numpy()
        found[known] = unpack(words.reshape(len(known), -1), names)
    return found


def _node_rows(rows: pa.Table) -> pa.StructArray:
    names = [name for name in rows.column_names if name != "segment"]
    return pa.StructArray.from_arrays([rows[name].combine_chunks() for name in names], names=names)


def _of_keys(rows: pa.Table, keys: Sequence[str | None]) -> pa.Table:
    """Top rows with those of their keys that are asked for."""
    wanted = np.array(sorted({key for key in keys if key is not None}), object)
    nameless = None in keys
    lists = []
    for held in rows["keys"].to_pylist():
        known = np.array([key for key in held or () if key is not None], object)
        mine = np.intersect1d(known, wanted).tolist() if len(known) and len(wanted) else []
        lists.append(([None] if nameless and None in (held or ()) else []) + mine)
    place = rows.column_names.index(_KEYS)
    return rows.set_column(place, "keys", pa.array(lists, pa.list_(pa.string())))

"""What `cet_count` and `cet_trends` share: from a call to the vertices of its windows, here or dealt out to tasks.

A portion is what one call of a kernel answers: some partitions and runs of windows (blocks). A vertex goes to the
portion of every block that one of its windows lies in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from patternlake.delta_tables.parts import shown_text
from patternlake.delta_tables.state_reader import Condition, StateReader, between, shown_at
from patternlake.sql_ext import event_rows
from patternlake.sql_ext.event_rows import PART
from patternlake.sql_ext.table_function import explicit
from patternlake.sql_ext.tasks import PORTION
from patternlake.udfs.equal_shares import equal_shares
from patternlake.udfs.record_batches import columns_of
from patternlake.udfs.trends.ends import PANE_COLUMNS, window_ends
from patternlake.udfs.trends.kinds import EVENT, PANE
from patternlake.udfs.trends.panes import Windows
from patternlake.udfs.trends.request import TrendsRequest, check_request, parse_request

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.sql_ext.lake import Lake

BLOCK = "block"
_ENDS = explicit("window BIGINT, first_time TIMESTAMP, last_time TIMESTAMP, final BOOLEAN")
_STORED = ("pane", PART, "key", "position", "time", "term", "left", "right", "along", "carried")
VERTEX = (BLOCK, *(name for name in _STORED if name != "key"))
"""The columns of a vertex as the kernels read them."""


@dataclass(frozen=True)
class VerticesRead:
    """What a process needs to read the vertices of a call for itself.

    Attributes
    ----------
    text
        The request, for `parse_request`.
    where
        The conditions on the rows of the query's vertices.
    key
        That is asked for, or None.
    by_partition
        Whether the key asked for is the partition's.
    block
        Windows of one block.
    """

    text: str
    where: tuple[Condition, ...]
    key: str | None
    by_partition: bool
    block: int

    def vertices(self, reader: StateReader, blocks: tuple[int, int] | None = None) -> dict[str, pa.Array]:
        """The columns `VERTEX` of all vertices, or of those in a range of blocks, both ends included."""
        query = parse_request(self.text).layout.query
        windows = Windows.of(query)
        where = self.where
        if blocks is not None:
            first, last = blocks[0] * self.block, (blocks[1] + 1) * self.block - 1
            where = (*where, *between("pane", windows.panes_of(first)[0], windows.panes_of(last)[-1]))
        rows = reader.rows("trend_vertices", _STORED, where)
        if self.key is not None:
            mine = (
                event_rows.of_key(rows[PART].combine_chunks(), len(query.partition), self.key)
                if self.by_partition
                else pc.equal(rows["key"], self.key)
            )
            rows = rows.filter(mine)
        row, block = windows.spread(rows["pane"].to_numpy(), self.block)
        if blocks is not None:
            mine = (block >= blocks[0]) & (block <= blocks[1])
            row, block = row[mine], block[mine]
        spread = rows.drop_columns(["key"]).take(pa.array(row)).append_column(BLOCK, pa.array(block))
        return columns_of(spread)


@dataclass(frozen=True)
class TrendCall:
    """A checked call over the trends of a query.

    Attributes
    ----------
    lake
        Where it is asked.
    arguments
        By name.
    reads
        As `check_request` gives it.
    where
        The conditions on the rows of the query's vertices.
    here
        Whether the driver's own process answers.
    """

    lake: Lake
    arguments: Mapping[str, Any]
    reads: Mapping[str, Any]
    where: tuple[Condition, ...]
    here: bool

    @property
    def asked(self) -> TrendsRequest:
        """What the kernels need to know."""
        return parse_request(self.reads["text"])

    @property
    def windows(self) -> Windows:
        """The windows of the query."""
        return Windows.of(self.asked.layout.query)

    @property
    def reading(self) -> VerticesRead:
        """How the vertices are read without Spark."""
        return VerticesRead(
            self.reads["text"], self.where, self.arguments["key"], self.reads["by_partition"], self.reads[BLOCK]
        )

    def vertices(self) -> dict[str, pa.Array]:
        """The columns `VERTEX` of all vertices, in this process."""
        return self.reading.vertices(self.lake.reader)

    def block_ranges(self, tasks: int) -> list[list[tuple[int, int]]]:
        """First and last block of windows for each of about so many tasks; none where they cannot be told apart so."""
        windows, found = self.windows, self.asked
        if not windows.width or self.reads["lowest_pane"] is None:
            return []
        step, length, block = (self.reads[name] for name in ("step", "length", BLOCK))
        first = max(found.first, (self.reads["lowest_pane"] - length) // step + 1) // block
        last = min(found.last, self.reads["highest_pane"] // step) // block
        blocks = max(0, last - first + 1)
        return [[(first + low, first + high - 1)] for low, high in equal_shares(blocks, min(tasks, blocks))]

    def portions(self) -> DataFrame:
        """The columns `VERTEX` and `PORTION` of all vertices, for Spark's tasks."""
        rows = self.lake.frame("trend_vertices", self.where)
        key = self.arguments["key"]
        if key is not None:
            shown = F.expr(shown_text(PART)) if self.reads["by_partition"] else F.col("key")
            rows = rows.where(shown == F.lit(key))
        step, length, block = (self.reads[name] for name in ("step", "length", BLOCK))
        first = _floored(f"{_floored(f'(pane - {length})', step)} + 1", block)
        last = _floored(_floored("pane", step), block)
        blocks = F.expr(f"sequence({first}, {last})")
        spread = rows.select(*(name for name in _STORED if name != "key"), F.explode(blocks).alias(BLOCK))
        portion = F.pmod(F.hash(PART, BLOCK), F.lit(self.reads["parts"])).cast("int")
        return spread.select(*VERTEX, portion.alias(PORTION))

    def ends(self) -> pa.Table:
        """Of windows that count events: when they begin and end."""
        where = [*self.where[:1], Condition("kind", "=", PANE), *self.where[2:5]]
        panes = self.lake.reader.rows("trend_vertices", PANE_COLUMNS, where)
        return window_ends(
            self.windows,
            columns_of(panes),
            watermark=self.reads["watermark"],
            last_position=self.reads["last_position"],
            from_time=self.arguments["from_time"],
            to_time=self.arguments["to_time"],
        )


def trend_call(lake: Lake, arguments: Mapping[str, Any]) -> TrendCall:
    """Check a call.

    Raises
    ------
    PatternLakeError
        What is wrong with it.
    """
    snapshot = lake.snapshot(arguments["as_of"])
    published = snapshot.published("trends", arguments["query"] or "").as_mapping()
    known = snapshot.names("trends")
    reads = check_request(arguments, published, known, whole=False)
    where = (
        Condition("trend_id", "=", reads["number"]),
        Condition("kind", "=", EVENT),
        *shown_at(reads["base"], reads["batch"]),
        *between("pane", reads["low_pane"], reads["high_pane"]),
    )
    here = lake.small("trend_vertices", where)
    if here:
        reads = check_request(arguments, published, known, whole=True)
    return TrendCall(lake, arguments, reads, where, here)


def with_ends(call: TrendCall, rows: DataFrame | pa.Table) -> DataFrame | pa.Table:
    """Rows of windows; those of windows that count events with the times of their first and last event, if inside."""
    if not call.windows.counted:
        return rows
    if isinstance(rows, pa.Table):
        return _with_ends_here(rows, call.ends())
    names = {"first_time": "__first", "last_time": "__last", "final": "__final"}
    ends = call.lake.local(call.ends(), _ENDS)
    joined = rows.join(F.broadcast(ends.withColumnsRenamed(names)), "window")
    return joined.withColumns(
        {"window_start": F.col("__first"), "window_end": F.col("__last"), "final": F.col("__final")}
    )


def _with_ends_here(rows: pa.Table, ends: pa.Table) -> pa.Table:
    place = pc.index_in(rows["window"], value_set=ends["window"].combine_chunks())
    inside = pc.is_valid(place)
    rows, ends = rows.filter(inside), ends.take(place.filter(inside))
    for name, end in (("window_start", "first_time"), ("window_end", "last_time"), ("final", "final")):
        rows = rows.set_column(rows.column_names.index(name), name, ends[end])
    return rows


def _floored(number: str, by: int) -> str:
    """SQL text: a whole number divided and rounded down, below zero as well."""
    return f"((({number}) - pmod({number}, {by})) DIV {by})"

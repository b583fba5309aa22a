"""Where the vertices of a trend query come from: what the job `trends` keeps, or events, for the call alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from patternlake.delta_tables.gathering.gather import Gather
from patternlake.delta_tables.reading.state_reader import Condition, between
from patternlake.delta_tables.tables.trend_vertices import pane_ends
from patternlake.udfs.attributes import attribute_columns
from patternlake.udfs.language.predicate.scopes import BUILT_IN
from patternlake.udfs.partitions import PART, rows_of_key
from patternlake.udfs.record_batches import columns_of
from patternlake.udfs.trends.batch import VERTICES_SCHEMA, pane_rows
from patternlake.udfs.trends.ends import PANE_COLUMNS
from patternlake.udfs.trends.events import event_columns_read
from patternlake.udfs.trends.kinds import PANE
from patternlake.udfs.trends.panes import Windows
from patternlake.udfs.trends.vertex_rows import SIDES, VALUES, Layout, vertex_rows

if TYPE_CHECKING:
    from patternlake.sql_ext.lakes.lake import Lake

STORED = ("pane", PART, "key", "position", "time", "term", *SIDES)
"""The columns of a vertex."""
_PLACE = ("position", "time")
_PANES = pa.schema([VERTICES_SCHEMA.field(name) for name in PANE_COLUMNS])


@dataclass(frozen=True)
class KeptVertices:
    """Gives the vertices of a call from the table `trend_vertices`; can be handed on to another process.

    Attributes
    ----------
    layout
        The query, and how its vertices are written.
    where
        The conditions on the rows of the query's vertices, the kind of row aside.
    """

    layout: Layout
    where: tuple[Condition, ...]

    def gather(self, partition: Sequence[str], key: str | None, panes: tuple[int, int] | None = None) -> Gather:
        """The vertices of a key, all or at least those in a range of panes, both included.

        What `vertices_from` reads of them, ``key`` perhaps, and ``values`` where attributes are asked for; of lists
        those alone that hold something.
        """
        some = () if panes is None else between("pane", *panes)
        left_out = {side for side in SIDES if not self.layout.value_types(side)}
        if key is None or partition:
            left_out.add("key")
        columns = tuple(name for name in STORED if name not in left_out)
        return Gather("trend_vertices", columns, (*self.where, *some), tuple(partition), key)

    def panes(self, lake: Lake) -> pa.Table:
        """`PANE_COLUMNS` of all panes of the query, whose windows count events."""
        where = [one for one in self.where if one.column not in ("kind", "pane")]
        return lake.reader.rows("trend_vertices", PANE_COLUMNS, [*where, Condition("kind", "=", PANE)])


@dataclass(frozen=True)
class EventVertices:
    """Makes the same of events.

    Attributes
    ----------
    layout
        The query, and how its vertices are written.
    where
        The conditions on the events that can take part.
    all_where
        The conditions on all events of the stream.
    attributes
        Whose texts are the ``values`` of a vertex.
    """

    layout: Layout
    where: tuple[Condition, ...]
    all_where: tuple[Condition, ...]
    attributes: tuple[str, ...] | None = None

    @property
    def vertex_columns(self) -> tuple[str, ...]:
        """The columns of a vertex."""
        return STORED if self.attributes is None else (*STORED, VALUES)

    @property
    def columns(self) -> tuple[str, ...]:
        """What is read of each event."""
        read = event_columns_read(self.layout.query, self.layout.types)
        asked = self.attributes or ()
        of_events = [name for name in asked if name in BUILT_IN]
        return tuple(dict.fromkeys((*read, *of_events, *attribute_columns(asked, self.layout.types), "key")))

    def gather(self, partition: Sequence[str], key: str | None, panes: tuple[int, int] | None = None) -> Gather:
        """As of `KeptVertices`."""
        windows = Windows.of(self.layout.query)
        some: list[Condition] = []
        if panes is not None and windows.width:
            low, high = panes[0] * windows.pane, (panes[1] + 1) * windows.pane - 1
            some = between("position", low + 1, high + 1) if windows.counted else between("time", low, high)

        def make(events: pa.Table) -> pa.Table:
            return rows_of_key(pa.Table.from_batches([self.make_vertices(events)]), partition, key)

        return Gather("events", self.columns, (*self.where, *some), make=make)

    def make_vertices(self, events: pa.Table) -> pa.RecordBatch:
        """Make the `vertex_columns` of the vertices of events."""
        rows = vertex_rows(self.layout, columns_of(events), self.attributes)
        return rows.select(list(self.vertex_columns))

    def panes(self, lake: Lake) -> pa.Table:
        """`PANE_COLUMNS` of the panes of events."""
        windows = Windows.of(self.layout.query)
        if not lake.small("events", self.all_where, _PLACE):
            ends = pane_ends(lake.apart().frame("events", self.all_where), windows.pane)
            return ends.select(*PANE_COLUMNS).toArrow()
        events = lake.reader.rows("events", _PLACE, self.all_where)
        position, time = (events[name].cast(pa.int64()).to_numpy() for name in _PLACE)
        batches = [batch.select(list(PANE_COLUMNS)) for batch in pane_rows(windows, position, time)]
        return pa.Table.from_batches(batches, _PANES)


VertexSource = KeptVertices | EventVertices

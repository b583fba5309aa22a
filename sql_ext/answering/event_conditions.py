"""Which events an exact answer reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from patternlake.delta_tables.reading.state_reader import Condition, among, between
from patternlake.delta_tables.reading.visibility import visible_rows
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.udfs.blocks import positions_in
from patternlake.udfs.requests import BatchRange

_MOST_NAMES = 1000
"""So many names are looked for in the files; of more, all events are read."""


def event_conditions(
    events: BatchRange,
    *,
    names: Collection[str] | None = None,
    from_time: int | None = None,
    to_time: int | None = None,
) -> list[Condition]:
    """The conditions on the events of a stream that a publication shows, of some names and times."""
    where = visible_rows(TABLES["events"], events.number, events.number, events.base, events.batch)
    if names is not None and len(names) <= _MOST_NAMES:
        where.append(among("name", sorted(names)))
    where += between("time", from_time, to_time)
    return where


def in_blocks(blocks: Iterable[int]) -> list[Condition]:
    """The conditions on the events of some blocks of positions, which ascend."""
    ranges = positions_in(blocks)
    return between("position", *ranges[0]) if len(ranges) == 1 else [Condition("position", "in ranges", tuple(ranges))]

"""Events for exact answers: which rows a question needs."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from patternlake.delta_tables.catalogue import TABLES
from patternlake.delta_tables.partition_values import with_key as with_key
from patternlake.delta_tables.state_reader import Condition, among, between
from patternlake.delta_tables.visibility import visible_rows
from patternlake.udfs.partitions import PART as PART
from patternlake.udfs.partitions import are_shown_as
from patternlake.udfs.requests import BatchRange

_MOST_NAMES = 1000
"""So many names are looked for in the files; of more, all events are read."""


def of_stream(
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


def of_key(part: pa.Array, width: int, key: str) -> pa.Array:
    """bool[n]: whether instances belong to the partition that is shown as a key."""
    return are_shown_as(part, key)

"""One portion of an answer: the groups of some partitions, from their events."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from patternlake.udfs.groups.events import read
from patternlake.udfs.groups.request import GroupsRequest
from patternlake.udfs.partitions import partitions

ROWS = pa.schema(
    [
        ("key", pa.string()),
        ("t_start", pa.int64()),
        ("t_first", pa.int64()),
        ("t_end", pa.int64()),
        ("probability", pa.float64()),
        ("final", pa.bool_()),
    ]
)


def groups_of_partitions(request: GroupsRequest, rows: Mapping[str, pa.Array]) -> pa.Table:
    """The groups of one portion.

    Parameters
    ----------
    request
        The request.
    rows
        ``part`` (list of the values that the stream is partitioned by), ``position``, ``time``, ``step``, ``key``,
        ``name``, ``probability``, ``attributes`` of all `events` of some partitions, in any order; attributes may be
        left out where the query reads none.

    Returns
    -------
    Rows of `ROWS`, by partition and t_first.

    Raises
    ------
    PatternLakeError
        What the events do not allow.
    """
    compiled = request.groups.query
    keys, shown = partitions(rows["part"], max(1, len(compiled.partition)))
    events = read(compiled, request.types, rows)
    found = request.groups.answer(keys, events.steps, events.classes, events.probabilities)
    wanted = np.ones(len(found), np.bool_)
    if request.from_step is not None:
        wanted &= found.t_end >= request.from_step
    if request.to_step is not None:
        wanted &= found.t_end <= request.to_step
    columns_found = [
        pa.array(shown, pa.string()).take(pa.array(found.key[wanted])),
        *(pa.array(getattr(found, name)[wanted]) for name in ROWS.names[1:]),
    ]
    return pa.Table.from_arrays(columns_found, schema=ROWS)

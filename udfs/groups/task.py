"""What one task of an answer does: the groups of some partitions, from their events."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from patternlake.udfs.groups.events import check_keys, read_group_events
from patternlake.udfs.groups.request import GroupsRequest
from patternlake.udfs.groups.result import answer_rows
from patternlake.udfs.partitions import number_partitions


def groups_of_partitions(request: GroupsRequest, rows: Mapping[str, pa.Array]) -> pa.Table:
    """The groups of one task.

    Parameters
    ----------
    request
        The request.
    rows
        ``part`` (list of the values that the stream is partitioned by), ``position``, ``time``, ``step``, ``key``,
        ``name``, ``probability`` and the attributes that the query reads of all `events` of some partitions, in any
        order.

    Returns
    -------
    Rows of `result.ROWS`, by partition and t_first.

    Raises
    ------
    PatternLakeError
        What the events do not allow.
    """
    compiled = request.groups.query
    keys, shown = number_partitions(rows["part"])
    events = read_group_events(compiled, request.types, rows)
    check_keys(compiled, keys, shown, events, rows["key"])
    found = request.answer(keys, events)
    return answer_rows(request, found, shown)

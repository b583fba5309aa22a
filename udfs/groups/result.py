"""Rows of the answer of `match_groups`, from the groups of partitions."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from patternlake.udfs.groups.kernels.groups import GroupRows
from patternlake.udfs.groups.request import GroupsRequest

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


def answer_rows(request: GroupsRequest, found: GroupRows, shown: Sequence[str | None]) -> pa.Table:
    """The groups that end within the steps asked for, as rows of `ROWS`.

    Parameters
    ----------
    request
        The request.
    found
        Groups; their keys are places in what follows.
    shown
        What is shown of each partition.
    """
    wanted = request.wanted(found.t_end)
    columns = [
        pa.array(shown, pa.string()).take(pa.array(found.key[wanted])),
        *(pa.array(getattr(found, name)[wanted]) for name in ROWS.names[1:]),
    ]
    return pa.Table.from_arrays(columns, schema=ROWS)

"""How events are dealt out to the portions of a pattern; where blocks are ranges of ranks, events are counted first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from patternlake.delta_tables.gathering.gather import Gather
from patternlake.udfs.kleene.dealing import Dealing, count_buckets, ranks_of
from patternlake.udfs.kleene.request import KleeneRequest

_COUNTS = pa.schema([("bucket", pa.int64()), ("events", pa.int64())])


def dealing_of(gathered: Gather, request: KleeneRequest, collect: Callable[[Gather], pa.Table]) -> Dealing:
    """How the events of a request are dealt out.

    Parameters
    ----------
    gathered
        The events.
    request
        The request.
    collect
        Counts the events, where that is needed, by a Spark job of its own; see `gather.collect`.
    """
    portions = request.portions
    if portions.width is None or not portions.counted:
        return Dealing(request)

    def count(rows: pa.Table) -> pa.Table:
        return pa.Table.from_arrays([*map(pa.array, count_buckets(portions, rows["time"]))], schema=_COUNTS)

    columns = ("time",) if request.key is None else ("time", "key")
    found = collect(replace(gathered, columns=columns, make=count))
    return Dealing(request, ranks_of(found["bucket"].to_numpy(), found["events"].to_numpy()))

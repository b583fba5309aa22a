"""What one task of an answer does: the chains of some partitions, from their events."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from patternlake.udfs.funnels.events import FunnelEvents, read_funnel_events
from patternlake.udfs.funnels.kernels.chains import MODES, NO_WINDOW, Chains, furthest_chains
from patternlake.udfs.funnels.request import FunnelRequest
from patternlake.udfs.funnels.result import answer_rows, parts_of
from patternlake.udfs.partitions import columns_holding, partition_values


def rows_of_partitions(request: FunnelRequest, rows: Mapping[str, pa.Array]) -> pa.Table:
    """How far each partition of a portion gets.

    Parameters
    ----------
    request
        The request.
    rows
        ``part`` and `FunnelQuery.event_columns` of all `events` of some partitions, in any order.

    Returns
    -------
    Rows of `result.ROWS`, by partition.
    """
    events, chains = _chains(request, rows)
    return answer_rows(request, events, chains)


def parts_of_partitions(request: FunnelRequest, rows: Mapping[str, pa.Array]) -> pa.Table:
    """What a portion adds to a funnel, for `result.merge`; parameters as of `rows_of_partitions`.

    Returns
    -------
    Rows of `result.PARTS`.
    """
    events, chains = _chains(request, rows)
    groups = pa.nulls(len(events.shown), pa.string())
    if request.by is not None:
        # Of each chain's first event; where there is no chain, of none.
        entered = chains.reached > 0
        first = events.source[chains.rows[chains.offsets[:-1][entered]]]
        read = {name: rows[name].take(pa.array(first)) for name in columns_holding((request.by,), request.types)}
        values = partition_values(pa.table(read), (request.by,)).flatten()
        groups = values.take(pa.array(entered.cumsum() - 1, mask=~entered))
    return parts_of(request, events, chains, groups)


def _chains(request: FunnelRequest, rows: Mapping[str, pa.Array]) -> tuple[FunnelEvents, Chains]:
    query = request.query
    events = read_funnel_events(query, request.types, rows)
    within = NO_WINDOW if query.within is None else query.within.amount
    chains = furthest_chains(events.fits, events.spans, events.offsets, len(query.steps), within, MODES[request.mode])
    return events, chains

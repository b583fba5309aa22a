"""All state tables."""

from __future__ import annotations

from patternlake.delta_tables import (
    event_statistics,
    events,
    group_matches,
    group_state,
    intents,
    publications,
    quarantine,
    sketch_nodes,
    streams,
    trend_edges,
    trend_vertices,
)
from patternlake.delta_tables.table import Table

_MODULES = (
    streams,
    events,
    quarantine,
    intents,
    event_statistics,
    sketch_nodes,
    trend_vertices,
    trend_edges,
    group_state,
    group_matches,
    publications,
)
TABLES: dict[str, Table] = {module.TABLE.name: module.TABLE for module in _MODULES}
"""Tables by plain name."""

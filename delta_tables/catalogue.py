"""All state tables."""

from __future__ import annotations

from patternlake.delta_tables import (
    event_statistics,
    events,
    intents,
    publications,
    quarantine,
    sketch_nodes,
    streams,
)
from patternlake.delta_tables.table import Table

TABLES: dict[str, Table] = {
    module.TABLE.name: module.TABLE
    for module in (streams, events, quarantine, intents, event_statistics, sketch_nodes, publications)
}
"""Tables by plain name."""

"""All state tables."""

from __future__ import annotations

from patternlake.delta_tables.schema.table import Table
from patternlake.delta_tables.tables import (
    alert_deliveries,
    alerts,
    event_statistics,
    events,
    forecast_evaluation,
    forecasts,
    group_matches,
    group_state,
    held_alerts,
    intents,
    machine_instances,
    machine_states,
    machine_transitions,
    object_numbers,
    observed_selectivities,
    pattern_matches,
    pattern_state,
    publications,
    quarantine,
    sketch_nodes,
    streams,
    subscription_matches,
    subscriptions,
    trend_edges,
    trend_vertices,
)

_MODULES = (
    streams,
    events,
    quarantine,
    object_numbers,
    intents,
    event_statistics,
    observed_selectivities,
    sketch_nodes,
    trend_vertices,
    trend_edges,
    group_state,
    group_matches,
    pattern_state,
    pattern_matches,
    subscriptions,
    machine_states,
    machine_transitions,
    machine_instances,
    subscription_matches,
    forecasts,
    forecast_evaluation,
    held_alerts,
    alerts,
    alert_deliveries,
    publications,
)
TABLES: dict[str, Table] = {module.TABLE.name: module.TABLE for module in _MODULES}
"""Tables by plain name."""

"""All state tables."""

from __future__ import annotations

from importlib import import_module

from patternlake.delta_tables.schema.table import Table

_MODULES = """
streams events quarantine object_numbers intents event_statistics observed_selectivities sketch_nodes
trend_vertices trend_edges group_state group_matches pattern_state pattern_matches subscriptions
machine_states machine_transitions machine_instances subscription_matches forecasts forecast_evaluation
held_alerts alerts alert_deliveries publications
"""
TABLES: dict[str, Table] = {
    module: import_module(f"patternlake.delta_tables.tables.{module}").TABLE for module in _MODULES.split()
}
"""Tables by plain name."""

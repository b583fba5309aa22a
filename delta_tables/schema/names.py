"""What the tables and databases of a lake are called in the catalog."""

from __future__ import annotations

INTERNAL_VIEWS = frozenset(
    (
        *("sketch_nodes", "trend_vertices", "trend_edges", "group_state", "pattern_state", "machine_states"),
        *("machine_transitions", "machine_instances", "held_alerts", "observed_selectivities"),
    )
)
"""Tables whose views show what jobs and functions work with, and not an answer: they stand with the Delta tables."""


def log_name(table: str) -> str:
    """Name of the Delta table behind a table, given its plain name; its folder is called so as well."""
    return f"{table}_log"


def internal_name(database: str) -> str:
    """Name of the database with a lake's Delta tables and views of internal state, given that of the lake."""
    return f"{database}_internal"

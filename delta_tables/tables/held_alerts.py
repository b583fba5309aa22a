"""Table `held_alerts`: what an alert that is `quiet` has held back, each once."""

from __future__ import annotations

from patternlake.delta_tables.schema.table import Column, Table
from patternlake.delta_tables.tables import alerts
from patternlake.delta_tables.tables.plain_view import plain_view

TABLE: Table = Table(
    name="held_alerts",
    comment="What quiet alerts have held back, each once; the next alert of its key counts it.",
    columns=(
        *(column for column in alerts.TABLE.columns if column.name != "held_back"),
        Column("held_by", "STRING", "alert_id of the alert that it is near to"),
    ),
    keys=("alert_number", "alert_id"),
    view=lambda log: plain_view(TABLE, log),
    seen=(
        "alert_id held_by alert stream kind object key probability state bindings first_time last_time t_start "
        "t_first t_end found_in watermark first_seen_at batch_id"
    ),
    job=alerts.JOB,
    object_column="alert_number",
    partitions=("alert_number",),
    properties=dict(alerts.TABLE.properties),
)

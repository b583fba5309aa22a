"""Table `held_alerts`: what an alert that is `quiet` has held back, each once."""

from __future__ import annotations

from patternlake.delta_tables.reading.visibility import visible_text
from patternlake.delta_tables.schema.table import Column, LogName, Table
from patternlake.delta_tables.tables import alerts
from patternlake.delta_tables.tables.publications import current


def _view(log: LogName) -> str:
    return f"""SELECT h.alert_id, h.held_by, h.alert, p.stream, h.kind, h.object, h.key, h.probability, h.state,
  h.bindings, h.first_time, h.last_time, h.t_start, h.t_first, h.t_end, h.found_in, h.watermark, h.first_seen_at,
  h.batch_id
FROM {log("held_alerts")} h JOIN ({current(log, alerts.JOB)}) p ON {visible_text(TABLE, "h", "p")}"""


TABLE = Table(
    name="held_alerts",
    comment="What quiet alerts have held back, each once; the next alert of its key counts it.",
    columns=(
        *(column for column in alerts.TABLE.columns if column.name != "held_back"),
        Column("held_by", "STRING", "alert_id of the alert that it is near to"),
    ),
    keys=("alert_number", "alert_id"),
    view=_view,
    job=alerts.JOB,
    object_column="alert_number",
    partitions=("alert_number",),
    properties=dict(alerts.TABLE.properties),
)

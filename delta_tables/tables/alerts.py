"""Table `alerts`: what was found worth telling, each once, and whether it has been delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.reading.visibility import published_rows, visible_text
from patternlake.delta_tables.schema.table import Column, LogName, Table
from patternlake.delta_tables.tables.alert_deliveries import delivered_text
from patternlake.delta_tables.tables.publications import current

if TYPE_CHECKING:
    from patternlake.delta_tables.tables.publications import Publication


JOB = "alerts"


def _view(log: LogName) -> str:
    return f"""SELECT a.alert_id, a.alert, p.stream, a.kind, a.object, a.key, a.probability, a.state, a.bindings,
  a.first_time, a.last_time, a.t_start, a.t_first, a.t_end, a.found_in, a.watermark,
  coalesce(a.held_back, 0) AS held_back, a.first_seen_at, a.batch_id,
  coalesce(d.attempts, 0) AS attempts, d.delivered_at, coalesce(d.dead_letter, false) AS dead_letter
FROM {log("alerts")} a JOIN ({current(log, JOB)}) p ON {visible_text(TABLE, "a", "p")}
LEFT JOIN ({delivered_text(log)}) d ON a.alert_number = d.alert_number AND a.alert_id = d.alert_id"""


TABLE = Table(
    name="alerts",
    comment="What alerts have told: matches, forecasts and groups, each once. A row has the columns of its kind.",
    columns=(
        Column("alert_number", "INT", "number of the alert, as object_numbers gave it out"),
        Column("stream_id", "INT", "number of the stream"),
        Column("batch_id", "BIGINT", "the batch of the job alerts that wrote the row"),
        Column("found_in", "BIGINT", "the batch of predict, groups or patterns that brought what is told"),
        Column("last_time", "TIMESTAMP", "subscription, pattern: time of the last event"),
        Column("first_time", "TIMESTAMP", "subscription, pattern: time of the earliest event"),
        Column("first_seen_at", "TIMESTAMP", "when the batch that wrote the row was begun"),
        Column("probability", "DOUBLE", "forecast, group: how likely it is"),
        Column("alert_id", "STRING", "digest of what is told: equal ones are the same alert"),
        Column("alert", "STRING", "name of the alert"),
        Column("kind", "STRING", "subscription, forecast, group or pattern"),
        Column("object", "STRING", "name of the subscription, the query for groups or the kept pattern"),
        Column("key", "STRING", "values of the PARTITION BY columns, joined by a comma; NULL without"),
        Column("state", "STRING", "forecast: how far the partial match is"),
        Column("t_start", "BIGINT", "group: first step of its matches"),
        Column("t_first", "BIGINT", "group: the step at which its earliest match ends"),
        Column("t_end", "BIGINT", "group: last step of its matches"),
        Column(
            "bindings",
            "MAP<STRING,ARRAY<BIGINT>>",
            "subscription, forecast, pattern: operand to positions; empty: has none",
        ),
        Column("watermark", "TIMESTAMP", "forecast: the stream's when it was made"),
        Column("held_back", "BIGINT", "how many of this key were held back since the alert before"),
    ),
    keys=("alert_number", "alert_id"),
    view=_view,
    seen=(
        "alert_id alert stream kind object key probability state bindings first_time last_time t_start t_first t_end "
        "found_in watermark held_back:BIGINT! first_seen_at batch_id attempts:INT! delivered_at:TIMESTAMP "
        "dead_letter:BOOLEAN!"
    ),
    job=JOB,
    object_column="alert_number",
    partitions=("alert_number",),
    properties={"delta.dataSkippingStatsColumns": "stream_id,batch_id,found_in,last_time"},
)


def told_by(publication: Publication) -> list[Condition]:
    """Return the conditions on the alerts that a publication makes visible."""
    return published_rows(TABLE, publication)

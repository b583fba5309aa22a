"""Table `subscription_matches`: the matches of every subscription, one for each event that completes some."""

from __future__ import annotations

from patternlake.delta_tables.reading.visibility import visible_text
from patternlake.delta_tables.schema.partition_values import shown_text
from patternlake.delta_tables.schema.table import Column, LogName, Table
from patternlake.delta_tables.tables.publications import current


def _view(log: LogName) -> str:
    return f"""SELECT p.stream, m.subscription, {shown_text("m.part")} AS partition, m.first_position,
  m.last_position, m.first_time, m.last_time, m.bindings, m.from_batch
FROM {log("subscription_matches")} m JOIN ({current(log, "predict")}) p ON {visible_text(TABLE, "m", "p")}"""


TABLE = Table(
    name="subscription_matches",
    comment="Matches of subscriptions: per partition and completing event the smallest assignment.",
    columns=(
        Column("stream_id", "INT", "number of the stream"),
        Column("subscription", "STRING", "name of the subscription"),
        Column("last_time", "TIMESTAMP", "time of the completing event"),
        Column("from_batch", "BIGINT", "the batch that wrote the row"),
        Column("to_batch", "BIGINT", "the batch that replaced the row; NULL: none did"),
        Column("first_position", "BIGINT", "position of the first event"),
        Column("last_position", "BIGINT", "position of the completing event"),
        Column("first_time", "TIMESTAMP", "time of the first event"),
        Column("part", "ARRAY<STRING>", "values of the PARTITION BY columns"),
        Column("bindings", "MAP<STRING,ARRAY<BIGINT>>", "operand to the position of its event; empty: not taken"),
    ),
    keys=("stream_id", "subscription", "part", "last_position", "from_batch"),
    view=_view,
    job="predict",
    partitions=("stream_id",),
    properties={"delta.dataSkippingStatsColumns": "subscription,last_time,from_batch,to_batch"},
)

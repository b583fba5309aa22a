"""Table `subscription_matches`: the matches of every subscription, one for each event that completes some."""

from __future__ import annotations

from patternlake.delta_tables.schema.table import Column, Table
from patternlake.delta_tables.tables.plain_view import plain_view

TABLE: Table = Table(
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
    view=lambda log: plain_view(TABLE, log),
    seen="stream subscription partition:STRING first_position last_position first_time last_time bindings from_batch",
    job="predict",
    partitions=("stream_id",),
    properties={"delta.dataSkippingStatsColumns": "subscription,last_time,from_batch,to_batch"},
)

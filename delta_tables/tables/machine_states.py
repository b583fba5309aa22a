"""Table `machine_states`: the states of every subscription's machines; equal ones of several have one number."""

from __future__ import annotations

from patternlake.delta_tables.schema.table import Column, Table
from patternlake.delta_tables.tables.plain_view import plain_view

TABLE: Table = Table(
    name="machine_states",
    comment="States of the state machines of every subscription. Subscriptions that share a state have one state_id.",
    columns=(
        Column("stream_id", "INT", "number of the stream"),
        Column("subscription", "STRING", "name of the subscription"),
        Column("state_id", "STRING", "what makes the state what it is, as a digest: prefix, partition, window, decay"),
        Column("from_batch", "BIGINT", "the batch that wrote the row"),
        Column("to_batch", "BIGINT", "the batch that replaced the row; NULL: none did"),
        Column("state", "STRING", "name of the state: N2, or N1(N1, N0) with those of child machines"),
        Column("waits", "BOOLEAN", "whether it has a self link; else it lasts for one event"),
        Column("completes", "BOOLEAN", "whether the subscription is matched"),
        Column("operands", "ARRAY<STRING>", "operands that may be bound in it"),
    ),
    keys=("stream_id", "subscription", "state_id", "from_batch"),
    view=lambda log: plain_view(TABLE, log),
    seen="stream subscription state state_id waits completes operands from_batch",
    job="predict",
    partitions=("stream_id",),
    properties={"delta.dataSkippingStatsColumns": "subscription,state_id,from_batch,to_batch"},
)

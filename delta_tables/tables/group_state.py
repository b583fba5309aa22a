"""Table `group_state`: what the job `groups` remembers of every partition of a query between its runs."""

from __future__ import annotations

from patternlake.delta_tables.schema.table import Column, Table
from patternlake.delta_tables.tables.plain_view import plain_view

TABLE: Table = Table(
    name="group_state",
    comment="What is remembered of every partition of a query for groups: open groups, live starts, the last step.",
    columns=(
        Column("group_id", "INT", "number of the query, as object_numbers gave it out"),
        Column("stream_id", "INT", "number of the stream"),
        Column("part", "ARRAY<STRING>", "values of the PARTITION BY columns; the stream's key without"),
        Column("from_batch", "BIGINT", "the batch that wrote the row"),
        Column("to_batch", "BIGINT", "the batch that replaced the row; NULL: none did"),
        Column("last_step", "BIGINT", "greatest step seen"),
        Column("live_starts", "BIGINT", "steps at which a match may have begun that may still be completed"),
        Column("open_groups", "BIGINT", "groups that later steps may still change"),
        Column("state", "BINARY", "products, groups and vectors, as the kernels write them"),
    ),
    keys=("group_id", "part", "from_batch"),
    view=lambda log: plain_view(TABLE, log),
    seen="stream query=publications.object partition:STRING last_step live_starts open_groups state from_batch",
    job="groups",
    object_column="group_id",
    partitions=("group_id",),
    properties={"delta.dataSkippingStatsColumns": "from_batch,to_batch,last_step"},
)

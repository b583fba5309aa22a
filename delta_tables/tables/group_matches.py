"""Table `group_matches`: the groups of every configured query. Closed ones stand for good; open ones are replaced."""

from __future__ import annotations

from patternlake.delta_tables.schema.table import Column, Table
from patternlake.delta_tables.tables.plain_view import plain_view

TABLE: Table = Table(
    name="group_matches",
    comment="Groups of overlapping matches of every configured query for groups.",
    columns=(
        Column("group_id", "INT", "number of the query, as object_numbers gave it out"),
        Column("stream_id", "INT", "number of the stream"),
        Column("part", "ARRAY<STRING>", "values of the PARTITION BY columns; the stream's key without"),
        Column("t_start", "BIGINT", "first step of the group's matches"),
        Column("t_first", "BIGINT", "the step at which its earliest match ends"),
        Column("t_end", "BIGINT", "last step of its matches"),
        Column("from_batch", "BIGINT", "the batch that wrote the row"),
        Column("to_batch", "BIGINT", "the batch that replaced the row; NULL: none did"),
        Column(
            "closed", "BOOLEAN", "whether the row stands for good; else the next batch of its partition replaces it"
        ),
        Column("final", "BOOLEAN", "whether nothing that may still come can change the row"),
        Column("probability", "DOUBLE", "that at least one match of the group occurs"),
    ),
    keys=("group_id", "part", "t_first", "from_batch"),
    view=lambda log: plain_view(TABLE, log),
    seen="stream query=publications.object partition:STRING t_start t_first t_end probability final from_batch",
    job="groups",
    object_column="group_id",
    partitions=("group_id",),
    properties={"delta.dataSkippingStatsColumns": "t_start,t_first,t_end,from_batch,to_batch"},
)

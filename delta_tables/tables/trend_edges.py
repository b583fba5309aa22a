"""Table `trend_edges`: from-edges and to-edges between event and attribute vertices, by pane and partition."""

from __future__ import annotations

from patternlake.delta_tables.schema.table import Column, Table
from patternlake.delta_tables.tables.plain_view import plain_view

TABLE: Table = Table(
    name="trend_edges",
    comment="Edges between event vertices and attribute vertices of every trend query.",
    columns=(
        Column("trend_id", "INT", "number of the query, as object_numbers gave it out"),
        Column("kind", "STRING", "from: attribute vertex to event; to: event to a run of attribute vertices"),
        Column("stream_id", "INT", "number of the stream"),
        Column("pane", "BIGINT", "number of the pane; 0 without WITHIN"),
        Column("part", "ARRAY<STRING>", "values of the PARTITION BY columns; empty without"),
        Column("step", "INT", "number of the step between terms, from 0"),
        Column("from_batch", "BIGINT", "the batch that wrote the row"),
        Column("to_batch", "BIGINT", "the batch that replaced the row; NULL: none did"),
        Column("first", "BIGINT", "number of the attribute vertex, or of the first of the run"),
        Column("last", "BIGINT", "the same, or number of the last of the run"),
        Column("position", "BIGINT", "position of the event"),
        Column("term", "INT", "number of the term that takes the event, from 0"),
    ),
    keys=("trend_id", "kind", "pane", "part", "step", "position", "first", "from_batch"),
    view=lambda log: plain_view(TABLE, log),
    seen="stream trend=publications.object kind pane partition:STRING step first last position term from_batch",
    job="trends",
    object_column="trend_id",
    partitions=("trend_id",),
    properties={"delta.dataSkippingStatsColumns": "kind,pane,from_batch,to_batch,position"},
)

"""Table `quarantine`: the rows of sources that could not become events, each with its reason."""

from __future__ import annotations

from patternlake.delta_tables.schema.table import Column, Table
from patternlake.delta_tables.tables.plain_view import plain_view

TABLE: Table = Table(
    name="quarantine",
    comment="Rows of sources that could not become events.",
    columns=(
        Column("stream_id", "INT", "number of the stream"),
        Column("reason", "STRING", "short code: time, name, cast, late, probability, step, corrupt, …"),
        Column("batch_id", "BIGINT", "the batch that met the row"),
        Column("detail", "STRING", "what is wrong with which value"),
        Column("origin", "STRING", "file or table that the row came from"),
        Column("row", "STRING", "JSON: the source's row"),
    ),
    keys=(),
    view=lambda log: plain_view(TABLE, log),
    seen="stream reason detail row origin batch_id",
    job="ingest",
    partitions=("stream_id",),
    properties={"delta.dataSkippingStatsColumns": "reason,batch_id"},
)

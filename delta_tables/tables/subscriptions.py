"""Table `subscriptions`: the catalogue of composite subscriptions, as configured at every batch."""

from __future__ import annotations

from patternlake.delta_tables.schema.table import Column, Table
from patternlake.delta_tables.tables.plain_view import plain_view

TABLE: Table = Table(
    name="subscriptions",
    comment="Composite subscriptions: what is asked of a stream, and how forecasts are made.",
    columns=(
        Column("stream_id", "INT", "number of the stream"),
        Column("subscription", "STRING", "its name"),
        Column("from_batch", "BIGINT", "the batch that wrote the row"),
        Column("to_batch", "BIGINT", "the batch that replaced the row; NULL: none did"),
        Column("lookahead", "INT", "events that a forecast looks ahead, unless a call says otherwise"),
        Column(
            "threshold",
            "DOUBLE",
            "probability that a forecast must exceed, unless a call says otherwise; NULL: as the evaluation says",
        ),
        Column("smoothing", "DOUBLE", "added to the count of every possible move"),
        Column("decay", "DOUBLE", "share of a count that is lost in a day of event time"),
        Column("operands", "ARRAY<STRING>", "names of its operands in text order"),
        Column("partitioned_by", "ARRAY<STRING>", "columns of PARTITION BY"),
        Column("query", "STRING", "the pattern"),
        Column("params", "MAP<STRING,STRING>", "values of its parameters"),
    ),
    keys=("stream_id", "subscription", "from_batch"),
    view=lambda log: plain_view(TABLE, log),
    seen="stream subscription query params lookahead threshold smoothing decay operands partitioned_by from_batch",
    job="predict",
    partitions=("stream_id",),
    properties={"delta.dataSkippingStatsColumns": "subscription,from_batch,to_batch"},
)

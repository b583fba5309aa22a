"""Table `subscriptions`: the catalogue of composite subscriptions, as configured at every batch."""

from __future__ import annotations

from patternlake.delta_tables.reading.visibility import visible_text
from patternlake.delta_tables.schema.table import Column, LogName, Table
from patternlake.delta_tables.tables.publications import current


def _view(log: LogName) -> str:
    return f"""SELECT p.stream, s.subscription, s.query, s.params, s.lookahead, s.threshold, s.smoothing, s.decay,
  s.operands, s.partitioned_by, s.from_batch
FROM {log("subscriptions")} s JOIN ({current(log, "predict")}) p ON {visible_text(TABLE, "s", "p")}"""


TABLE = Table(
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
    view=_view,
    job="predict",
    partitions=("stream_id",),
    properties={"delta.dataSkippingStatsColumns": "subscription,from_batch,to_batch"},
)

"""Table `forecast_evaluation`: how good forecasts were on a range of events that they were not trained on."""

from __future__ import annotations

from patternlake.delta_tables.reading.visibility import visible_text
from patternlake.delta_tables.schema.table import Column, LogName, Table
from patternlake.delta_tables.tables.publications import current


def _view(log: LogName) -> str:
    return f"""SELECT p.stream, e.subscription, e.lookahead, e.kind, e.low, e.high, e.forecasts, e.hits,
  e.mean_probability, try_divide(e.hits, e.forecasts) AS precision, try_divide(e.hits, e.all_hits) AS recall, e.brier,
  e.from_batch
FROM {log("forecast_evaluation")} e JOIN ({current(log, "evaluate")}) p ON {visible_text(TABLE, "e", "p")}"""


TABLE = Table(
    name="forecast_evaluation",
    comment="Forecasts of every live row at every event of the test range, against what came.",
    columns=(
        Column("stream_id", "INT", "number of the stream"),
        Column("subscription", "STRING", "name of the subscription"),
        Column("from_batch", "BIGINT", "the batch that wrote the row"),
        Column("to_batch", "BIGINT", "the batch that replaced the row; NULL: none did"),
        Column("lookahead", "INT", "events that the forecasts looked ahead"),
        Column("kind", "STRING", "threshold: all forecasts above low; calibration: those above low up to high"),
        Column("low", "DOUBLE", "forecasts of a probability greater than this"),
        Column("high", "DOUBLE", "and at most this"),
        Column("forecasts", "BIGINT", "how many"),
        Column("hits", "BIGINT", "of them: those whose match was completed in time (true positives)"),
        Column("all_hits", "BIGINT", "of all forecasts: those whose match was completed in time"),
        Column("mean_probability", "DOUBLE", "mean of these forecasts"),
        Column("brier", "DOUBLE", "mean squared difference of all forecasts of this lookahead from what came"),
    ),
    keys=("stream_id", "subscription", "lookahead", "kind", "low", "from_batch"),
    view=_view,
    seen=(
        "stream subscription lookahead kind low high forecasts hits mean_probability precision:DOUBLE recall:DOUBLE "
        "brier from_batch"
    ),
    job="evaluate",
    partitions=("stream_id",),
    properties={"delta.dataSkippingStatsColumns": "subscription,lookahead,from_batch,to_batch"},
)

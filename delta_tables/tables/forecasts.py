"""Table `forecasts`: what was forecast at each batch of `predict`, of the subscriptions whose forecasts are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patternlake.delta_tables.reading.state_reader import Condition, between
from patternlake.delta_tables.schema.quoting import shown_text
from patternlake.delta_tables.schema.table import Column, LogName, Table

if TYPE_CHECKING:
    from datetime import datetime

    from patternlake.delta_tables.committing.database import Database
    from patternlake.delta_tables.tables.publications import Publication

JOB = "predict"


def _view(log: LogName) -> str:
    # What was forecast stays so, whatever was rebuilt since: all published batches are seen, not those of one base.
    return f"""SELECT p.stream, f.subscription, f.batch_id, p.forecast_at, p.watermark, {shown_text("f.part")} AS key,
  f.joins, f.state, f.bindings, f.lookahead, f.alpha, f.probability, f.trained_on, f.is_best
FROM {log("forecasts")} f JOIN (
  SELECT stream, stream_id, batch_id, min(published_at) AS forecast_at, min_by(watermark, published_at) AS watermark
  FROM {log("publications")} WHERE job = '{JOB}' GROUP BY stream, stream_id, batch_id
) p ON f.stream_id = p.stream_id AND f.batch_id = p.batch_id"""


TABLE = Table(
    name="forecasts",
    comment="Forecasts of live partial matches as they were made at each batch, of subscriptions that keep them.",
    columns=(
        Column("stream_id", "INT", "number of the stream"),
        Column("subscription", "STRING", "name of the subscription"),
        Column("batch_id", "BIGINT", "the batch of predict that made the forecast"),
        Column("lookahead", "INT", "events that the forecast looks ahead"),
        Column("probability", "DOUBLE", "that the partial match is completed within so many events"),
        Column("alpha", "DOUBLE", "that it is completed by exactly the last of them"),
        Column("trained_on", "BIGINT", "how often the state had been left"),
        Column("is_best", "BOOLEAN", "whether it is the most probable of its partition"),
        Column("state", "STRING", "name of the state, such as N2"),
        Column("part", "ARRAY<STRING>", "values of the PARTITION BY columns"),
        Column("joins", "ARRAY<STRING>", "values of the join variables, up to the last that is bound"),
        Column("bindings", "MAP<STRING,ARRAY<BIGINT>>", "operand to the position of its event; empty: has none"),
    ),
    keys=("stream_id", "subscription", "batch_id", "part", "joins", "bindings"),
    view=_view,
    seen=(
        "stream subscription batch_id forecast_at:TIMESTAMP watermark:TIMESTAMP key:STRING joins state bindings "
        "lookahead alpha probability trained_on is_best"
    ),
    job=JOB,
    partitions=("stream_id",),
    properties={"delta.dataSkippingStatsColumns": "subscription,batch_id,probability"},
    momentary=True,
)


class ForecastsReader:
    """Reads kept forecasts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def batches(self, publication: Publication, after: int | None) -> dict[int, datetime | None]:
        """Return the published batches of `predict` from one on, up to a publication: their watermarks by number.

        Numbers ascend. Of a batch that was published several times, the first time counts.

        Parameters
        ----------
        publication
            Of `predict`.
        after
            The first of them; None: there is no such bound.
        """
        mine = [Condition("job", "=", JOB), Condition("object", "=", publication.object)]
        where = [*mine, *between("batch_id", after, publication.batch_id)]
        rows = self._database.state.rows("publications", ("batch_id", "published_at", "watermark"), where)
        in_order = rows.sort_by([("batch_id", "ascending"), ("published_at", "descending")])
        return dict(zip(in_order["batch_id"].to_pylist(), in_order["watermark"].to_pylist(), strict=True))


def made_by(publication: Publication, subscription: str, after: int | None) -> list[Condition]:
    """Return the conditions on the forecasts of a subscription that batches made from one on, up to a publication.

    Those of batches that were never published are among them.
    """
    mine = [Condition("stream_id", "=", publication.stream_id), Condition("subscription", "=", subscription)]
    return [*mine, *between("batch_id", after, publication.batch_id)]

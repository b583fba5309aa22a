"""Table `quarantine`: the rows of sources that could not become events, each with its reason."""

from __future__ import annotations

from patternlake.delta_tables.reading.visibility import visible_text
from patternlake.delta_tables.schema.table import Column, LogName, Table
from patternlake.delta_tables.tables.publications import current


def _view(log: LogName) -> str:
    return f"""SELECT p.stream, q.reason, q.detail, q.`row`, q.origin, q.batch_id
FROM {log("quarantine")} q JOIN ({current(log, "ingest")}) p ON {visible_text(TABLE, "q", "p")}"""


TABLE = Table(
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
    view=_view,
    job="ingest",
    partitions=("stream_id",),
    properties={"delta.dataSkippingStatsColumns": "reason,batch_id"},
)

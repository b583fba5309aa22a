"""Table `streams`: name, configuration and attribute types of every stream."""

from __future__ import annotations

from patternlake.delta_tables.reading.visibility import visible_text
from patternlake.delta_tables.schema.table import Column, LogName, Table
from patternlake.delta_tables.tables.publications import current


def _view(log: LogName) -> str:
    return f"""SELECT stream, stream_id, timezone, types, configuration, batch_id
FROM (
  SELECT p.stream, s.stream_id, s.timezone, s.types, s.configuration, s.batch_id,
    row_number() OVER (PARTITION BY s.stream_id ORDER BY s.batch_id DESC) AS age
  FROM {log("streams")} s JOIN ({current(log, "ingest")}) p ON {visible_text(TABLE, "s", "p")}
)
WHERE age = 1"""


TABLE = Table(
    name="streams",
    comment="One row per stream and change of its configuration; the last published one holds.",
    columns=(
        Column("stream_id", "INT", "number of the stream, as object_numbers gave it out"),
        Column("batch_id", "BIGINT", "the batch that wrote the row"),
        Column("base_batch", "BIGINT", "first batch whose rows count"),
        Column("name", "STRING", "name of the stream"),
        Column("timezone", "STRING", "zone in which the source's times are read"),
        Column("types", "MAP<STRING, STRING>", "attribute to Spark type"),
        Column("configuration", "STRING", "JSON: the stream's configuration"),
    ),
    keys=("stream_id", "batch_id"),
    view=_view,
    seen="stream stream_id timezone types configuration batch_id",
    job="ingest",
)

"""Table `streams`: name, configuration and attribute types of every stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from patternlake.delta_tables import documents
from patternlake.delta_tables.literal_row import literal_row
from patternlake.delta_tables.table import Column, LogName, Table
from patternlake.delta_tables.tables.publications import current
from patternlake.delta_tables.visibility import visible_text

if TYPE_CHECKING:
    from patternlake.delta_tables.batches import Batch
    from patternlake.delta_tables.database import Database


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
    job="ingest",
)


class StreamsWriter:
    """Registers streams as part of an ingest batch."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def register(self, batch: Batch, *, types: Mapping[str, str], timezone: str) -> None:
        """Write the stream of a batch, with the batch's configuration, where it is new or differs.

        Parameters
        ----------
        batch
            The ingest batch.
        types
            Attribute to Spark type.
        timezone
            Zone in which the source's times are read.
        """
        before = batch.previous
        rebuilt = batch.base_batch == batch.batch_id
        if before is not None and not rebuilt and before.configuration_hash == batch.intent.configuration_hash:
            return
        values = {
            "stream_id": batch.stream_id,
            "batch_id": batch.batch_id,
            "base_batch": batch.base_batch,
            "name": batch.stream,
            "timezone": timezone,
            "types": dict(types),
            "configuration": documents.to_text(batch.configuration),
        }
        batch.append(TABLE.name, literal_row(self._database.spark, TABLE, values))

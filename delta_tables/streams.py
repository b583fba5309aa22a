"""Table `streams`: name, configuration and attribute types of every stream."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from patternlake.delta_tables import documents
from patternlake.delta_tables.one_row import one_row
from patternlake.delta_tables.publications import current
from patternlake.delta_tables.table import Column, LogName, Table
from patternlake.delta_tables.visibility import visible, visible_text
from patternlake.udfs.errors import ArgumentError

if TYPE_CHECKING:
    from patternlake.delta_tables.batches import Batch
    from patternlake.delta_tables.database import Database
    from patternlake.delta_tables.publications import Publication

LONGEST_NAME = 255


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
        Column("stream_id", "INT", "number of the stream: 31 bits of its name's CRC-32"),
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


@dataclass(frozen=True)
class Stream:
    """What is known about a stream."""

    name: str
    stream_id: int
    configuration: Mapping[str, Any]
    types: Mapping[str, str]
    timezone: str


def stream_id(name: str) -> int:
    """Return a stream's number; in SQL, ``CAST(crc32(name) & 2147483647 AS INT)``."""
    return zlib.crc32(name.encode()) & 0x7FFFFFFF


def check_name(what: str, name: str) -> None:
    """Refuse a name that is empty or too long.

    Raises
    ------
    ArgumentError
        It has no character, or more than 255.
    """
    if not name or len(name) > LONGEST_NAME:
        begin = name if len(name) <= 40 else name[:40] + "…"
        raise ArgumentError(f"the {what} name '{begin}' has {len(name)} characters; 1 to {LONGEST_NAME} would be right")


class StreamsReader:
    """Reads what is published about streams."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, publication: Publication) -> Stream | None:
        """Return what held for the stream of an ingest publication."""
        rows = self._database.table(TABLE.name).where(visible(TABLE, publication))
        found = rows.orderBy(F.desc("batch_id")).limit(1).collect()
        if not found:
            return None
        row = found[0]
        return Stream(row.name, row.stream_id, documents.from_text(row.configuration), row.types, row.timezone)


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
        wanted = Stream(batch.stream, batch.stream_id, batch.configuration, dict(types), timezone)
        before = batch.previous
        rebuilt = batch.base_batch == batch.batch_id
        if before is not None and not rebuilt and StreamsReader(self._database).of(before) == wanted:
            return
        values = {
            "stream_id": wanted.stream_id,
            "batch_id": batch.batch_id,
            "base_batch": batch.base_batch,
            "name": wanted.name,
            "timezone": timezone,
            "types": wanted.types,
            "configuration": documents.to_text(wanted.configuration),
        }
        batch.append(TABLE.name, one_row(self._database.spark, TABLE, values))

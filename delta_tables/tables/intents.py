"""Table `intents`: what a batch is going to read, written before its first row.

A run that finds an intent without a publication does that batch, not its own, so that a source that grew in between
changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
from delta.exceptions import ConcurrentTransactionException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from patternlake.delta_tables.reading.state_reader import Condition, between
from patternlake.delta_tables.schema import documents, timestamps
from patternlake.delta_tables.schema.table import Column, Table
from patternlake.delta_tables.writing import writes
from patternlake.delta_tables.writing.literal_row import literal_row
from patternlake.udfs.errors import ConcurrentRunError
from patternlake.udfs.record_batches import rows_in_micros

if TYPE_CHECKING:
    from patternlake.delta_tables.committing.database import Database

TABLE = Table(
    name="intents",
    comment="One row per batch that was begun: what it reads, by which run, under which configuration.",
    columns=(
        Column("job", "STRING", "job that began the batch"),
        Column("object", "STRING", "what the job maintains"),
        Column("stream_id", "INT", "number of the stream"),
        Column("object_id", "INT", "number of the object: of a query its own, else that of the stream"),
        Column("batch_id", "BIGINT", "number of the batch"),
        Column("base_batch", "BIGINT", "first batch whose rows count; equal to batch_id for a rebuild"),
        Column("begun_at", "TIMESTAMP", "when the batch was begun"),
        Column("stream", "STRING", "name of the stream"),
        Column("run_id", "STRING", "the run that began the batch"),
        Column("source_from", "BIGINT", "position before the first of the input"),
        Column("source_to", "BIGINT", "last position of the input"),
        Column("source", "STRING", "JSON: what is read"),
        Column("configuration_hash", "STRING", "SHA-256 of the configuration"),
        Column("configuration", "STRING", "JSON: the object's configuration"),
    ),
    keys=("job", "object", "batch_id"),
    view=None,
    properties={"delta.dataSkippingStatsColumns": "job,object,batch_id"},
    direct=True,
)

_NEWEST = 100


@dataclass(frozen=True)
class Intent:
    """One batch that was begun."""

    job: str
    object: str
    stream: str
    stream_id: int
    object_id: int
    batch_id: int
    base_batch: int
    begun_at: datetime
    run_id: str
    source_from: int
    source_to: int
    source: Mapping[str, Any]
    configuration: Mapping[str, Any]
    configuration_hash: str

    @property
    def rebuild(self) -> bool:
        """Whether the batch starts its object anew."""
        return self.base_batch == self.batch_id


class IntentsReader:
    """Finds batches that were begun."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def after(self, job: str, object: str, batch_id: int) -> list[Intent]:
        """Return the intents of batches beyond this one, in order: with the last published one, those left open."""
        direct = self._database.direct
        if direct is None:
            return self._collect(_beyond(job, object, batch_id))
        where = [Condition("job", "=", job), Condition("object", "=", object)]
        batches = direct.rows(TABLE.name, ("batch_id",), where)["batch_id"]
        if (pc.max(batches).as_py() or 0) <= batch_id:
            return []
        rows = direct.rows(TABLE.name, TABLE.column_names, [*where, *between("batch_id", batch_id + 1, None)])
        return sorted(map(_intent, rows_in_micros(rows)), key=lambda intent: intent.batch_id)

    def _collect(self, condition: SparkColumn) -> list[Intent]:
        names = [name for name in TABLE.column_names if name != "begun_at"]
        selected = [F.unix_micros("begun_at").alias("begun_at"), *[F.col(name) for name in names]]
        rows = self._database.table(TABLE.name).where(condition)
        # No more than a few of them are beyond what is published.
        newest = rows.orderBy(F.desc("begun_at")).limit(_NEWEST).select(*selected).collect()
        return sorted((_intent(row.asDict()) for row in newest), key=lambda intent: intent.batch_id)


class IntentsWriter:
    """Declares batches. Only `Batch` uses it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def declare(self, intent: Intent, *, application: str) -> None:
        """Write an intent, and make sure that it is this one which was written.

        Raises
        ------
        ConcurrentRunError
            Another run began this batch at the same moment.
        """
        database = self._database
        values = {column.name: getattr(intent, column.name) for column in TABLE.columns}
        values |= {name: documents.to_text(values[name]) for name in ("source", "configuration")}
        lost = ConcurrentRunError(
            f"another run began batch {intent.batch_id} of {intent.job} of '{intent.object}' at the same moment; "
            "this run stopped before it wrote anything"
        )
        try:
            rows = literal_row(database, TABLE, values)
            name = database.log(TABLE.name)
            commits = database.commits(TABLE)
            committed = writes.append(name, rows, application=application, version=intent.batch_id, commits=commits)
        except ConcurrentTransactionException as conflict:
            raise lost from conflict
        if committed:
            return
        found = IntentsReader(database).after(intent.job, intent.object, intent.batch_id - 1)
        if [other.run_id for other in found if other.batch_id == intent.batch_id] != [intent.run_id]:
            raise lost


def _beyond(job: str, object: str, batch_id: int) -> SparkColumn:
    return (F.col("job") == F.lit(job)) & (F.col("object") == F.lit(object)) & (F.col("batch_id") > batch_id)


def _intent(row: Mapping[str, Any]) -> Intent:
    values = dict(row)
    values["begun_at"] = timestamps.from_micros(values["begun_at"])
    values |= {name: documents.from_text(values[name]) for name in ("source", "configuration")}
    return Intent(**values)

"""Table `publications`: the last write of every batch, and the only thing that makes its rows visible.

One row per job, object and batch. A change of an object's horizon adds a row with the batch of the latest one, so the
state at a moment is the greatest (batch_id, published_at) among the rows published until then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from delta.exceptions import ConcurrentTransactionException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from patternlake.delta_tables.reading.state_reader import StateReader, among
from patternlake.delta_tables.reading.table_logs import same_look
from patternlake.delta_tables.schema import documents, timestamps
from patternlake.delta_tables.schema.quoting import literal
from patternlake.delta_tables.schema.table import Column, LogName, Table
from patternlake.delta_tables.writing import writes
from patternlake.delta_tables.writing.literal_row import literal_row
from patternlake.udfs.errors import ConcurrentRunError, StateError
from patternlake.udfs.record_batches import in_micros, rows_in_micros

if TYPE_CHECKING:
    from patternlake.delta_tables.committing.database import Database


def _view(log: LogName) -> str:
    columns = ", ".join(f"p.{c.name}" for c in TABLE.columns if c.name not in ("stream", "horizon"))
    return f"""SELECT p.stream, {columns},
  max(p.horizon) OVER (PARTITION BY p.job, p.object) AS horizon,
  lead(p.published_at) OVER (PARTITION BY p.job, p.object ORDER BY p.batch_id, p.published_at) AS superseded_at
FROM {log("publications")} p"""


TABLE = Table(
    name="publications",
    comment="One row per published batch of a job's object: what it read, what it wrote, when it became visible.",
    columns=(
        Column("job", "STRING", "job that wrote the batch: ingest, sketch, …"),
        Column("object", "STRING", "what the job maintains: a stream, a sketch, a query"),
        Column("stream_id", "INT", "number of the stream"),
        Column("object_id", "INT", "number of the object: of a query its own, else that of the stream"),
        Column("batch_id", "BIGINT", "number of the batch; grows by object"),
        Column("base_batch", "BIGINT", "first batch whose rows count: that of the last rebuild"),
        Column("published_at", "TIMESTAMP", "when the batch became visible; grows strictly by object"),
        Column("stream", "STRING", "name of the stream"),
        Column("run_id", "STRING", "the run that published"),
        Column("source_from", "BIGINT", "position before the first of the batch (read, or given by ingest)"),
        Column("source_to", "BIGINT", "last position of the batch (read, or given by ingest)"),
        Column("rows_in", "BIGINT", "rows read"),
        Column("rows_out", "BIGINT", "rows written"),
        Column("rows_quarantined", "BIGINT", "rows put into quarantine"),
        Column("watermark", "TIMESTAMP", "greatest published event time minus the allowed lateness"),
        Column("horizon", "TIMESTAMP", "earliest moment that can still be asked for"),
        Column("seconds", "DOUBLE", "time from the intent to the publication"),
        Column("source", "STRING", "JSON: what was read"),
        Column("configuration_hash", "STRING", "SHA-256 of the configuration"),
        Column("configuration", "STRING", "JSON: the object's configuration"),
        Column("state", "STRING", "JSON: what the job's next batch needs to know"),
        Column("versions", "STRING", "JSON: version of each of the job's tables; of a lake on a local disk"),
    ),
    keys=("job", "object", "batch_id", "published_at"),
    view=_view,
    seen=(
        "stream job object stream_id object_id batch_id base_batch published_at run_id source_from source_to rows_in "
        "rows_out rows_quarantined watermark seconds source configuration_hash configuration state versions "
        "horizon:TIMESTAMP superseded_at:TIMESTAMP"
    ),
    # Each commit reads back what the log tells of all files: no more of them than is asked for.
    properties={"delta.dataSkippingStatsColumns": "job,object,batch_id,published_at"},
    direct=True,
)
_MOMENTS = ("published_at", "watermark", "horizon")
_DOCUMENTS = ("source", "configuration", "state", "versions")


@dataclass(frozen=True)
class Publication:
    """One published batch; moments are in UTC."""

    job: str
    object: str
    stream: str
    stream_id: int
    object_id: int
    batch_id: int
    base_batch: int
    run_id: str
    source_from: int
    source_to: int
    source: Mapping[str, Any]
    configuration: Mapping[str, Any]
    configuration_hash: str
    state: Mapping[str, Any]
    rows_in: int
    rows_out: int
    rows_quarantined: int
    watermark: datetime | None
    horizon: datetime | None
    seconds: float
    published_at: datetime
    versions: Mapping[str, int]
    """Of each table that the job writes, where the lake is on a local disk; see `durability`."""

    @property
    def name(self) -> str:
        """Job and object, for messages."""
        return f"{self.job} of '{self.object}'"


class PublicationsReader:
    """Finds publications of an object. Their `horizon` is the object's, whichever row recorded it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def latest(self, job: str, object: str) -> Publication | None:
        """Return the current publication, or None before the first."""
        return self._look(job, object)[0]

    def latest_of(self, objects: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Publication | None]:
        """Return the current publication of several (job, object), from one version of the table."""
        direct = self._database.direct
        if direct is not None:
            with same_look():
                orders = _orders(direct, objects)
                chosen = [_choose(orders, job, object) for job, object in objects]
                return dict(zip(objects, _publications(direct, chosen), strict=True))
        wanted = F.lit(False)
        for job, object in objects:
            wanted = wanted | ((F.col("job") == F.lit(job)) & (F.col("object") == F.lit(object)))
        rows = (
            self._database.table(TABLE.name)
            .where(wanted)
            .groupBy("job", "object")
            .agg(
                F.max_by(F.struct(*_select_columns()), F.struct("batch_id", "published_at")).alias("row"),
                F.unix_micros(F.max("horizon")).alias("horizon"),
            )
            .collect()
        )
        found = {
            (row.job, row.object): _publication(row.row.asDict(), timestamps.from_micros(row.horizon)) for row in rows
        }
        return {pair: found.get(pair) for pair in objects}

    def of_batch(self, job: str, object: str, batch_id: int) -> Publication | None:
        """Return the publication of one batch, or None."""
        return self._look(job, object, batch_id=batch_id)[0]

    def at(self, job: str, object: str, as_of: datetime | None = None) -> Publication:
        """Return the publication that was current at a moment (None: now).

        Raises
        ------
        StateError
            Nothing was published by then, or the moment lies before the horizon.
        ArgumentError
            The moment has no time zone.
        """
        found, first, horizon = self._look(job, object, until=as_of)
        if as_of is not None and horizon is not None and as_of < horizon:
            raise StateError(
                f"as_of {timestamps.show_moment(as_of)} lies before the horizon of {job} of '{object}': the earliest "
                f"moment that can be asked for is {timestamps.show_moment(horizon)}"
            )
        if found is not None:
            return found
        if as_of is None or first is None:
            raise StateError(f"{job} of '{object}' has published nothing yet; run the job first")
        raise StateError(
            f"as_of {timestamps.show_moment(as_of)} lies before the first publication of {job} of '{object}', "
            f"which was at {timestamps.show_moment(first)}"
        )

    def _rows(self, job: str, object: str) -> DataFrame:
        table = self._database.table(TABLE.name)
        return table.where((F.col("job") == F.lit(job)) & (F.col("object") == F.lit(object)))

    def _look(
        self, job: str, object: str, *, batch_id: int | None = None, until: datetime | None = None
    ) -> tuple[Publication | None, datetime | None, datetime | None]:
        """Find the greatest row of a batch or until a moment, the first moment of all, the greatest horizon of all."""
        direct = self._database.direct
        if direct is not None:
            with same_look():
                found = _choose(_orders(direct, [(job, object)]), job, object, batch_id, until)
                return _publications(direct, [found])[0], timestamps.from_micros(found.first), found.horizon
        chosen = F.lit(True)
        if batch_id is not None:
            chosen = chosen & (F.col("batch_id") == batch_id)
        if until is not None:
            chosen = chosen & (F.col("published_at") <= timestamps.timestamp_literal(until))
        order = F.when(chosen, F.struct("batch_id", "published_at"))
        row = (
            self._rows(job, object)
            .agg(
                F.max_by(F.struct(*_select_columns()), order).alias("row"),
                F.unix_micros(F.min("published_at")).alias("first"),
                F.unix_micros(F.max("horizon")).alias("horizon"),
            )
            .collect()[0]
        )
        horizon = timestamps.from_micros(row.horizon)
        publication = None if row.row is None else _publication(row.row.asDict(), horizon)
        return publication, timestamps.from_micros(row.first), horizon


class PublicationsWriter:
    """Publishes. Only `Batch` and the retention use it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def publish(self, publication: Publication, *, application: str, version: int) -> Publication:
        """Write a publication, and make sure that it is this one which was written.

        Raises
        ------
        ConcurrentRunError
            Another run published first.
        """
        database = self._database
        values = {column.name: getattr(publication, column.name) for column in TABLE.columns}
        values |= {name: documents.to_text(values[name]) for name in _DOCUMENTS}
        rows = literal_row(database, TABLE, values)
        try:
            committed = writes.append(
                database.log(TABLE.name),
                rows,
                application=application,
                version=version,
                commits=database.commits(TABLE),
            )
        except ConcurrentTransactionException as conflict:
            raise self._lost(publication) from conflict
        if committed:
            return publication
        found = PublicationsReader(database).of_batch(publication.job, publication.object, publication.batch_id)
        # A horizon may have been recorded in between: a later row of the same batch and run.
        if found is None or found.run_id != publication.run_id or found.published_at < publication.published_at:
            raise self._lost(publication)
        return publication

    @staticmethod
    def _lost(publication: Publication) -> ConcurrentRunError:
        return ConcurrentRunError(
            f"another run published batch {publication.batch_id} of {publication.name} first; "
            "this run stopped and changed nothing that readers see"
        )


def current(log: LogName, job: str) -> str:
    """Text of a query for the current batches of a job: object, stream, their numbers, batch_id, base_batch, source."""
    return (
        "SELECT object, at.* FROM (SELECT object, "
        "max_by(struct(stream, stream_id, object_id, batch_id, base_batch, source), "
        "struct(batch_id, published_at)) AS at "
        # One task reads them, so that nothing is shuffled: half the time of a query with LIMIT 1.
        f"FROM (SELECT /*+ COALESCE(1) */ * FROM {log(TABLE.name)} WHERE job = {literal(job)}) GROUP BY object)"
    )


def _orders(reader: StateReader, objects: Sequence[tuple[str, str]]) -> pa.Table:
    """What orders the publications of some objects, from one version of the table."""
    jobs, names = (list(dict.fromkeys(values)) for values in zip(*objects, strict=True))
    where = [among("job", jobs), among("object", names)]
    return reader.rows(TABLE.name, ("job", "object", "batch_id", "published_at", "horizon"), where)


@dataclass(frozen=True)
class _Chosen:
    """Which publication of an object is looked for.

    Attributes
    ----------
    key
        Its job, object, batch and moment of publication, microseconds; None: there is none.
    first
        When the object was published first, microseconds.
    horizon
        The object's.
    """

    key: tuple[str, str, int, int] | None
    first: int | None
    horizon: datetime | None


def _choose(
    orders: pa.Table, job: str, object: str, batch_id: int | None = None, until: datetime | None = None
) -> _Chosen:
    """Find the greatest row of an object, of one batch or until a moment where these are given."""
    rows = orders.filter(pc.and_(pc.equal(orders["job"], job), pc.equal(orders["object"], object)))
    batches = rows["batch_id"].to_pylist()
    published = in_micros(rows["published_at"]).to_pylist()
    last = None if until is None else timestamps.to_micros(until)
    key = max(
        (
            (job, object, batch, at)
            for batch, at in zip(batches, published, strict=True)
            if (batch_id is None or batch == batch_id) and (last is None or at <= last)
        ),
        default=None,
    )
    horizon = timestamps.from_micros(pc.max(in_micros(rows["horizon"])).as_py())
    return _Chosen(key, min(published, default=None), horizon)


def _publications(reader: StateReader, chosen: Sequence[_Chosen]) -> list[Publication | None]:
    """Read what was chosen."""
    moments = [each.key[-1] for each in chosen if each.key is not None]
    if not moments:
        return [None] * len(chosen)
    # Rows of this table stay as they are, so a later version has these, too.
    rows = rows_in_micros(reader.rows(TABLE.name, TABLE.column_names, [among("published_at", moments)]))
    found = {(row["job"], row["object"], row["batch_id"], row["published_at"]): row for row in rows}
    return [None if each.key is None else _publication(found[each.key], each.horizon) for each in chosen]


def _select_columns() -> list[SparkColumn]:
    """All columns, moments as microseconds."""
    return [F.unix_micros(c.name).alias(c.name) if c.name in _MOMENTS else F.col(c.name) for c in TABLE.columns]


def _publication(row: Mapping[str, Any], horizon: datetime | None) -> Publication:
    values = dict(row)
    values |= {name: timestamps.from_micros(values[name]) for name in _MOMENTS}
    # Publications of former versions have recorded no versions of tables.
    values |= {name: documents.from_text(values[name] or "{}") for name in _DOCUMENTS}
    return Publication(**{**values, "horizon": horizon})

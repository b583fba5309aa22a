"""Backfill: rows that came too late become events after all, and the stream is numbered anew with them.

The rows are those that stand in quarantine for no other reason. They are read back from there, so that nothing hangs on
files that may be gone, and every event that is published keeps its place among the others: by time, and behind those of
its time that were there before. The batch is the first of a new incarnation of the stream, as of a rebuild, so that
all that is made of the stream is made anew. What reads the source goes on where it stood.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from patternlake.delta_tables.batches import phases
from patternlake.delta_tables.batches.batch import Batch
from patternlake.delta_tables.reading.visibility import visible
from patternlake.delta_tables.schema import timestamps
from patternlake.delta_tables.schema.quoting import identifier
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.tables.events import EventsReader
from patternlake.jobs.ingest import repeats
from patternlake.jobs.ingest.chunks import keep_chunks
from patternlake.jobs.ingest.prepared_rows import Total
from patternlake.jobs.ingest.rivals import rival
from patternlake.jobs.ingest.writing import write
from patternlake.jobs.sources.columns import LATE
from patternlake.jobs.sources.expressions import ORIGIN
from patternlake.udfs.attributes import column_of
from patternlake.udfs.errors import ArgumentError, SourceError, StateError, shorten
from patternlake.udfs.own_names import OWN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from patternlake.delta_tables.batches.object_state import ObjectState
    from patternlake.delta_tables.committing.database import Database
    from patternlake.delta_tables.tables.publications import Publication
    from patternlake.jobs.sources.columns import EventColumns

JOB = "ingest"
KEY = "backfill"
"""Key in what a batch says it has read: of a backfill, the span, microseconds."""
_RIGHT = "write FROM..TO, as in 2024-01-01..2024-02-01; the rows before TO are taken"
_WAS = f"{OWN}was"


@dataclass(frozen=True)
class Span:
    """From a moment on and before another one, microseconds since the epoch."""

    first: int
    until: int


@dataclass(frozen=True)
class Backfilled:
    """What a backfill did.

    Attributes
    ----------
    publication
        Of its batch.
    rows
        Rows of quarantine that lay in the span.
    fresh
        Of these, the rows that batches after a given one had brought.
    refused
        Of the rows, those that stay in quarantine, as they repeat an event or for another reason of now.
    repeated
        Of these, the rows that repeat an event.
    """

    publication: Publication
    rows: int
    fresh: int
    refused: int
    repeated: int


def parse_span(text: str, zone: str = "UTC") -> Span:
    """Read ``FROM..TO``; what has no time zone is in `zone`.

    Raises
    ------
    ArgumentError
        It is none.
    """
    first, dots, until = text.partition("..")
    if not dots:
        raise ArgumentError(f"{shorten(text)} is no span of time; {_RIGHT}")
    span = Span(*(_moment(each.strip(), zone) for each in (first, until)))
    if span.first >= span.until:
        raise ArgumentError(f"{shorten(text)}: {first.strip()} is not before {until.strip()}; {_RIGHT}")
    return span


def backfill(
    db: Database,
    name: str,
    columns: EventColumns,
    schema: T.StructType,
    span: Span,
    *,
    former: Publication,
    object_state: ObjectState,
    source: Mapping[str, Any],
    after: int,
) -> Backfilled | None:
    """Publish a batch with all events of a stream and the late rows of a span; None where there are no such rows.

    Parameters
    ----------
    db
        The database, in a session of the stream's own.
    name, columns, schema
        The stream, its expressions, and the columns of its source.
    span
        Of the times of the rows.
    former
        The stream's publication.
    object_state
        Where the stream stands.
    source
        What the batch says it has read.
    after
        The batch behind which rows are fresh.

    Raises
    ------
    StateError
        The stream is probabilistic.
    SourceError
        A row does not come back from quarantine as it was.
    """
    phases.at("looking for late rows", unit=None)
    quarantine = db.table("quarantine").where(visible(TABLES["quarantine"], former))
    late = _read_back(quarantine.where(F.col("reason") == LATE), schema)
    time = F.unix_micros(columns.time_of(late))
    inside = F.coalesce((time >= F.lit(span.first)) & (time < F.lit(span.until)), F.lit(False))
    chosen = late.where(inside)
    same = _come_back_same(F.col(f"{_WAS}.row"), [field.name for field in schema.fields])
    (seen,) = chosen.agg(
        F.count("*").alias("rows"),
        F.count_if(F.col(f"{_WAS}.batch_id") > after).alias("fresh"),
        F.min(F.when(~same, F.col(f"{_WAS}.row"))).alias("differing"),
    ).collect()
    if not seen.rows:
        return None
    if columns.stream.probabilistic:
        raise StateError(
            f"stream {name!r} is probabilistic, and a step that is published is closed: put the rows into the source "
            "and run ingest with --rebuild"
        )
    if seen.differing is not None:
        raise SourceError(
            f"stream {name!r}: a row does not come back from quarantine as it was: {shorten(seen.differing)}; put "
            "the rows into the source again and run ingest with --rebuild"
        )
    there = EventsReader(db).published(former)
    taken = columns.prepared(
        chosen.select(*[identifier(field.name) for field in schema.fields], ORIGIN), watermark=None
    )
    if columns.stream.event_id is not None:
        taken = repeats.mark_repeats(taken, repeats.unsettled_ids(there, None))
    left = [
        quarantine.where(F.col("reason") != LATE).select("reason", "detail", "row", "origin"),
        late.where(~inside).select(*[F.col(f"{_WAS}.{column}") for column in ("reason", "detail", "row", "origin")]),
    ]
    # Events that were there come first among those of their time, in the order that they had.
    taken = taken.withColumns({"file": F.lit(1), "place": F.lit(0).cast("bigint")})
    parts = [_lay_out_events(there, columns, taken), taken, *(_lay_out_refused(rows, taken) for rows in left)]
    phases.at("reading")
    with keep_chunks(reduce(DataFrame.unionAll, parts)) as kept:
        rows = kept.here_if_few(db)
        counted = dict(rows.totals)
        good = counted.pop(None, Total())
        refused = sum(total.rows for total in counted.values())
        repeated = counted.get(repeats.REASON, Total()).rows
        if repeated:
            repeated -= quarantine.where(F.col("reason") == repeats.REASON).count()
        batch_id = object_state.pending[-1].batch_id if object_state.pending else object_state.free_batch
        batch = Batch.begin(
            db,
            job=JOB,
            object=name,
            stream=name,
            batch_id=batch_id,
            base_batch=batch_id,
            source={**source, KEY: [span.first, span.until]},
            source_from=0,
            source_to=good.rows,
            configuration=columns.stream.meaning,
            object_state=object_state,
        )
        if batch.published is not None:
            raise rival(name)
        if (batch.source.get(KEY), batch.source_to) != ([span.first, span.until], good.rows):
            raise StateError(
                f"stream {name!r}: batch {batch.batch_id} was begun as another backfill, of {batch.source.get(KEY)} "
                f"with {batch.source_to:,} events, and this one has {good.rows:,}; run ingest with --rebuild"
            )
        write(batch, rows, columns)
    published = batch.publish(
        rows_in=good.rows + refused,
        rows_out=good.rows,
        rows_quarantined=refused,
        watermark=former.watermark,
        state=former.state,
        source_from=0,
        source_to=good.rows,
    )
    return Backfilled(published, seen.rows, seen.fresh, seen.rows - (good.rows - former.source_to), repeated)


def _moment(text: str, zone: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentError(f"{shorten(text)} is no day and no moment; {_RIGHT}") from None
    return timestamps.to_micros(found if found.tzinfo else found.replace(tzinfo=timestamps.find_zone(zone)))


def _read_back(rows: DataFrame, schema: T.StructType) -> DataFrame:
    """The source's rows that stand in quarantine, with `ORIGIN`, and as `_WAS` what stands there."""
    typed = T.StructType([field for field in schema.fields if not isinstance(field.dataType, T.NullType)])
    read = rows.select(
        F.from_json("row", typed, timestamps.JSON).alias("read"),
        F.struct("reason", "detail", "row", "origin", "batch_id").alias(_WAS),
    )
    values = [
        (F.lit(None) if isinstance(field.dataType, T.NullType) else F.col("read")[field.name]).alias(field.name)
        for field in schema.fields
    ]
    return read.select(*values, F.col(f"{_WAS}.origin").alias(ORIGIN), _WAS)


def _come_back_same(row: Any, columns: list[str]) -> Any:
    """Whether the columns, written once more, are what stands in quarantine; columns that came later are NULL."""
    texts = "map<string,string>"
    again = F.from_json(F.to_json(F.struct(*map(identifier, columns)), timestamps.JSON), texts)
    return F.forall(
        F.map_entries(F.from_json(row, texts)), lambda one: F.try_element_at(again, one["key"]).eqNullSafe(one["value"])
    )


def _lay_out_events(events: DataFrame, columns: EventColumns, like: DataFrame) -> DataFrame:
    """Published events as rows of `EventColumns.prepared`, with their positions as their places."""
    values = {name: F.col(name) for name in ("time", "step", "key", "name", "probability", "event_id")}
    values["hash"] = F.xxhash64("position")
    values |= {"file": F.lit(0), "place": F.col("position")}
    for (attribute, kind), column in zip(columns.stream.types.items(), columns.attributes, strict=True):
        # One that is new has no column before the first batch that has it.
        if (stored := column_of(attribute, kind)) in events.columns:
            values[column] = F.col(identifier(stored))
    values |= {column: F.get("tokens", F.lit(number)) for number, column in enumerate(columns.tokens)}
    return _lay_out(events, values, like)


def _lay_out_refused(rows: DataFrame, like: DataFrame) -> DataFrame:
    """Rows of quarantine as rows of `EventColumns.prepared`."""
    values = {name: F.col(name) for name in ("reason", "detail", "row", "origin")}
    return _lay_out(rows, {**values, "hash": F.xxhash64("row", "origin")}, like)


def _lay_out(rows: DataFrame, values: Mapping[str, Any], like: DataFrame) -> DataFrame:
    return rows.select(
        *[values.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in like.schema.fields]
    )

"""What the tables tell of how objects stand, read as few columns of them: no event, no filter, no configuration."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from patternlake.delta_tables.reading.file_rows import holding
from patternlake.delta_tables.reading.state_reader import Condition, StateReader, among
from patternlake.delta_tables.reading.table_logs import UnreadableError
from patternlake.delta_tables.reading.visibility import published_rows, visible_text
from patternlake.delta_tables.schema import documents
from patternlake.delta_tables.schema.quoting import literal
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.jobs.batches import few
from patternlake.udfs.record_batches import rows_in_micros

if TYPE_CHECKING:
    from patternlake.delta_tables.committing.database import Database
    from patternlake.delta_tables.reading.direct_reader import DirectReader
    from patternlake.delta_tables.schema.table import Table

logger = logging.getLogger(__name__)

Key = tuple[str, str]
"""Job and object."""
_NUMBERS = ("batch_id", "base_batch", "stream_id", "object_id", "source_to", "rows_in", "rows_out", "rows_quarantined")
_MOMENTS = ("published_at", "watermark", "horizon")
_COUNTS = ("rows_in", "rows_out", "rows_quarantined")
_OF_EVENTS = ("position", "time", "name")
"""What exact answers about sequences read of each event, at least."""
_WITH_STATE = ("patterns",)
"""Jobs of which status tells something that stands in the state of their publications."""


@dataclass(frozen=True)
class Published:
    """The last publication of an object, with the names of `visibility.Batches`.

    `base_batch` is that of the last rebuild, and rows are totals since. Moments are in microseconds.
    """

    stream: str
    stream_id: int
    object_id: int
    batch_id: int
    base_batch: int
    published_at: int
    watermark: int | None
    horizon: int | None
    source_to: int | None
    source: Mapping[str, Any]
    state: Mapping[str, Any]
    rows_in: int
    rows_out: int
    rows_quarantined: int


@dataclass(frozen=True)
class Texts:
    """Distinct texts: how many, and their bytes."""

    distinct: int
    bytes: int


@dataclass(frozen=True)
class SketchBytes:
    """What a query sees of a sketch: bytes of its filters and of its key lists, and its distinct keys."""

    filters: int
    key_lists: int
    keys: Texts


@dataclass(frozen=True)
class Letters:
    """How many of an alert's rows wait for delivery, and how many were given up."""

    undelivered: int = 0
    dead_letters: int = 0


@dataclass(frozen=True)
class Held:
    """How many rows a quiet alert has held back, and how many of them no alert has counted yet."""

    held_back: int = 0
    held_back_uncounted: int = 0


def read_published(reader: StateReader) -> dict[Key, Published]:
    """The last publication of each object."""
    columns = ("job", "object", "stream", "source", *_NUMBERS, *_MOMENTS)
    # A change of an object's horizon repeats its last batch, so batches are counted once each.
    batches: dict[Key, dict[int, dict[str, Any]]] = {}
    for row in rows_in_micros(reader.rows("publications", columns)):
        of_object = batches.setdefault((row["job"], row["object"]), {})
        known = of_object.get(row["batch_id"])
        if known is None or row["published_at"] > known["published_at"]:
            of_object[row["batch_id"]] = {**row, "horizon": _greatest(known, row)}
        else:
            known["horizon"] = _greatest(known, row)
    states = _states(reader)
    found = {}
    for (job, name), of_object in batches.items():
        base = max(row["base_batch"] for row in of_object.values())
        counted = [row for number, row in of_object.items() if number >= base]
        last = of_object[max(of_object)]
        found[job, name] = Published(
            **{column: last[column] for column in ("stream", "stream_id", "object_id", "batch_id", "source_to")},
            base_batch=base,
            published_at=last["published_at"],
            watermark=last["watermark"],
            horizon=max((row["horizon"] for row in of_object.values() if row["horizon"] is not None), default=None),
            source=documents.from_text(last["source"]),
            state=states.get((job, name, last["published_at"]), {}),
            **{column: sum(row[column] for row in counted) for column in _COUNTS},
        )
    return found


def _greatest(known: Mapping[str, Any] | None, row: Mapping[str, Any]) -> int | None:
    told = [each["horizon"] for each in (known, row) if each is not None and each["horizon"] is not None]
    return max(told, default=None)


def _states(reader: StateReader) -> dict[tuple[str, str, int], Mapping[str, Any]]:
    """By job, object and the moment of the publication."""
    rows = reader.rows("publications", ("job", "object", "published_at", "state"), [among("job", _WITH_STATE)])
    return {
        (row["job"], row["object"], row["published_at"]): documents.from_text(row["state"])
        for row in rows_in_micros(rows)
    }


def open_batches(reader: StateReader, known: Mapping[Key, Published]) -> dict[Key, int]:
    """The newest batch of each object that was begun, where it is not published."""
    begun = reader.rows("intents", ("job", "object", "batch_id"))
    rows = begun.group_by(["job", "object"]).aggregate([("batch_id", "max")])
    newest = {(row["job"], row["object"]): row["batch_id_max"] for row in rows_in_micros(rows)}
    return {key: batch for key, batch in newest.items() if key not in known or batch > known[key].batch_id}


def names(reader: StateReader, streams: Mapping[str, Published]) -> dict[str, Texts]:
    """The event names of each stream, given the last publications of `ingest`."""
    if not streams:
        return {}
    table = TABLES["event_statistics"]
    mine = among("stream_id", sorted({each.stream_id for each in streams.values()}))
    rows = reader.rows(table.name, ("stream_id", "batch_id", "name"), [mine])
    return {stream: _texts(shown["name"]) for stream, shown in _select_visible(table, rows, streams)}


def read_instead(reader: StateReader, streams: Mapping[str, Published]) -> dict[str, int]:
    """What an exact answer would read of each stream without its sketch, in bytes; none where only Spark can tell."""
    if getattr(reader, "place", None) is None:
        return {}
    table = TABLES["events"]
    return {name: reader.size(table.name, published_rows(table, each), _OF_EVENTS) for name, each in streams.items()}


def sketches(database: Database, last: Mapping[str, Published]) -> dict[str, SketchBytes]:
    """What each sketch takes, given the last publications of `sketch`; large ones are summed up by Spark's tasks."""
    if database.direct is not None:
        try:
            return sketches_here(database.direct, last)
        except UnreadableError as error:
            logger.info("sketches are summed up by Spark: %s", error)
    return sketches_by_spark(database, last)


def sketches_here(reader: StateReader, last: Mapping[str, Published]) -> dict[str, SketchBytes]:
    """The same in the driver's process.

    Raises
    ------
    UnreadableError
        Columns of more than `few.FEW_BYTES` would be read for it.
    """
    if not last:
        return {}
    table = TABLES["sketch_nodes"]
    seen = Condition("to_batch", "null or >", min(each.batch_id for each in last.values()))
    columns = ("stream_id", "from_batch", "to_batch", "m", "node", "keys")
    if reader.size(table.name, [seen]) > few.FEW_BYTES:
        # One file tells how much of all the columns take, and only top rows have keys.
        tiers = [Condition("tier", "=", tier) for tier in ("top", "body")]
        size = sum(reader.size(table.name, [tier, seen], columns) for tier in tiers)
        if size > few.FEW_BYTES:
            raise UnreadableError(f"{size} bytes would be read to sum up sketches, more than {few.FEW_BYTES}")
    rows = reader.rows(table.name, columns, [seen])
    found = {}
    for sketch, shown in _select_visible(table, rows, last):
        widths = pc.divide(shown["m"].cast(pa.int64()), 8)
        filters = pc.sum(pc.multiply(pc.list_value_length(shown["node"]), widths)).as_py() or 0
        keys = pc.list_flatten(shown["keys"])
        found[sketch] = SketchBytes(filters, _bytes(keys), _texts(keys))
    return _without_empty(found)


def sketches_by_spark(database: Database, last: Mapping[str, Published]) -> dict[str, SketchBytes]:
    """The same by tasks: a row per sketch comes to the driver."""
    if not last:
        return {}
    table = TABLES["sketch_nodes"]
    published = ", ".join(
        f"({literal(sketch)}, {each.stream_id}, {each.object_id}, {each.base_batch}, {each.batch_id})"
        for sketch, each in last.items()
    )
    text = f"""WITH nodes AS (
  SELECT p.sketch, n.m, n.node, n.keys FROM {database.log(table.name)} n
  JOIN (VALUES {published}) AS p(sketch, stream_id, object_id, base_batch, batch_id)
  ON {visible_text(table, "n", "p")}
), keys AS (
  SELECT sketch, key, octet_length(key) AS bytes, count(*) AS times
  FROM (SELECT sketch, explode(keys) AS key FROM nodes) GROUP BY sketch, key
)
SELECT sketch, filters, coalesce(lists, 0) AS lists, coalesce(distinct, 0) AS distinct, coalesce(bytes, 0) AS bytes
FROM (SELECT sketch, sum(CAST(size(node) AS BIGINT) * (m DIV 8)) AS filters FROM nodes GROUP BY sketch)
LEFT JOIN (
  SELECT sketch, sum(times * bytes) AS lists, count(*) AS distinct, sum(bytes) AS bytes FROM keys GROUP BY sketch
) USING (sketch)"""
    rows = database.spark.sql(text).collect()
    return _without_empty(
        {row["sketch"]: SketchBytes(row["filters"], row["lists"], Texts(row["distinct"], row["bytes"])) for row in rows}
    )


def _without_empty(found: Mapping[str, SketchBytes]) -> dict[str, SketchBytes]:
    return {sketch: each for sketch, each in found.items() if each.filters or each.key_lists}


def letters(reader: StateReader, alerts: Mapping[str, Published]) -> dict[str, Letters]:
    """How the deliveries of alerts stand, given their last publications."""
    if not alerts:
        return {}
    numbers = [among("alert_number", sorted({each.object_id for each in alerts.values()}))]
    identity = ["alert_number", "alert_id"]
    table = TABLES["alerts"]
    tried = reader.rows("alert_deliveries", (*identity, "attempt", "delivered", "dead_letter"), numbers)
    outcomes = [("delivered", "max"), ("dead_letter", "last")]
    # The last of a group is that of the order only where one thread takes them.
    stands = tried.sort_by("attempt").group_by(identity, use_threads=False).aggregate(outcomes)
    rows = reader.rows(table.name, (*identity, "stream_id", "batch_id"), numbers)
    found = {}
    for alert, shown in _select_visible(table, rows, alerts):
        outcome = shown.select(identity).join(stands, identity)
        delivered = pc.fill_null(outcome["delivered_max"], False)
        dead = pc.and_not(pc.fill_null(outcome["dead_letter_last"], False), delivered)
        waiting = pc.invert(pc.or_(delivered, dead))
        found[alert] = Letters(*(pc.sum(each).as_py() or 0 for each in (waiting, dead)))
    return found


def held_back(reader: StateReader, alerts: Mapping[str, Published]) -> dict[str, Held]:
    """What quiet alerts hold back, given the last publications of all alerts; those that held nothing are left out."""
    held = _count_visible(reader, "held_alerts", alerts)
    # An alert counts what was held back before it, so the rest is what the next ones will count.
    counts = _count_visible(reader, "alerts", {name: alerts[name] for name in held}, "held_back")
    return {name: Held(count, count - counts.get(name, 0)) for name, count in held.items()}


def _count_visible(
    reader: StateReader, name: str, alerts: Mapping[str, Published], column: str | None = None
) -> dict[str, int]:
    """Rows of a table of alerts, or the sum of a column, for each alert that has any."""
    if not alerts:
        return {}
    numbers = [among("alert_number", sorted({each.object_id for each in alerts.values()}))]
    columns = ("alert_number", "stream_id", "batch_id", *(() if column is None else (column,)))
    visible = _select_visible(TABLES[name], reader.rows(name, columns, numbers), alerts)
    counts = {alert: rows.num_rows if column is None else pc.sum(rows[column]).as_py() for alert, rows in visible}
    return {alert: count for alert, count in counts.items() if count}


def owners() -> dict[str, Key]:
    """Of each table that has a folder per object: the job that writes it, and the column with the object's number."""
    return {
        table.name: (table.job, owner)
        for table in TABLES.values()
        if table.job and (owner := table.object_column or "stream_id") in table.partitions
    }


def sizes(database: Database) -> dict[tuple[str, int], int]:
    """Bytes of the files of each job and number of an object, in the tables that have a folder per object."""
    if database.direct is not None:
        try:
            return sizes_by_logs(database.direct, owners())
        except UnreadableError as error:
            logger.info("sizes are asked of Spark: %s", error)
    return sizes_by_spark(database, owners())


def sizes_by_logs(reader: DirectReader, owners: Mapping[str, Key]) -> dict[tuple[str, int], int]:
    """The sizes as the tables' logs tell them: no file is opened."""
    found: Counter[tuple[str, int]] = Counter()
    for table, (job, owner) in owners.items():
        files = reader.files(table)
        if files.num_rows:
            objects, sizes = (files[name].to_pylist() for name in (f"partition.{owner}", "size_bytes"))
            for object, size in zip(objects, sizes, strict=True):
                found[job, object] += size
    return dict(found)


def sizes_by_spark(database: Database, owners: Mapping[str, Key]) -> dict[tuple[str, int], int]:
    """The same where only Spark can read; it looks at every row for the file that it stands in."""
    parts = [
        f"SELECT DISTINCT {literal(job)} AS job, {owner} AS owner, _metadata.file_path AS path, "
        f"_metadata.file_size AS size FROM {database.log(table)}"
        for table, (job, owner) in owners.items()
    ]
    text = f"SELECT job, owner, sum(size) AS bytes FROM ({' UNION ALL '.join(parts)}) GROUP BY job, owner"
    return {(row.job, row.owner): row.bytes for row in database.spark.sql(text).collect()}


def _select_visible(table: Table, rows: pa.Table, last: Mapping[str, Published]) -> Iterator[tuple[str, pa.Table]]:
    """The rows of a table that each publication makes visible, as `visibility.visible`."""
    for name, publication in last.items():
        where = published_rows(table, publication)
        numbers = holding([rows[each.column] for each in where], where)
        yield name, rows if numbers is None else rows.take(numbers)


def _texts(values: pa.ChunkedArray) -> Texts:
    distinct = pc.unique(values)
    return Texts(len(distinct), _bytes(distinct))


def _bytes(values: pa.Array | pa.ChunkedArray) -> int:
    return int(pc.sum(pc.binary_length(values)).as_py() or 0)

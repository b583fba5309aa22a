"""Keeps the tables' files in order: merges small ones, removes those that no version needs, where it is worth it.

What is worth it, the tables' logs say, before any file is listed or read.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from patternlake.delta_tables.batches import phases
from patternlake.delta_tables.committing.direct_commits import OnDisk
from patternlake.delta_tables.committing.store_commits import MOST_COMMITS, StoreCommits
from patternlake.delta_tables.reading.file_rows import OF_PARTITION
from patternlake.delta_tables.reading.state_reader import among
from patternlake.delta_tables.reading.table_logs import same_look
from patternlake.delta_tables.schema import timestamps
from patternlake.delta_tables.schema.layout import Layout, lie_by_key, should_lie_by_key
from patternlake.delta_tables.schema.quoting import identifier, literal
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.writing import direct_rewriting, writes
from patternlake.delta_tables.writing.direct_rewriting import is_among
from patternlake.udfs.blocks import BLOCK_BITS, SPAN_BLOCKS

if TYPE_CHECKING:
    from patternlake.delta_tables.committing.database import Database
    from patternlake.delta_tables.schema.table import Table

logger = logging.getLogger(__name__)

MERGED_FILES, MERGED_OBJECTS = 8, 4
"""So many small files of one partition are merged. Fewer are read as fast as merged, and merging them with each batch
would write a partition again for each of its batches. In an object store each is a request of whoever comes new."""

_SMALL = 512 << 20
"""Bytes of a file that Delta would merge with others of its kind: two of them fit into its largest one."""

_FEW_BYTES = 64 << 20
"""Small files of a partition that take no more are merged in the driver's process."""

_SPAN_ROWS = SPAN_BLOCKS << BLOCK_BITS

_AT_ONCE = 64
"""Partitions whose files are merged in one commit; other writers wait meanwhile."""

RETENTION = timedelta(days=7)
"""Delta's own: how long a file that is no longer needed stays."""


def tidy(database: Database, streams: Collection[int], tables: Collection[Table] = TABLES.values()) -> None:
    """Look at tables once, and merge and remove files where there are enough.

    May run at any time, beside all jobs. What is merged is what is there then, whenever the tables were looked at.

    Parameters
    ----------
    database
        Where.
    streams
        Numbers of the streams whose partitions are looked at, of tables that are partitioned by stream.
    tables
        Those that are looked at.
    """
    wanted = [table for table in tables if streams or "stream_id" not in table.partitions]
    with same_look():
        if database.direct is not None:
            database.direct.look_at([table.name for table in wanted])
        _tidy(database, wanted, streams)


def _tidy(database: Database, tables: Sequence[Table], streams: Collection[int]) -> None:
    for table in tables:
        phases.at(f"looking at the files of {table.name}", unit=None)
        if database.direct is None:
            _through_spark(database, table, streams)
            continue
        where = [among("stream_id", sorted(streams))] if "stream_id" in table.partitions else []
        commits = database.commits(table)
        files = database.direct.files(table.name, where)
        many = MERGED_FILES if database.direct.on_disk else MERGED_OBJECTS
        spans = _find_full_spans(table, files)
        found = _find_crowded(table, files, many, directly=commits is not None and database.direct.on_disk)
        crowded = [values for values in found if not any(is_among(values, span) for span in spans)]
        old = database.direct.created(table.name) < timestamps.now() - RETENTION
        unneeded = old and database.direct.unneeded(table.name)
        if crowded or unneeded:
            logger.info("table %s: crowded partitions %s, files to remove: %s", table.log, crowded, unneeded)
        if isinstance(commits, OnDisk):
            writes.tidy_directly(commits.folder, merging=bool(crowded), removing=unneeded)
            continue
        if crowded:
            phases.at(f"merging files of {table.name}")
        merge = partial(direct_rewriting.merge, layout=table.layout, largest=_SMALL, most_bytes=_FEW_BYTES)
        for some in (crowded[first : first + _AT_ONCE] for first in range(0, len(crowded), _AT_ONCE)):
            conditions = " OR ".join(map(_condition, some)) if table.partitions else None
            writes.compact(
                database.spark,
                database.log(table.name),
                conditions,
                table.writing,
                commits=commits,
                directly=partial(merge, partitions=some),
            )
        for span in spans:
            phases.at(f"merging files of {table.name}")
            # One at a time: others commit in between.
            if commits is not None:
                commits.commit(partial(merge, partitions=[span]))
        if unneeded:
            phases.at(f"removing files of {table.name}")
            writes.vacuum(database.spark, database.log(table.name), commits=commits)
        if isinstance(commits, StoreCommits):
            # What was merged or removed, nobody who comes new has to read of.
            many = database.direct.commits_behind(table.name) >= MOST_COMMITS
            if crowded or spans or unneeded or many:
                commits.put_checkpoint()


def _through_spark(database: Database, table: Table, streams: Collection[int]) -> None:
    """The same where only Spark can read the log, by what it tells of a table as a whole."""
    name = database.log(table.name)
    detail = database.spark.sql(f"DESCRIBE DETAIL {name}").select("numFiles", "createdAt").collect()[0]
    if detail["numFiles"] >= MERGED_FILES:
        partitions = " OR ".join(f"stream_id = {number}" for number in sorted(streams))
        conditions = partitions if "stream_id" in table.partitions else None
        phases.at(f"merging files of {table.name}")
        writes.compact(database.spark, name, conditions, table.writing, commits=database.commits(table))
    # Spark hands moments on in the process's own zone, without it.
    if detail["createdAt"].astimezone() < timestamps.now() - RETENTION:
        phases.at(f"removing files of {table.name}")
        writes.vacuum(database.spark, name, commits=database.commits(table))


def _find_crowded(table: Table, files: pa.Table, enough: int, *, directly: bool) -> list[dict[str, Any]]:
    """The partitions, by their values, that have enough small files.

    Where they may be merged without Spark also those with a file that is to lie by key, and does not.
    """
    columns = [f"partition.{name}" for name in table.partitions]
    small = files.filter(pc.less(files["size_bytes"], _SMALL))
    if not columns:
        return [{}] if small.num_rows >= enough else []
    unordered = should_lie_by_key(small, table.layout if directly else Layout.PACKED)
    counted = (
        small.select([*columns, "path", "size_bytes"])
        .append_column("unordered", unordered)
        .group_by(columns)
        .aggregate([("path", "count"), ("size_bytes", "sum"), ("unordered", "any")])
    )
    many = pc.greater_equal(counted["path_count"], enough)
    few_bytes = pc.less_equal(counted["size_bytes_sum"], _FEW_BYTES)
    rows = counted.filter(pc.or_kleene(many, pc.and_kleene(counted["unordered_any"], few_bytes))).to_pylist()
    return [{name: row[f"partition.{name}"] for name in table.partitions} for row in rows]


def _find_full_spans(table: Table, files: pa.Table) -> list[dict[str, Any]]:
    """The spans of positions that are full and have several files, by their partitions; of keys, and of few bytes."""
    if table.layout is not Layout.BY_KEY or "max.position" not in files.column_names:
        return []
    by_key = pc.or_(lie_by_key(files["path"]), should_lie_by_key(files, table.layout))
    stream, block = (files[f"{OF_PARTITION}{name}"] for name in ("stream_id", "block"))
    spans = pa.table(
        {
            "stream": stream,
            "span": pc.divide(block, SPAN_BLOCKS),
            "bytes": files["size_bytes"],
            "by_key": by_key,
            "last": files["max.position"],
        }
    )
    known = spans.group_by("stream").aggregate([("last", "max")])
    last = dict(zip(known["stream"].to_pylist(), known["last_max"].to_pylist(), strict=True))
    counted = spans.group_by(["stream", "span"]).aggregate([("bytes", "sum"), ("by_key", "any"), ("span", "count")])
    return [
        {"stream_id": row["stream"], "block": range(row["span"] * SPAN_BLOCKS, (row["span"] + 1) * SPAN_BLOCKS)}
        for row in counted.to_pylist()
        if row["span_count"] > 1
        and row["by_key_any"]
        and row["bytes_sum"] <= _FEW_BYTES
        and (last[row["stream"]] or 0) >= (row["span"] + 1) * _SPAN_ROWS
    ]


def _condition(values: dict[str, Any]) -> str:
    """SQL text that chooses a partition."""
    parts = []
    for name, value in values.items():
        shown = literal(value) if isinstance(value, str) else str(value)
        parts.append(f"{identifier(name)} IS NULL" if value is None else f"{identifier(name)} = {shown}")
    return f"({' AND '.join(parts)})"

"""Removes nodes of old segments of a sketch; idempotent, and only after the ageing was published."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from patternlake.delta_tables.reading.spark_reader import all_of
from patternlake.delta_tables.reading.state_reader import between
from patternlake.delta_tables.reading.visibility import of_object, visible
from patternlake.delta_tables.schema import timestamps
from patternlake.delta_tables.tables.sketch_nodes import TABLE
from patternlake.delta_tables.writing import writes

if TYPE_CHECKING:
    from patternlake.delta_tables.committing.database import Database
    from patternlake.delta_tables.tables.publications import Publication

_PER_NODE = ("node", "pos_lo", "pos_hi", "time_lo", "time_hi", "ones", "distinct", "topmost")
_KEPT = "filter(sequence(0, size(topmost) - 1), i -> topmost[i])"


def segment_ends(database: Database, publication: Publication) -> list[tuple[int, datetime]]:
    """The finished segments with their greatest event times, ascending; dropped ones count as long past.

    One row per segment reaches the driver, a few dozen bytes for every 100,000 events.
    """
    rows = (
        database.table(TABLE.name)
        .where(visible(TABLE, publication) & F.col("finished") & (F.size("time_hi") > 0))
        .groupBy("segment")
        .agg(F.max(F.array_max("time_hi")).alias("end"))
        .orderBy("segment")
        .collect()
    )
    ends = {int(row["segment"]): timestamps.from_micros(row["end"]) for row in rows}
    first = min(ends, default=0)
    long_past = timestamps.from_micros(timestamps.EARLIEST)
    return [(segment, end) for segment, end in {**dict.fromkeys(range(first), long_past), **ends}.items() if end]


def drop_segments(database: Database, publication: Publication, begin: int, end: int) -> None:
    """Delete all nodes of the segments from `begin` to `end`, exclusive."""
    writes.delete(
        database.spark,
        database.log(TABLE.name),
        _segments(publication, begin, end),
        commits=database.commits(TABLE),
    )


def keep_topmost(database: Database, publication: Publication, begin: int, end: int, level: int) -> None:
    """Delete the nodes below a level of the segments from `begin` to `end`, exclusive, where a node above covers them.

    In `leveled` that is all of them. In `uniform` a node without a parent stays: nothing above would answer for it.
    """
    below = _segments(publication, begin, end) & (F.col("level") < level)
    name, commits = database.log(TABLE.name), database.commits(TABLE)
    has_topmost = F.exists("topmost", lambda topmost: topmost)
    writes.delete(database.spark, name, below & ~has_topmost, commits=commits)
    partly = below & has_topmost & F.exists("topmost", lambda topmost: ~topmost)
    values = {column: F.expr(f"transform({_KEPT}, i -> {column}[i])") for column in _PER_NODE}
    width = "m DIV 8"
    values["bits"] = F.expr(
        f"unhex(array_join(transform({_KEPT}, i -> hex(substring(bits, i * ({width}) + 1, {width}))), ''))"
    )
    writes.update(database.spark, name, partly, values, commits=commits)


def _segments(publication: Publication, begin: int, end: int) -> Column:
    # Later batches may be of a rebuild, whose nodes have no age yet.
    batches = between("from_batch", publication.base_batch, publication.batch_id)
    where = of_object(TABLE, publication.stream_id, publication.object_id)
    return all_of([*where, *between("segment", begin, end - 1), *batches], ())

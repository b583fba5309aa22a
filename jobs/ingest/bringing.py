"""How the rows of a batch come to the driver's process, where they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.writing.row_files import TaskRows, on_one_disk
from patternlake.jobs.ingest import ranges, spilling
from patternlake.jobs.sources.text_files import are_few

if TYPE_CHECKING:
    import pyarrow as pa

    from patternlake.delta_tables.committing.database import Database
    from patternlake.jobs.sources.source import Source


def bringing(
    db: Database, source: Source, files: Sequence[str], stack: ExitStack
) -> Callable[[DataFrame], pa.Table | None] | None:
    """What brings the rows of a batch's files to the driver's process; None where Spark's tasks write them.

    Few are collected. More are written to files of this machine by the tasks that evaluate them, which the driver maps
    into its memory; where they turn out to be more than `ranges.MOST_ROWS`, it gives None. The files are kept until the
    stack is closed.
    """
    if db.direct is None:
        return None
    if source.kind in ("csv", "json") and files and are_few(files):
        return DataFrame.toArrow
    if db.folder_on_disk is None or db.commits(TABLES["events"]) is None or not on_one_disk(db.spark):
        return None
    folder = stack.enter_context(spilling.folder_for(db.spark))

    def spilled(rows: DataFrame) -> pa.Table | None:
        found = spilling.spill(TaskRows.of(rows), folder)
        return found if found.num_rows <= ranges.MOST_ROWS else None

    return spilled

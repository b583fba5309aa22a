"""Where the prepared rows of a batch are: in the driver's process, on the disk that tasks share with it, or theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.jobs.ingest import spilling
from patternlake.jobs.ingest.chunks import Chunk, KeptChunks, keep_chunks
from patternlake.jobs.sources.text_files import are_few

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from patternlake.delta_tables.committing.database import Database
    from patternlake.jobs.sources.source import Source

MOST_ROWS = 50_000_000
"""Rows of a batch that the driver takes from the disk: some numbers of each are held in memory."""


def choose_place(
    db: Database, source: Source, files: Sequence[str], stack: ExitStack
) -> Callable[[DataFrame], Chunk | KeptChunks]:
    """Choose where the rows of a batch's files are to be.

    Those of a little text are collected. On a disk that tasks and driver share, the tasks write chunks of more to files
    that the driver maps into its memory: to write them from there takes half of what tasks take. Elsewhere tasks keep
    them, but for few. Files and what is kept are there until the stack is closed.
    """

    def keep(rows: DataFrame) -> Chunk | KeptChunks:
        return stack.enter_context(keep_chunks(rows)).here_if_few(db)

    if db.direct is not None and source.kind in ("csv", "json") and files and are_few(files):
        return lambda rows: Chunk.of(rows.toArrow())
    if db.folder_on_disk is not None and db.commits(TABLES["events"]) is not None and on_one_disk(db.spark):
        folder = stack.enter_context(spilling.folder_for(db.spark))

        def spill(rows: DataFrame) -> Chunk | KeptChunks:
            found = spilling.spill(rows, folder)
            return found if found.accepted.num_rows + found.refused.num_rows <= MOST_ROWS else keep(rows)

        return spill
    return keep


def on_one_disk(spark: SparkSession) -> bool:
    """Whether Spark's tasks write to the disk that the driver reads."""
    master = str(spark.sparkContext.master)
    return master.startswith("local") and not master.startswith("local-cluster")

"""How the rows of a batch come to the driver's process, where they do."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame

from patternlake.delta_tables.arrow_rows import arrow_schema
from patternlake.delta_tables.row_files import TaskRows, on_one_disk
from patternlake.jobs import spilling
from patternlake.jobs.ingest import ranges

if TYPE_CHECKING:
    import pyarrow as pa

    from patternlake.delta_tables.database import Database
    from patternlake.jobs.sources.source import Source

_COMPRESSED = (".gz", ".gzip", ".bz2", ".zst", ".zstd", ".lz4", ".snappy", ".deflate", ".xz", ".lzo", ".br")
_FEW_BYTES = 16 << 20
"""Bytes of text, at most, whose rows the driver takes in for itself."""


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
    if _few(source, files):
        return DataFrame.toArrow
    if db.lock("events") is None or not on_one_disk(db.spark):
        return None
    folder = stack.enter_context(spilling.folder_for(db.spark))

    def spilled(rows: DataFrame) -> pa.Table | None:
        found = spilling.spilled(TaskRows(rows, lambda batches: batches, arrow_schema(rows.schema)), folder)
        return found if found.num_rows <= ranges.MOST_ROWS else None

    return spilled


def _few(source: Source, files: Sequence[str]) -> bool:
    """Whether the rows of a batch's files are few, by what the files take."""
    if source.kind not in ("csv", "json") or not files:
        return False
    sizes = [_bytes_of(file) for file in files]
    return None not in sizes and sum(size for size in sizes if size is not None) <= _FEW_BYTES


def _bytes_of(file: str) -> int | None:
    """The bytes of a file on a local disk; None of another one, and of one that may hold many times as much."""
    path = unquote(urlsplit(file).path) if file.startswith("file:") else ""
    if not path or path.lower().endswith(_COMPRESSED) or not os.path.isfile(path):
        return None
    return os.path.getsize(path)

"""Rows that tasks make, in columns on the disk that tasks and driver share, for the driver to read.

Handed to Spark, they would go row by row through its memory, and be serialized to be kept.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import ipc

from patternlake.udfs.record_batches import tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from patternlake.delta_tables.writing.row_files import Made, TaskRows

_CHUNK_ROWS, _CHUNK_BYTES = 200_000, 32 << 20


@contextmanager
def folder_for(spark: SparkSession) -> Iterator[str]:
    """A folder for the files, where Spark keeps its own, for the length of a block."""
    places = os.environ.get("SPARK_LOCAL_DIRS") or spark.sparkContext.getConf().get("spark.local.dir", None)
    folder = tempfile.mkdtemp(prefix="patternlake-", dir=None if places is None else places.split(",")[0])
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def spill(rows: TaskRows, folder: str) -> pa.Table:
    """Make rows, and give them back in columns that lie in files of a folder, to be used while that is there."""
    found = rows.given.mapInArrow(_to_files(rows.made, folder), "path string").collect()
    # Files of tasks that were tried twice are there too; only those that Spark took are named.
    read = [ipc.open_file(pa.memory_map(row["path"])).read_all() for row in found]
    return pa.concat_tables(read) if read else rows.schema.empty_table()


def _to_files(made: Made, folder: str) -> Made:
    """Writes what a task makes to a file, and says which one."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # In one piece each, and of a size at which taking some of the rows is worth a call.
        chunks = (rows.combine_chunks() for rows in tables(made(batches), rows=_CHUNK_ROWS, size=_CHUNK_BYTES))
        first = next(chunks, None)
        if first is None:
            return
        path = f"{folder}/{uuid.uuid4().hex}.arrow"
        with pa.OSFile(path, "wb") as file, ipc.new_file(file, first.schema) as writer:
            writer.write_table(first)
            for chunk in chunks:
                writer.write_table(chunk)
        yield pa.RecordBatch.from_pydict({"path": [path]})

    return write

"""Chunks that tasks make, on the disk that they share with the driver, which maps them into its memory.

Handed to Spark, they would go row by row through its memory, and be serialized to be kept.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import ipc

from patternlake.delta_tables.writing.arrow_rows import arrow_schema
from patternlake.jobs.ingest.chunks import COLUMNS, Chunk, chunks_of
from patternlake.udfs.record_batches import together

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@contextmanager
def folder_for(spark: SparkSession) -> Iterator[str]:
    """A folder for the files, where Spark keeps its own, for the length of a block."""
    places = os.environ.get("SPARK_LOCAL_DIRS") or spark.sparkContext.getConf().get("spark.local.dir", None)
    folder = tempfile.mkdtemp(prefix="patternlake-", dir=None if places is None else places.split(",")[0])
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def spill(prepared: DataFrame, folder: str) -> Chunk:
    """Make chunks of prepared rows, and give back all of them as one, in files of a folder that has to stay."""
    told = prepared.mapInArrow(partial(_write, folder), "path string").collect()
    # Files of tasks that were tried twice are there too; only those that Spark took are named.
    none = Chunk.of(arrow_schema(prepared.schema).empty_table())

    def read(name: str) -> pa.Table:
        paths = (f"{row['path']}.{name}" for row in told)
        read = (ipc.open_file(pa.memory_map(path)).read_all() for path in paths)
        return together([getattr(none, name), *read])

    return Chunk(**{name: read(name) for name in COLUMNS})


def _write(folder: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the chunks of a task, each attribute of theirs to a file, and say what these names begin with."""
    path = f"{folder}/{uuid.uuid4().hex}"
    with ExitStack() as stack:
        writers: dict[str, ipc.RecordBatchFileWriter] = {}
        for chunk in chunks_of(batches):
            for name in COLUMNS:
                rows = getattr(chunk, name)
                if name not in writers:
                    file = stack.enter_context(pa.OSFile(f"{path}.{name}", "wb"))
                    writers[name] = stack.enter_context(ipc.new_file(file, rows.schema))
                writers[name].write_table(rows)
    if writers:
        yield pa.RecordBatch.from_pydict({"path": [path]})

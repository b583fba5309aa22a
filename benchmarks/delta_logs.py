"""What the log of the table `events` costs by the number of its files: bytes, seconds and memory, without the files.

    python -m benchmarks.delta_logs [--files N ...]

The log is Spark's for the table as it is made, then 50 commits as `ingest` writes them, so many files in all. Measured
are their bytes and those of the checkpoint that Spark makes of them. Then Spark plans a scan of the last position: the
first in its process that reads the log, one more, and one after a commit of one file, as each batch finds it. delta-rs
opens the same log in a process of its own, as functions do, and looks again after such a commit. Seconds are of
processor time, of the process and its JVM. Memory is the heap that survived a collection, and what the process of
delta-rs takes more than before.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer
from pyspark.sql import SparkSession
from rich.table import Table

from benchmarks.lakes import new_folder
from benchmarks.measuring import PeakMemory
from benchmarks.sessions import spark_session
from benchmarks.tables import console
from patternlake.delta_tables.tables.events import TABLE
from patternlake.udfs.blocks import BLOCK_BITS

COMMITS = 50
STREAM_ID = 1_725_489_957
BATCH_BLOCKS = 76
"""Whole blocks of a batch of ten million events."""


def measure(files: int) -> dict[str, float]:
    """All figures of a log of so many files."""
    with new_folder(f"logs_{files}") as folder, spark_session(folder, functions=False) as spark:
        path = folder.resolve() / TABLE.log
        spark.sql(TABLE.create_text(f"bench_{files}", str(path), {}))
        log = path / "_delta_log"
        for commit in range(COMMITS):
            _commit(log, files * commit // COMMITS, files * (commit + 1) // COMMITS)
        found: dict[str, float] = {"files": files, "json": sum(map(_size, log.glob("*.json")))}
        jvm: Any = spark._jvm
        deltas = jvm.org.apache.spark.sql.delta.DeltaLog
        deltas.clearCache()  # it knows the table as it was made
        made: Any = deltas.forTable(spark._jsparkSession, str(path))
        with PeakMemory(spark) as peak:
            found["checkpoint seconds"] = _processor(made.checkpoint)
        found["checkpoint heap"] = peak.peaks["jvm_heap_after_gc"]
        found["checkpoint"] = sum(map(_size, log.glob("*.checkpoint*")))
        deltas.clearCache()
        with PeakMemory(spark) as peak:
            found["Spark, first"] = _processor(lambda: _plan(spark, path, files))
            found["Spark, again"] = _processor(lambda: _plan(spark, path, files))
            _commit(log, files, files + 1)
            found["Spark, after a commit"] = _processor(lambda: _plan(spark, path, files + 1))
        found["Spark heap"] = peak.peaks["jvm_heap_after_gc"]
        command = [sys.executable, "-m", "benchmarks.delta_logs", "--reads", str(path), "--files", str(files + 1)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return found | json.loads(output.splitlines()[-1])


def _processor(action: Callable[[], Any]) -> float:
    """Seconds of processor time that one call takes, in this process and its children."""

    def taken() -> float:
        me = psutil.Process()
        times = [process.cpu_times() for process in (me, *me.children(recursive=True))]
        return float(sum(each.user + each.system for each in times))

    before = taken()
    action()
    return taken() - before


def _size(path: Path) -> int:
    return path.stat().st_size


def _plan(spark: SparkSession, path: Path, files: int) -> None:
    """Let Spark choose the files of a scan of the last block."""
    rows = spark.read.format("delta").load(str(path)).where(f"position > {(files - 1) << BLOCK_BITS}")
    chosen = rows.inputFiles()
    if len(chosen) != 1:
        raise RuntimeError(f"{len(chosen)} files were chosen for the last block, not 1")


def _commit(log: Path, first: int, last: int) -> None:
    """Add files to a table's log, numbered from `first` to `last`, the latter excluded."""
    version = len(list(log.glob("*.json")))
    with (log / f"{version:020}.json").open("x") as file:
        file.writelines(f"{json.dumps(action)}\n" for action in _actions(version, first, last))


def _actions(version: int, first: int, last: int) -> Iterator[dict[str, Any]]:
    """The actions of one commit of `ingest`: what it is, and the files of whole blocks."""
    yield {"commitInfo": {"timestamp": int(time.time() * 1000), "operation": "WRITE", "isBlindAppend": True}}
    yield {"txn": {"appId": '["ingest", "bench", "events", ""]', "version": version}}
    for block in range(first, last):
        low, high = (block << BLOCK_BITS) + 1, (block + 1) << BLOCK_BITS
        names = {"batch_id": 1 + block // BATCH_BLOCKS, "key": "k0", "name": "n1"}
        most = {"batch_id": 1 + block // BATCH_BLOCKS, "key": "k99999", "name": "rare2"}
        nulls = {"position": 0, "time": 0, "step": high + 1 - low, "batch_id": 0, "key": 0, "name": 0}
        statistics = {
            "numRecords": high + 1 - low,
            "minValues": {"position": low, "time": _moment(low), **names},
            "maxValues": {"position": high, "time": _moment(high), **most},
            "nullCount": nulls,
        }
        place = f"stream_id={STREAM_ID}/block={block}"
        yield {
            "add": {
                "path": f"{place}/part-{block % 20:05}-{uuid.uuid4()}.c000.snappy.parquet",
                "partitionValues": {"stream_id": str(STREAM_ID), "block": str(block)},
                "size": 1_450_000 + block % 977,
                "modificationTime": int(time.time() * 1000),
                "dataChange": True,
                "stats": json.dumps(statistics, separators=(",", ":")),
            }
        }


def _moment(position: int) -> str:
    """The time of an event, one a second, wrapped so that it stays a year of four digits."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(1_577_836_800 + position % 200_000_000_000))


def _read(path: Path, files: int) -> dict[str, float]:
    """What delta-rs takes in this process, which has read nothing yet."""
    from patternlake.delta_tables.reading.direct_reader import DirectReader
    from patternlake.delta_tables.reading.file_cache import TableCache
    from patternlake.delta_tables.reading.state_reader import Condition

    me = psutil.Process()
    reader = DirectReader(str(path.parent), TableCache())
    where = [Condition("block", "=", files - 1)]
    before = me.memory_info().rss
    found = {"delta-rs, first": _processor(lambda: reader.files("events", where))}
    found["delta-rs, again"] = _processor(lambda: reader.files("events", where))
    _commit(path / "_delta_log", files, files + 1)
    found["delta-rs, after a commit"] = _processor(lambda: reader.files("events", where))
    found["delta-rs memory"] = me.memory_info().rss - before
    found["rows of the log"] = reader.files("events").nbytes
    return found


def main(
    files: Annotated[list[int] | None, typer.Option(help="files of the log; may be repeated")] = None,
    reads: Annotated[Path | None, typer.Option(hidden=True)] = None,
) -> None:
    """Measure, and print a table: a row for each figure, a column for each number of files."""
    sizes = files or [1_000, 10_000, 100_000, 1_000_000]
    if reads is not None:
        print(json.dumps(_read(reads, sizes[0])))
        return
    found = []
    for size in sizes:
        found.append(measure(size))
        print(json.dumps(found[-1]), flush=True)
    table = Table(title="The log of `events` by its files; bytes, seconds of processor time", title_justify="left")
    table.add_column("what")
    for size in sizes:
        table.add_column(f"{size:,}", justify="right")
    for what in found[0]:
        if what != "files":
            table.add_row(what, *(f"{each[what]:,.{3 if each[what] < 1000 else 0}f}" for each in found))
    console().print(table)


if __name__ == "__main__":
    typer.run(main)

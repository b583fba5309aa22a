"""The job `groups` and `match_groups` through Spark: on one core and on two, beside the kernels alone.

A probabilistic stream of 1,000 keys; each step of a key has two rows, whose names and shares are pseudo-random. The
query is the paper's `a b+ c`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from benchmarks.lakes import new_folder
from benchmarks.measuring import PeakMemory, seconds
from benchmarks.named_events import named_events
from benchmarks.sessions import ask, spark_session
from patternlake.delta_tables.databases.opening import open_database
from patternlake.jobs.configuration.file import GroupConfiguration, StreamConfiguration
from patternlake.jobs.groups.job import groups
from patternlake.jobs.ingest.job import ingest
from patternlake.udfs.groups.kernels.groups import Groups
from patternlake.udfs.groups.query import compile_query
from patternlake.udfs.language.query.parser import parse

STREAM, QUERY = "sensor", "abc"
KEYS = 1000
PATTERN, WITHIN, THRESHOLD = "a, b+, c", 15, 0.01
CORES = (1, 2)
# The same question in words that are not the configured ones, so that it is computed from the events.
CALLS = {
    "from what the job keeps": f"'{PATTERN}', within => {WITHIN}, threshold => {THRESHOLD}",
    "from the events": f"'{PATTERN} WHERE true', within => {WITHIN}, threshold => {THRESHOLD}",
}


def measure(events: int, repeats: int) -> dict[str, Any]:
    """The job and both ways to answer, by cores; and the kernels alone."""
    with new_folder(f"groups_{events}") as folder:
        figures: dict[str, Any] = {"events": events, "repeats": repeats, "cores": {}}
        for cores in CORES:
            with spark_session(folder / str(cores), cores=cores) as spark:
                path = folder / "source"
                if not path.exists():
                    source(spark, events).write.parquet(str(path))
                figures["cores"][str(cores)] = _through_spark(spark, folder / str(cores), path, repeats)
                rows = spark.read.parquet(str(path)).orderBy("who", "t").toPandas()
        figures["kernels"] = _kernels(rows, repeats)
    return figures


def source(spark: SparkSession, events: int) -> DataFrame:
    """Rows t, who, what, share: two of each step, whose shares sum to 1."""
    chance = "((xxhash64(id DIV 2, 1) & 4503599627370495) / 4503599627370496D)"
    letter = "substr('abc', CAST(1 + pmod(xxhash64(id DIV 2, 2) + id % 2, 3) AS INT), 1)"
    return spark.range(0, events, 1, 2).selectExpr(
        f"id DIV 2 DIV {KEYS} AS t",
        f"concat('k', id DIV 2 % {KEYS}) AS who",
        f"{letter} AS what",
        f"IF(id % 2 = 0, {chance}, 1 - {chance}) AS share",
    )


def stream_configuration(path: Path) -> StreamConfiguration:
    """The stream of a source that lies in a folder."""
    return StreamConfiguration.model_validate(
        {
            "source": {"format": "parquet", "path": str(path.resolve())},
            "time": "timestamp_seconds(t)",
            "name": "what",
            "key": "who",
            "step": "t",
            "probability": "share",
        }
    )


def _through_spark(spark: SparkSession, folder: Path, path: Path, repeats: int) -> dict[str, Any]:
    db = open_database(spark, location=str(folder / "state"))
    ingest(db, STREAM, stream_configuration(path))
    query = GroupConfiguration(stream=STREAM, pattern=PATTERN, within=WITHIN, threshold=THRESHOLD)
    groups(db, QUERY, query)
    job: list[float] = []
    with PeakMemory(spark) as peak:
        for _ in range(repeats):
            job.append(seconds(lambda: groups(db, QUERY, query, rebuild=True), "job groups"))
    calls = {}
    for name, arguments in CALLS.items():
        text = f"SELECT count(*), sum(probability), sum(t_end) FROM match_groups('{STREAM}', {arguments})"
        answer = [float(value) for value in spark.sql(text).collect()[0]]
        taken = [seconds(lambda text=text: ask(spark, text), name) for _ in range(repeats)]  # type: ignore[misc]
        calls[name] = {"seconds": taken, "answer": answer}
    return {"job": job, "memory": peak.peaks, "calls": calls}


def _kernels(rows: Any, repeats: int) -> dict[str, Any]:
    engine = Groups(compile_query(parse(PATTERN), threshold=THRESHOLD, within=WITHIN))
    keys = np.unique(rows["who"].to_numpy().astype(str), return_inverse=True)[1].astype(np.int64)
    names = np.searchsorted(np.array(["a", "b", "c"]), rows["what"].to_numpy().astype(str)).astype(np.int64)
    classes = engine.query.alphabet.classes(named_events(names, ["a", "b", "c"]))
    given = (keys, rows["t"].to_numpy(), classes, rows["share"].to_numpy())
    engine.answer(*given)
    taken = [seconds(lambda: engine.answer(*given)) for _ in range(repeats)]
    return {"seconds": taken, "groups": len(engine.answer(*given))}

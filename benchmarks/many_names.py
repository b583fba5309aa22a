"""When a sketch pays: exact answers, the sketch alone, Spark and DuckDB, by the number of distinct names.

``python -m benchmarks.many_names [events] [repeats] [names …]`` makes a lake for each number of names: texts of about
60 characters like URLs, uniform, and the rare names of `benchmarks.events` beside them. Each gives a line of JSON about
a sequence of two rare names: medians of seconds in turns, of calls whose answers are not remembered; whether the exact
rows are those that DuckDB finds; bytes per event of the sketch and of a coded log, as `patternlake status` counts them,
and of the files of `events`.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import duckdb

from benchmarks.events import RARE
from benchmarks.lakes import make_lake, new_folder, sketch_configuration
from benchmarks.measuring import measure_beside
from benchmarks.questions import Question, Step
from benchmarks.sessions import ask, spark_session
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.reports.status import status

NAMES = (500, 10_000, 1_000_000)
"""Numbers of distinct names."""
ASKED = Question("names", "two rare names", (Step((RARE[0],)), Step((RARE[1],))))


def measure(events: int, repeats: int, names: int) -> dict[str, Any]:
    """The figures of one lake."""
    with new_folder(f"many_names_{names}") as folder, spark_session(folder) as spark:
        lake = make_lake(spark, folder, events, _urls(names))
        lake.build(sketch_configuration(events))
        [sketch] = [each for each in status(lake.db, Configuration()) if each.job == "sketch"]
        files = [str(file) for file in (folder / "state" / "events_log").glob("**/*.parquet")]
        duck = duckdb.connect()
        duck.execute("SET threads = 2")
        scan = f"read_parquet({files}, hive_partitioning = true)"
        in_spark, in_duckdb = (
            ASKED.exact_sql(table, where, events, None, dialect) or ""
            for table, where, dialect in ((lake.db.log("events"), lake.rows, "spark"), (scan, "", "duckdb"))
        )
        exact, alone = (ASKED.sketch_sql(events, None, verify=verify) for verify in (True, False))
        rows = {tuple(row) for row in ask(spark, exact)}
        size = sum(map(os.path.getsize, files))
        return measure_beside(
            f"{names:,} names",
            {
                "exact": lambda: ask(spark, exact),
                "sketch alone": lambda: ask(spark, alone),
                "Spark": lambda: spark.sql(in_spark).collect(),
                "DuckDB": lambda: duck.execute(in_duckdb).fetchall(),
            },
            repeats,
            equal=rows == set(duck.execute(in_duckdb).fetchall()),
            rows=len(rows),
            **{
                "sketch, bytes per event": round(sketch.bytes_per_event or 0, 2),
                "coded log": round(sketch.dictionary_bytes_per_event or 0, 2),
                "files of events": round(size / events, 2),
            },
        )


def _urls(names: int) -> str:
    """SQL text of names like URLs, and of the rare names as they are."""
    number = f"lpad(CAST(pmod(xxhash64(unix_seconds(at)), {names}) AS STRING), 10, '0')"
    url = f"concat('https://www.example.com/catalogue/products/item-', {number})"
    return f"IF(action LIKE 'rare%', action, {url})"


if __name__ == "__main__":
    events, repeats = (int(argument) for argument in [*sys.argv[1:3], *("10000000", "5")[len(sys.argv) - 1 :]])
    for names in [int(argument) for argument in sys.argv[3:]] or NAMES:
        measure(events, repeats, names)

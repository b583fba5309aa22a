"""Events of a file through Flink SQL: FILE REPEATS SQL... prints a line of JSON for each statement.

Only `beside_peers.py` runs this, with the Python that it is told of, which has Flink. A line has `seconds`, of each
repeat, from the submission of the statement to its last row, and that `row`; or the `error`. All share a session and
its JVM, so that later ones run compiled.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment

EVENTS = """
CREATE TABLE events (
  `position` BIGINT, `key` INT, name STRING, x DOUBLE, `rank` INT,
  moment AS TO_TIMESTAMP_LTZ(`position` * 1000, 3), WATERMARK FOR moment AS moment
) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{path}')
"""
CORES = "2"
SETTINGS = {
    "parallelism.default": CORES,
    # Else few bytes are taken for a reason to use one core.
    "execution.batch.adaptive.auto-parallelism.enabled": "false",
    "taskmanager.memory.managed.size": "1g",
}


def answered(tables: TableEnvironment, sql: str, repeats: int) -> dict[str, Any]:
    taken, row = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        with tables.execute_sql(sql).collect() as rows:
            row = [list(found) for found in rows][-1]
        taken.append(time.perf_counter() - start)
    return {"seconds": taken, "row": row}


def main() -> None:
    path, repeats, *texts = sys.argv[1:]
    # Of a streaming job every change of the sums would be handed over, so that it took many times as long.
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for name, value in SETTINGS.items():
        tables.get_config().set(name, value)
    tables.execute_sql(EVENTS.format(path=path))
    for sql in texts:
        try:
            print(json.dumps(answered(tables, sql, int(repeats))), flush=True)
        except Exception as error:
            print(json.dumps({"error": str(error)[-2000:]}), flush=True)


if __name__ == "__main__":
    main()

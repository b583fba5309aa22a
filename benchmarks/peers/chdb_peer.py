"""ClickHouse within Python, asked by another process: events loaded once, then a line of SQL for each question.

``PYTHON chdb_peer.py PARQUET THREADS`` loads ``key``, ``position``, ``name`` into a table `events` of its own, in the
order of key and position, and prints an empty list. Each line that it reads is a query; it prints the first column of
the answer as a list in JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from chdb.session import Session


def main(parquet: Path, threads: int) -> None:
    session = Session()
    session.query(f"SET max_threads = {threads}")
    session.query("CREATE DATABASE loaded")
    session.query(
        "CREATE TABLE loaded.events (key String, position UInt64, name LowCardinality(String)) "
        "ENGINE = MergeTree ORDER BY (key, position)"
    )
    session.query(f"INSERT INTO loaded.events SELECT key, position, name FROM file('{parquet}/*.parquet', Parquet)")
    session.query("OPTIMIZE TABLE loaded.events FINAL")
    print([], flush=True)
    for query in sys.stdin:
        print(json.dumps(session.query(query, "ArrowTable").column(0).to_pylist()), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))

"""DuckDB on the same events: exported to Parquet, loaded into a table, the query alone timed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.lakes import Lake

TABLE = "events"


class DuckBaseline:
    """A DuckDB database file with the events in position order, on as many threads as Spark has cores."""

    def __init__(self, lake: Lake, threads: int = 2) -> None:
        exported: Path = lake.folder / "export"
        shutil.rmtree(exported, ignore_errors=True)
        file = lake.folder / "events.duckdb"
        file.unlink(missing_ok=True)
        frame = lake.db.table("events").where(lake.rows).select("position", "name", "key")
        frame.write.parquet(str(exported))
        self.connection = duckdb.connect(str(file))
        self.connection.execute(f"SET threads = {threads}")
        self.connection.execute("SET memory_limit = '4GB'")
        self.connection.execute(
            f"CREATE TABLE {TABLE} AS SELECT * FROM read_parquet('{exported}/*.parquet') ORDER BY position"
        )
        shutil.rmtree(exported)

    def one_row(self, text: str) -> tuple[Any, ...]:
        """The single row of a query's answer."""
        row = self.connection.execute(text).fetchone()
        assert row is not None
        return row

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """All rows of a query's answer."""
        return self.connection.execute(text).fetchall()

    def close(self) -> None:
        """Close the database."""
        self.connection.close()

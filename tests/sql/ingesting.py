"""What the tests of ingest share: a database of their own, small sources, and short ways to look at the result."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from patternlake.delta_tables.database import Database
from patternlake.jobs.configuration import Configuration
from patternlake.jobs.ingest import ingest
from patternlake.jobs.summary import Summary

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

HEADER = "at,what,who,x"


class Lake:
    """A database with one stream ``s`` whose source stands in the folder `data`."""

    def __init__(self, spark: SparkSession, folder: Path, name: str) -> None:
        self.spark = spark
        self.folder = folder
        self.data = folder / "data"
        self.data.mkdir()
        self.db = Database.open(spark, name, str(folder / "lake"))
        self.stream: dict[str, Any] = {
            "source": {"format": "csv", "path": "data", "options": {"header": True}},
            "time": "at",
            "name": "what",
            "key": "who",
            "attributes": {"x": "double"},
        }

    def write(self, file: str, *lines: str, header: str | None = HEADER) -> Path:
        path = self.data / file
        path.write_text("\n".join([*([header] if header else []), *lines]) + "\n")
        return path

    def configuration(self, **changes: Any) -> Configuration:
        stream = {key: value for key, value in {**self.stream, **changes}.items() if value is not None}
        return Configuration.from_text(yaml.safe_dump({"streams": {"s": stream}}), folder=self.folder)

    def ingest(self, *, rebuild: bool = False, **changes: Any) -> Summary:
        return ingest(self.db, "s", self.configuration(**changes).streams["s"], rebuild=rebuild)

    def events(self, *columns: str) -> list[tuple[Any, ...]]:
        rows = self.spark.table(self.db.view("events")).orderBy("position").selectExpr(*columns).collect()
        return [tuple(row) for row in rows]

    def quarantine(self) -> list[Row]:
        return self.spark.table(self.db.view("quarantine")).orderBy("reason", "row").collect()

    def reasons(self) -> list[str]:
        return [row["reason"] for row in self.quarantine()]


@contextmanager
def lake(spark: SparkSession, folder: Path) -> Iterator[Lake]:
    """A lake in a folder, dropped from the catalog afterwards."""
    name = "ingest_" + os.urandom(4).hex()
    try:
        yield Lake(spark, folder, name)
    finally:
        spark.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")

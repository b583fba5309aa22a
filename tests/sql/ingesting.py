"""What the tests of ingest share: small sources, one stream each, and short ways to look at the result."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from sql.small_tables import asked

from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.schema.stream_names import candidates
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.file import Configuration, StreamConfiguration
from patternlake.jobs.ingest.job import ingest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

HEADER = "at,what,who,x"
_NUMBERS = itertools.count()


class Lake:
    """One stream of a database, whose source stands in the folder `data`."""

    def __init__(self, db: Database, folder: Path) -> None:
        self.spark: SparkSession = db.spark
        self.db = db
        self.name = f"s{next(_NUMBERS)}"
        self.folder = folder
        self.data = folder / "data"
        self.data.mkdir(parents=True)
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

    def configuration(self, **changes: Any) -> StreamConfiguration:
        stream = {key: value for key, value in {**self.stream, **changes}.items() if value is not None}
        text = yaml.safe_dump({"streams": {self.name: stream}})
        return Configuration.from_text(text, folder=self.folder).streams[self.name]

    def ingest(self, *, rebuild: bool = False, **changes: Any) -> Summary:
        return ingest(self.db, self.name, self.configuration(**changes), rebuild=rebuild)

    def rows(self, view: str) -> DataFrame:
        return asked(self.db, f"SELECT * FROM {self.db.name}.{view} WHERE stream = '{self.name}'")

    def events(self, *columns: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.rows("events").orderBy("position").selectExpr(*columns).collect()]

    def quarantine(self) -> list[Row]:
        return self.rows("quarantine").orderBy("reason", "row").collect()

    def reasons(self) -> list[str]:
        return [row["reason"] for row in self.quarantine()]

    @property
    def checkpoints(self) -> Path:
        return Path(self.db.folder("checkpoints", str(candidates(self.name)[0])))

    @property
    def checkpoint(self) -> Path:
        """The newest of the stream's checkpoints."""
        return max(self.checkpoints.iterdir(), key=lambda folder: folder.stat().st_ctime_ns)

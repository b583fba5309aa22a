"""A lake that is copied, or restored from a backup, goes on where it stands."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.runs.running import run

STREAM = """
database: {database}
location: {location}
streams:
  clicks:
    source: {{format: csv, path: {folder}/data, options: {{header: true}}}}
    time: at
    name: page
    allowed_lateness: 1 hour
"""


def test_a_copied_lake_is_asked_and_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "1.csv").write_text("at,page\n2025-03-03 09:00,view\n2025-03-03 09:01,pay\n")

    def ingest(name: str) -> list[tuple[int, int]]:
        text = STREAM.format(database=f"lake_{name}", location=tmp_path / name, folder=tmp_path)
        summaries = run(spark, Configuration.from_text(text), "ingest")
        return [(summary.rows_in, summary.rows_quarantined) for summary in summaries]

    def events(name: str) -> list[tuple[int, str]]:
        rows = spark.table(f"lake_{name}.clicks").orderBy("position").select("position", "name").collect()
        return [tuple(row) for row in rows]

    assert ingest("first") == [(2, 0)]
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    assert ingest("second") == [(0, 0)], "the files that were read are known"
    assert events("second") == events("first") == [(1, "view"), (2, "pay")]
    (tmp_path / "data" / "2.csv").write_text("at,page\n2025-03-03 08:30,view\n2025-03-03 07:30,view\n")
    assert ingest("second") == [(2, 1)], "one of the two is late"
    assert events("second") == [(1, "view"), (2, "pay"), (3, "view")]
    assert events("first") == [(1, "view"), (2, "pay")]

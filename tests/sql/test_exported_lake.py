"""A lake without its configuration: `export` writes one, and a run with it finds nothing to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sql.empty_database import lay
from sql.small_world import OBJECTS, STREAM, World, shown

from patternlake.jobs.command_line.commands import main
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.reports.exporting import export
from patternlake.jobs.runs.running import run


def test_a_run_with_the_exported_configuration_changes_nothing(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(spark, tmp_path)
    tree = {**world.configuration("exported_lake", s=STREAM), **OBJECTS}
    lay(spark, tree["location"])
    assert all(summary.batches for summary in run(spark, world.load(tree)) if summary.job != "maintain")
    main(["export", "--location", tree["location"]])
    written = capsys.readouterr().out
    assert written == export(tree["location"]) == export(tree["location"], spark), "with Spark and without it"
    found = Configuration.from_text(written, folder=tmp_path / "elsewhere")
    assert found.database == "exported_lake"
    publications = "SELECT job, object, batch_id, base_batch, configuration FROM exported_lake.publications"
    before = shown(spark.sql(publications))
    assert [summary for summary in run(spark, found) if summary.batches] == []
    assert shown(spark.sql(publications)) == before
    (tmp_path / "data" / "b.csv").write_text("at,what,who,x\n2024-01-01 00:01:00,a,k0,300\n")
    (summary,) = run(spark, found, "ingest")
    assert (summary.batches, summary.rows_out) == (1, 1), "new files alone are read"

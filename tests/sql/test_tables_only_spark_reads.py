"""A database whose tables have features that delta-rs lacks: every job and function works on it through Spark."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import patternlake
from patternlake.delta_tables.databases.opening import open_database
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.jobs.configuration.file import Configuration

pytestmark = pytest.mark.slow

CONFIGURATION = """
database: {database}
location: {database}
streams:
  moves:
    source: {{format: csv, path: moves, options: {{header: true}}}}
    time: at
    name: what
    key: who
    attributes: {{x: int}}
    allowed_lateness: 1 second
  sky:
    source: {{format: csv, path: sky, options: {{header: true}}}}
    time: timestamp(at)
    name: what
    step: int(step)
    probability: double(share)
sketches:
  moves: {{events_per_leaf: 4, expected_events: 1000, keyed: true, memory: 1MB}}
trends:
  rising: {{stream: moves, query: "PATTERN A+ e[] WHERE e[i].x > e[i-1].x WITHIN 1 MIN SLIDE 30 SEC"}}
groups:
  grey: {{stream: sky, pattern: "a, b+", within: 4}}
subscriptions:
  pair: {{stream: moves, query: "A ; B PARTITION BY who", lookahead: 5, threshold: 0}}
evaluate:
  train: [2013-01-01, 2013-01-02]
  test: [2013-01-02, 2013-01-03]
  lookaheads: [2]
  thresholds: [0.1]
"""

QUESTIONS = (
    "SELECT * FROM match_seq('moves', 'A ; B ; C', key => 'N1')",
    "SELECT * FROM match_seq('moves', 'A ; B PARTITION BY key', verify => true)",
    "SELECT match_exists('moves', 'A ; B ; C')",
    "SELECT * FROM match_pattern('moves', 'A ; B+ ; C PARTITION BY who WITHIN 20 EVENTS', policy => 'skip_till_next')",
    "SELECT * FROM match_groups('sky', 'a, b+', within => 4)",
    "SELECT * FROM match_groups('sky', 'a, b', within => 3)",
    "SELECT * FROM match_funnel('moves', 'A ; B ; C WITHIN 20 SEC')",
    "SELECT * FROM match_funnel_rows('moves', 'A ; B ; C PARTITION BY who')",
    "SELECT * FROM match_paths('moves', around => 'B')",
    "SELECT * FROM cet_count('rising')",
    "SELECT * FROM cet_trends('rising')",
    "SELECT * FROM match_subscription('pair')",
    "SELECT * FROM predict_match('pair')",
    "SELECT subscription, lookahead, kind, low, forecasts, hits FROM {database}.forecast_evaluation",
    "SELECT stream, reason, count(*) FROM {database}.quarantine GROUP BY stream, reason",
)


def delivered(folder: Path, number: int) -> None:
    """One file of each stream; the second has rows that come after those of the first, and a bad one."""
    (folder / "moves").mkdir(exist_ok=True)
    (folder / "sky").mkdir(exist_ok=True)
    rows = [f"2013-01-0{number + 1} 12:00:{n:02},{'ABCA'[n % 4]},N{n % 3},{n * 7 % 11}" for n in range(40)]
    (folder / "moves" / f"{number}.csv").write_text("\n".join(["at,what,who,x", *rows, "never,A,N1,1"]) + "\n")
    steps = [
        f"2013-01-0{number + 1} 12:00:{n:02},{what},{number * 20 + n},{share}"
        for n in range(20)
        for what, share in (("a", 0.25 * (n % 3)), ("b", 0.5))
    ]
    (folder / "sky" / f"{number}.csv").write_text("\n".join(["at,what,step,share", *steps]) + "\n")


def answers(spark: SparkSession, database: str) -> dict[str, list[str]]:
    return {text: sorted(map(str, spark.sql(text.format(database=database)).collect())) for text in QUESTIONS}


def test_jobs_and_functions_give_the_same_where_only_spark_reads(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found: dict[str, list[dict[str, list[str]]]] = {}
    caplog.set_level(logging.INFO, "patternlake")
    for number in (0, 1):
        delivered(tmp_path, number)
        for name in ("by_both", "by_spark"):
            file = tmp_path / f"{name}.yaml"
            file.write_text(CONFIGURATION.format(database=name))
            configuration = Configuration.load(file)
            database = open_database(spark, name, configuration.location)
            if number == 0 and name == "by_spark":
                for table in TABLES:
                    mapped = "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
                    spark.sql(f"ALTER TABLE {database.log(table)} {mapped}")
            patternlake.run(spark, configuration)
            patternlake.enable(spark, configuration)
            found.setdefault(name, []).append(answers(spark, name))
    assert found["by_spark"] == found["by_both"]
    assert [text for text, rows in found["by_both"][-1].items() if not rows] == []
    assert "has features that need Spark; Spark reads it" in caplog.text

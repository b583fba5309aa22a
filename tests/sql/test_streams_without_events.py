"""A stream that is built anew without events: what was kept of it answers nothing, until it has events again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sql.empty_database import lay
from sql.small_world import OBJECTS, STREAM, World, shown

import patternlake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

DATABASE = "without_events"
QUESTIONS = (
    "SELECT * FROM match_seq('s', 'a ; b')",
    "SELECT steps FROM match_seq('s', 'a ; b', verify => false)",
    "SELECT * FROM (SELECT match_exists('s', 'a ; d') AS there) WHERE there",
    "SELECT * FROM match_pattern('s', 'a ; b WITHIN 10 SEC')",
    "SELECT * FROM match_pattern(query => 'p')",
    "SELECT * FROM cet_count('t')",
    "SELECT * FROM cet_trends('t')",
    "SELECT * FROM match_groups('s', 'a, b+', within => 3)",
    "SELECT * FROM match_subscription('m')",
    "SELECT * FROM predict_match('m')",
    "SELECT name FROM events WHERE stream = 'm'",
    "SELECT * FROM match_subscription('again')",
)


def test_what_is_kept_of_a_stream_follows_it_into_having_no_events_and_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = World(spark, tmp_path)
    session = world.session({})
    subscriptions = {
        "m": {**OBJECTS["subscriptions"]["m"], "emit": True},
        "again": {"stream": "m", "query": "m AS one ; m AS other WITHIN 1 MIN"},
    }

    def run(**changes: Any) -> list[Any]:
        rebuild = bool(changes.pop("rebuild", ()))
        jobs = changes.pop("jobs", "all")
        tree = {**world.configuration(DATABASE, s={**STREAM, **changes}), **OBJECTS, "subscriptions": subscriptions}
        return patternlake.run(session, world.load(tree), jobs, rebuild=rebuild)

    def answers() -> dict[str, Any]:
        return {question: shown(session.sql(question))[1] for question in QUESTIONS}

    lay(spark, tmp_path / DATABASE)
    run()
    patternlake.enable(session, database=DATABASE, location=str(tmp_path / DATABASE))
    session.catalog.setCurrentDatabase(DATABASE)
    before = answers()
    assert [question for question, rows in before.items() if not rows] == []
    never = {"time": "CAST(NULL AS TIMESTAMP)"}
    run(**never, rebuild=True, jobs="ingest")
    assert {each.rows_in for each in run(**never)} == {0}
    assert answers() == {question: [] for question in QUESTIONS}
    assert [(each.job, each.object) for each in run(**never) if each.batches] == []
    run(rebuild=True, jobs="ingest")
    run()
    assert answers() == before

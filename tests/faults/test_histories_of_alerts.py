"""Whatever is cut where, and whichever runs die: no alert is lost, and none is told twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession
from sql.empty_database import opened
from webhook_receiver import receiving

from patternlake.delta_tables.committing.database import Database
from tests.faults.alert_histories import History, patience

HISTORIES = 40
TOGETHER = 20
"""So many histories share a database: to make one takes as long as some of them, and all that it holds is read again
and again.
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def database_of(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Database]:
    made: dict[int, Database] = {}

    def database_of(seed: int) -> Database:
        number = seed // TOGETHER
        if number not in made:
            made[number] = opened(spark, f"histories_{number}", tmp_path_factory.mktemp("histories"))
        return made[number]

    return database_of


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_each_alert_is_told_once_and_delivered_whichever_runs_die(
    database_of: Callable[[int], Database], seed: int
) -> None:
    with receiving() as receiver:
        receiver.answer = patience()
        history = History(database_of(seed), receiver, seed)
        history.live()
        history.check()

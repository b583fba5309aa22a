"""A batch that was begun under a configuration that it cannot be done with: a corrected one gets past it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sql.empty_database import common

from patternlake.delta_tables.batches.object_state import load_object_state
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.writing import writes
from patternlake.jobs.configuration.file import GroupConfiguration, SubscriptionConfiguration
from patternlake.jobs.groups.job import groups
from patternlake.jobs.predict.job import predict
from patternlake.udfs.errors import StateError
from tests.sql.ingesting import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def db(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Database:
    return common(spark, tmp_path_factory)


@pytest.fixture
def s(db: Database, tmp_path: Path) -> Lake:
    made = Lake(db, tmp_path)
    made.stream |= {"step": "x", "probability": "1", "attributes": {}}
    made.write("a.csv", *(f"2024-01-01 00:00:{n:02},{name},k,{n}" for n, name in enumerate("abab")))
    made.ingest()
    return made


class DiedError(Exception):
    """Stands for what a job dies of."""


def dying_at(table: str) -> Any:
    append = writes.append

    def write(name: str, rows: Any, **keys: Any) -> Any:
        if table in name:
            raise DiedError
        return append(name, rows, **keys)

    return write


def test_a_batch_that_wrote_nothing_is_given_up_for_another_configuration(
    s: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = SubscriptionConfiguration(stream=s.name, query="a ; b")
    # The bounds that a configuration is checked for when it is loaded are left out here.
    wrong = right.model_copy(update={"lookahead": 99_999_999_999})
    for _ in range(2):
        with pytest.raises(Exception, match="99999999999"):
            predict(s.db, s.name, {"m": wrong})
    assert [intent.batch_id for intent in load_object_state(s.db, "predict", s.name, s.name).pending] == [1]
    summary = predict(s.db, s.name, {"m": right})
    assert (summary.batch_id, summary.batches) == (2, 1)
    assert load_object_state(s.db, "predict", s.name, s.name).pending == ()
    matches = s.rows("subscription_matches").count()
    assert matches
    s.write("b.csv", "2024-01-01 00:00:10,c,k,10")
    s.ingest()

    # Between two published batches; and the run that gives it up dies, too.
    with monkeypatch.context() as patch:
        patch.setattr(writes, "append", dying_at("machine_instances"))
        for configuration in (
            right,
            right.model_copy(update={"lookahead": 5}),
            right.model_copy(update={"lookahead": 5}),
        ):
            with pytest.raises(DiedError):
                predict(s.db, s.name, {"m": configuration})
    assert [intent.batch_id for intent in load_object_state(s.db, "predict", s.name, s.name).pending] == [3, 4]
    assert predict(s.db, s.name, {"m": right}).batch_id == 5
    assert s.rows("subscription_matches").count() == matches
    assert predict(s.db, s.name, {"m": right}).batches == 0


def test_a_batch_that_died_is_finished_though_the_stream_has_gained_an_attribute(
    s: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = GroupConfiguration(stream=s.name, pattern="a, b", within=2)
    with monkeypatch.context() as patch:
        patch.setattr(writes, "append", dying_at("group_state"))
        with pytest.raises(DiedError):
            groups(s.db, "attributes", asked)
    s.stream["attributes"] = {"twice": {"expr": "2 * x", "type": "double"}}
    s.write("b.csv", "2024-01-01 00:00:10,b,k,10")
    s.ingest()
    assert (groups(s.db, "attributes", asked).batches, groups(s.db, "attributes", asked).batches) == (2, 0)


@pytest.mark.slow
def test_a_batch_that_wrote_rows_is_not_given_up(s: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    first = GroupConfiguration(stream=s.name, pattern="a, b", within=2)
    with monkeypatch.context() as patch:
        patch.setattr(writes, "append", dying_at("group_state"))
        with pytest.raises(DiedError):
            groups(s.db, "g", first)
    other = first.model_copy(update={"within": 3})
    with pytest.raises(StateError, match="was begun under another configuration and not published"):
        groups(s.db, "g", other)
    assert groups(s.db, "g", first).batch_id == 1

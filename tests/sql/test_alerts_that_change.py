"""Alerts whose configuration changes between runs, that go and come back, and predicates that are NULL."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timezone
from typing import TYPE_CHECKING

import pytest
from sql.alert_lake import AlertStream
from sql.sketch_lake import E, SketchLake, letters, shared
from webhook_receiver import Receiver, receiving

from patternlake.delta_tables.batches import retention
from patternlake.jobs.reports.status import status
from patternlake.udfs.errors import StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


def hook(receiver: Receiver, name: str) -> dict[str, object]:
    return {"of": "subscription", "name": name, "to": "webhook", "url": receiver.url, "at_once": 1, "back_off": "1 ms"}


def waiting(stream: AlertStream, alert: str) -> tuple[int | None, int | None]:
    """How many rows of an alert wait for delivery, and how many are dead letters."""
    (found,) = [each for each in status(stream.lake.db, stream.configuration()) if each.object == alert]
    return found.undelivered, found.dead_letters


def test_a_smaller_limit_of_attempts_makes_dead_letters_of_what_has_reached_it(
    lake: SketchLake, receiver: Receiver
) -> None:
    stream = AlertStream(lake, "al_limit", {"al_limit": "a ; b"}, {"al_limited": hook(receiver, "al_limit")})
    stream.take(letters("ab"))
    receiver.answer = lambda post: 503
    for _ in range(3):
        stream.tell(retries=0)
    assert not stream.told("al_limited")[0]["dead_letter"]
    (summary,) = stream.tell(retries=0, dead_letter_after=2)
    assert "1 alert became dead letters" in summary.warnings[0]
    assert waiting(stream, "al_limited") == (0, 1)
    stream.tell(retries=0, dead_letter_after=2)
    assert stream.told("al_limited")[0]["attempts"] == 4, "a dead letter rests"
    receiver.answers()
    stream.tell(retries=0, dead_letter_after=5)
    assert stream.told("al_limited")[0]["delivered_at"] is not None


def test_an_alert_that_goes_outside_from_now_on_delivers_all_that_it_has_told(
    lake: SketchLake, receiver: Receiver
) -> None:
    told = {"of": "subscription", "name": "al_outward"}
    stream = AlertStream(lake, "al_outward", {"al_outward": "a ; b"}, {"al_outwards": told})
    stream.take(letters("abb"))
    stream.tell()
    stream.alerts["al_outwards"] = dict(hook(receiver, "al_outward"))
    (summary,) = stream.tell()
    assert summary.batches == 0
    ids = [row["alert_id"] for row in stream.told("al_outwards")]
    assert [post.alert_id for post in receiver.taken] == ids


def test_an_alert_that_comes_back_tells_what_has_come_since(lake: SketchLake) -> None:
    """A forecast that is kept for the alert alone was not kept meanwhile, and rises when it is again."""
    alerts = {
        "al_back": {"of": "subscription", "name": "al_went"},
        "al_back soon": {"of": "forecast", "name": "al_went", "where": "probability > 0.1"},
    }
    stream = AlertStream(lake, "al_went", {"al_went": {"query": "a ; b", "lookahead": 1}}, alerts)
    stream.take(letters("ab"))
    stream.tell()
    first, soon = stream.told("al_back"), stream.told("al_back soon")
    assert [[row["found_in"] for row in rows] for rows in (first, soon)] == [[1], [1]]
    stream.alerts = {}
    stream.take(letters("x", begin=10))
    stream.alerts = alerts
    with pytest.raises(StateError, match="`predict` has not published forecasts of the subscription 'al_went'"):
        stream.tell()
    assert stream.told("al_back") == first
    stream.take(letters("b", begin=20))
    stream.tell()
    for before, alert in ((first, "al_back"), (soon, "al_back soon")):
        now = stream.told(alert)
        assert now[:1] == before
        assert [row["found_in"] for row in now] == [1, 3]


def test_a_rebuild_knows_no_forecast_before_the_oldest_batch_that_is_kept(lake: SketchLake) -> None:
    alerts = {"al_old told": {"of": "forecast", "name": "al_old", "where": "probability > 0.1"}}
    stream = AlertStream(lake, "al_old", {"al_old": {"query": "a ; b", "lookahead": 1}}, alerts)
    for number, text in enumerate(["ab", "x", "x"]):
        stream.take(letters(text, begin=10 * number))
        stream.tell()
    assert [row["found_in"] for row in stream.told("al_old told")] == [1]
    horizon = stream.publications("predict")[-1]["published_at"].astimezone(timezone.utc)
    retention.forget(lake.db, job="predict", object=stream.name, horizon=horizon)
    stream.tell()
    assert [row["found_in"] for row in stream.told("al_old told")] == [1]
    stream.tell(rebuild=True)
    assert [row["found_in"] for row in stream.told("al_old told")] == [3]


def test_where_a_predicate_is_null_nothing_is_told(lake: SketchLake) -> None:
    queries = {"al_null": "a ; (b | c) PARTITION BY key"}
    wheres = {
        "al_null key": "key <> 'other'",
        "al_null operand": "bindings['b'][0] > 0",
        "al_null cast": "CAST(key AS INT) > 0",
        "al_null not": "NOT (bindings['b'][0] > 0)",
        "al_null nothing": "bindings['nothing'][0] IS NULL",
    }
    alerts = {name: {"of": "subscription", "name": "al_null", "where": where} for name, where in wheres.items()}
    stream = AlertStream(lake, "al_null", queries, alerts)
    keyed = [("a", None), ("a", "k"), ("a", "7"), ("b", None), ("c", "k"), ("c", "7")]
    stream.take([E(number * 1000, name, key) for number, (name, key) in enumerate(keyed)])
    stream.tell()
    assert {name: sorted(row["key"] or "-" for row in stream.told(name)) for name in alerts} == {
        "al_null key": ["7", "k"],
        "al_null operand": ["-"],
        "al_null cast": ["7"],
        "al_null not": [],
        "al_null nothing": ["-", "7", "k"],
    }

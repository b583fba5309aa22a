"""What jobs write and functions answer does not depend on the settings of the session that asks, nor on its threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import SparkSession
from sql.empty_database import opened
from sql.small_world import NAMES, QUESTIONS, STREAM, World

from patternlake.delta_tables.committing.sessions import made_within, own_session
from patternlake.jobs.ingest import job as ingest_module
from patternlake.udfs.errors import ConcurrentRunError, StateError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLAIN: dict[str, str] = {}
ODD = {
    "ansi on": {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "Asia/Tokyo"},
    "zone, ansi off": {"spark.sql.session.timeZone": "America/New_York", "spark.sql.ansi.enabled": "false"},
    "case": {"spark.sql.caseSensitive": "true"},
    "legacy times": {
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
        "spark.sql.storeAssignmentPolicy": "LEGACY",
        "spark.sql.files.ignoreCorruptFiles": "true",
    },
    "adaptive on": {"spark.sql.adaptive.enabled": "true"},
    "adaptive off": {"spark.sql.adaptive.enabled": "false"},
}
ODD["all"] = {key: value for settings in ODD.values() for key, value in settings.items()}

MAINTAINED = ("zone, ansi off", "legacy times")
"""Maintenance takes as long as all other jobs."""


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(spark, tmp_path_factory.mktemp("settings"))


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.processes if kind == "all" else pytest.mark.slow) for kind in reversed(ODD)],
)
def test_events_and_answers_are_those_of_a_plain_session(world: World, kind: str) -> None:
    plain, odd = world.seen("plain", PLAIN), world.seen(kind, ODD[kind], maintained=kind in MAINTAINED)
    assert len(plain["SELECT * FROM events"][1]) == len(NAMES)
    assert len(plain["SELECT reason, detail, `row` FROM quarantine"][1]) == 4
    assert [question for question in QUESTIONS if not plain[question][1]] == []
    assert [question for question in QUESTIONS if odd[question] != plain[question]] == []


def test_the_callers_session_stays_the_active_one(world: World) -> None:
    session = world.session({})
    session.range(1).count()
    session.createDataFrame([(1,)], "a int")
    with own_session(session, {"spark.sql.caseSensitive": "true"}) as own, own_session(own) as inner:
        inner.createDataFrame([(1,)], "a int")
        assert (own.conf.get("spark.sql.caseSensitive"), inner.conf.get("spark.sql.caseSensitive")) == ("true", "false")
        assert SparkSession.active()._jsparkSession.equals(inner._jsparkSession)
    assert SparkSession.getActiveSession() is session
    assert SparkSession.active()._jsparkSession.equals(session._jsparkSession)


def test_the_callers_session_is_the_active_one_again_whichever_thread_is_done_last(world: World) -> None:
    session = world.session({})
    session.createDataFrame([(1,)], "a int")
    blocks = ExitStack()

    def begin() -> None:
        own = blocks.enter_context(own_session(session))
        streaming = SparkSession(session.sparkContext, own._jsparkSession.cloneSession())
        made_within(streaming, own)
        streaming.createDataFrame([(1,)], "a int")

    with ThreadPoolExecutor(1) as other:
        other.submit(begin).result()
        with own_session(session):
            other.submit(blocks.close).result()
    assert SparkSession.getActiveSession() is session


def test_a_session_of_spark_connect_is_refused() -> None:
    with pytest.raises(StateError, match="this is a session of Spark Connect"), own_session(object()):  # type: ignore[arg-type]
        pass


def test_streams_of_two_zones_are_taken_in_by_two_threads_of_one_session(world: World) -> None:
    session = world.session({"spark.sql.session.timeZone": "America/New_York"})
    zones = {"tokyo": "Asia/Tokyo", "york": "America/New_York", "utc": "UTC"}
    section = {"time": "at", "name": "what", "key": "who", "allowed_lateness": "none"}
    streams = {name: {**section, "timezone": zone} for name, zone in zones.items()}
    configuration = world.load(world.configuration("two_zones", **streams))
    db = opened(session, configuration.database, configuration.location)
    together = threading.Barrier(len(zones))
    failed: list[Exception] = []

    def work(name: str) -> None:
        together.wait()
        try:
            ingest_module.ingest(db, name, configuration.streams[name])
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in zones]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    first = session.table(db.view("events")).groupBy("stream").agg({"time": "min"}).collect()
    # Midnight of the first of January: 15:00 UTC of the day before in Tokyo, 5:00 UTC in New York.
    moments = {name: moment.astimezone().timestamp() for name, moment in first}
    midnight = 1_704_067_200
    assert moments == {"tokyo": midnight - 9 * 3600, "york": midnight + 5 * 3600, "utc": midnight}
    assert session.conf.get("spark.sql.session.timeZone") == "America/New_York"


def test_a_stream_that_is_being_taken_in_by_another_thread_is_refused_as_a_rival_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = world.load(world.configuration("twice", s=STREAM))
    db = opened(world.spark, configuration.database, configuration.location)
    ingest_module.ingest(db, "s", configuration.streams["s"])
    lines = (world.folder / "data" / "a.csv").read_text().splitlines()
    more = world.folder / "data" / "b.csv"
    more.write_text("\n".join([lines[0], lines[-1]]) + "\n")
    begun, go = threading.Event(), threading.Event()
    batch = ingest_module._Run._batch

    def slow(self: Any, rows: DataFrame, epoch: int) -> None:
        begun.set()
        go.wait(120)
        batch(self, rows, epoch)

    monkeypatch.setattr(ingest_module._Run, "_batch", slow)
    summaries: list[Any] = []
    first = threading.Thread(target=lambda: summaries.append(ingest_module.ingest(db, "s", configuration.streams["s"])))
    first.start()
    try:
        assert begun.wait(120)
        with pytest.raises(ConcurrentRunError, match="another run of ingest of stream 's' is at work"):
            ingest_module.ingest(db, "s", configuration.streams["s"])
    finally:
        go.set()
        first.join()
        more.unlink()
    assert summaries[0].rows_in == 1

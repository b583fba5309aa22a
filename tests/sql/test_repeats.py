"""Repeats of events that are there already, known by their ids, and what a batch's quarantine says of itself."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sql.empty_database import common

from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.writing import writes
from patternlake.jobs.ingest.job import ingest
from patternlake.udfs.errors import ConfigurationError, StateError
from tests.sql.ingesting import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ID = {"event_id": "x", "allowed_lateness": "1 day"}


@pytest.fixture(scope="module")
def db(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Database:
    return common(spark, tmp_path_factory)


@pytest.fixture
def s(db: Database, tmp_path: Path) -> Lake:
    return Lake(db, tmp_path)


def test_a_repeat_in_its_batch_and_one_of_a_published_event_go_to_quarantine_and_positions_stay_dense(
    s: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ["2024-01-03 10:00:00,b,k,1", "2024-01-03 09:00:00,a,k,1", "2024-01-03 11:00:00,c,k,", "never,d,k,2"]
    s.write("a.csv", *rows, "2024-01-03 11:00:00,c,k,", "2024-01-03 12:00:00,e,k,2", "2024-01-01 00:00:00,old,k,3")
    first = s.ingest(**ID)
    # Of one id, the first in the order of positions stays; a bad row repeats nothing, nor does one without an id.
    assert (first.rows_in, first.rows_out, first.rows_quarantined, first.rows_repeated) == (7, 5, 2, 1)
    events = [(1, "old", "3"), (2, "a", "1"), (3, "c", None), (4, "c", None), (5, "e", "2")]
    assert s.events("position", "name", "event_id") == events
    details = {row["reason"]: row["detail"] for row in s.quarantine()}
    assert details["repeat"] == "repeat: the event_id '1' stands in the batch before"
    # Delivered again under another name, with two new rows; the run dies, and is done again with the same result.
    again = ["2024-01-03 12:00:00,e,k,2", "2024-01-03 09:00:00,a,k,1", "2024-01-01 00:00:00,old,k,3"]
    s.write("b.csv", *again, "2024-01-03 12:30:00,f,k,4", "2024-01-03 12:30:00,g,k,4")
    append = writes.append

    def dying(table: str, rows: Any, **keys: Any) -> Any:
        done = append(table, rows, **keys)
        if "quarantine" in table:
            raise RuntimeError
        return done

    with monkeypatch.context() as patch:
        patch.setattr(writes, "append", dying)
        with pytest.raises(RuntimeError):
            s.ingest(**ID)
    second = s.ingest(**ID)
    assert (second.rows_in, second.rows_out, second.rows_repeated) == (5, 1, 3)
    assert s.events("position", "name", "event_id") == [*events, (6, "f", "4")]
    assert sorted(s.reasons()) == ["late", "repeat", "repeat", "repeat", "repeat", "time"]
    with pytest.raises(StateError, match="event_id changed, which would mix events of two meanings"):
        s.ingest(event_id=None)


def test_without_ids_a_file_that_is_delivered_twice_doubles_the_stream(s: Lake) -> None:
    for file in ("a.csv", "b.csv"):
        s.write(file, "2024-01-03,a,k,1")
        s.ingest()
    assert s.events("position", "name", "event_id") == [(1, "a", None), (2, "a", None)]


def test_a_repeat_on_a_probabilistic_stream_does_not_count_in_its_step(s: Lake) -> None:
    s.stream |= {"step": "t", "probability": "p", "attributes": {}, "event_id": "id"}
    lines = ["2024-01-01,a,k,1,0.6,1", "2024-01-01,b,k,1,0.4,2", "2024-01-01,a,k,1,0.6,1"]
    s.write("a.csv", *lines, header="at,what,who,t,p,id")
    assert s.ingest().rows_repeated == 1
    s.write("b.csv", *lines[:2], header="at,what,who,t,p,id")
    assert s.ingest().rows_repeated == 2
    assert s.events("name", "probability") == [("a", 0.6), ("b", 0.4)]


def test_an_id_is_an_expression_that_a_replay_answers_alike(s: Lake) -> None:
    s.write("a.csv", "2024-01-01,a,k,1")
    with pytest.raises(ConfigurationError, match=rf"streams\.{s.name}\.event_id: uuid gives another value"):
        s.ingest(event_id="uuid()")


def test_a_batch_of_which_much_goes_to_quarantine_is_warned_about(s: Lake, caplog: pytest.LogCaptureFixture) -> None:
    good = [f"2024-01-01 00:00:{n:02},a,k,1" for n in range(9)]
    s.write("a.csv", *good, "01.02.2024,b,k,1")
    with caplog.at_level(logging.WARNING, "patternlake"):
        assert s.ingest(allowed_lateness="1 day").warnings == ()
        assert caplog.messages == []
        s.write("b.csv", *good[:7], "03.02.2024,b,k,1", "04.02.2024,b,k,1", "2024-01-01 00:00:08,a,k,much")
        (told,) = s.ingest(allowed_lateness="1 day").warnings
    assert told.startswith(
        f"stream {s.name!r}: 3 of 10 rows went to quarantine, most of them (2) for the reason 'time', such as: time: '0"
    )
    assert told.endswith(".02.2024' is not a timestamp")
    assert caplog.messages == [told]
    s.write("c.csv", "05.02.2024,b,k,1")
    assert ingest(s.db, s.name, s.configuration(), quarantine_warning=1).warnings == ()


def test_the_share_that_is_warned_about_is_the_streams_or_the_databases(spark: SparkSession, tmp_path: Path) -> None:
    from patternlake.jobs.runs.running import run

    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text("at,what\n2024-01-01,a\nnever,b\n")
    source = "{source: {format: csv, path: data, options: {header: true}}, time: at, name: what"
    conf = tmp_path / "conf.yaml"
    conf.write_text(
        f"database: warned\nlocation: lake\nquarantine_warning: 0.5\n"
        f"streams:\n  half: {source}}}\n  less: {source}, quarantine_warning: 0.4}}\n"
    )
    assert [len(summary.warnings) for summary in run(spark, conf, "ingest")] == [0, 1]

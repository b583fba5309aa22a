"""Runs of ingest over time: crashes, rivals, lost checkpoints, changed files and changed configurations."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sql.empty_database import common

from patternlake.delta_tables.batches.batch import Batch
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.tables.publications import PublicationsReader
from patternlake.delta_tables.writing import writes
from patternlake.jobs.ingest import job as ingesting
from patternlake.jobs.sources import file_times
from patternlake.udfs.errors import SourceError, StateError
from tests.sql.ingesting import HEADER, Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def db(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Database:
    return common(spark, tmp_path_factory)


@pytest.fixture
def s(db: Database, tmp_path: Path) -> Lake:
    made = Lake(db, tmp_path)
    made.write("a.csv", "2024-01-01,a,k,1", "bad,a,k,1")
    return made


class CrashError(Exception):
    """What stands for a process that died."""


def die(*_: object, **__: object) -> None:
    raise CrashError


def test_a_run_that_dies_before_it_publishes_is_done_again_with_the_same_input(
    s: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = writes.append

    def dying(table: str, rows: Any, **keys: Any) -> None:
        append(table, rows, **keys)
        if "quarantine" in table:
            raise CrashError

    with monkeypatch.context() as patch:
        patch.setattr(writes, "append", dying)
        with pytest.raises(CrashError):
            s.ingest()
    assert s.events("name") == []
    s.write("b.csv", "2024-01-02,b,k,1")
    summary = s.ingest()
    assert (summary.batches, summary.rows_in, summary.rows_quarantined) == (2, 3, 1)
    assert s.events("position", "name", "batch_id") == [(1, "a", 1), (2, "b", 2)]
    assert s.reasons() == ["time"]


@pytest.mark.parametrize(("before", "now", "names"), [("0 s", "none", "ac"), ("none", "0 s", "bac")])
def test_a_batch_that_was_begun_is_judged_by_the_lateness_of_then(
    s: Lake, monkeypatch: pytest.MonkeyPatch, before: str, now: str, names: str
) -> None:
    s.ingest(allowed_lateness=before)
    s.write("b.csv", "2023-01-01,b,k,1")
    with monkeypatch.context() as patch:
        patch.setattr(Batch, "publish", die)
        with pytest.raises(CrashError):
            s.ingest(allowed_lateness=before)
    s.write("c.csv", "2024-01-02,c,k,1")
    assert s.ingest(allowed_lateness=now).batches == 2
    assert sorted(s.events("name")) == sorted((name,) for name in names)


def test_a_run_that_dies_after_it_published_is_not_done_again(s: Lake) -> None:
    s.ingest()
    for name in ("0", ".0.crc"):
        (s.checkpoint / "commits" / name).unlink(missing_ok=True)
    assert s.ingest().batches == 0
    assert s.events("position", "name") == [(1, "a")]


def test_a_run_that_died_while_spark_wrote_its_plan_is_done_again(s: Lake) -> None:
    s.ingest()
    s.write("b.csv", "2024-01-02,b,k,1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Batch, "begin", die)
        with pytest.raises(CrashError):
            s.ingest()
    # Spark writes a plan under another name and then renames it.
    plans = s.checkpoint / "offsets"
    (plans / ".1.crc").unlink(missing_ok=True)
    (plans / "1").rename(plans / ".1.5a6a3cc4-1be5-4d2c-8d2e-f5a9b0a4f5cf.tmp")
    assert s.ingest().rows_in == 1
    assert s.events("position", "name") == [(1, "a"), (2, "b")]


PLAIN = {"format": "csv", "path": "data"}


@pytest.mark.parametrize(
    ("stopped_by", "first"), [("a bad byte", b"\xfc"), ("death", b"u")], ids=["a bad byte", "death"]
)
def test_a_first_run_that_began_no_batch_binds_the_next_one_to_nothing(
    s: Lake, monkeypatch: pytest.MonkeyPatch, stopped_by: str, first: bytes
) -> None:
    (s.data / "a.csv").unlink()
    (s.data / "b.csv").write_bytes(b"2024-01-01,k" + first + b",a\n")
    with monkeypatch.context() as patch:
        if stopped_by == "death":
            patch.setattr(Batch, "begin", die)
        with pytest.raises((SourceError, CrashError)):
            s.ingest(source=PLAIN, attributes=None, schema="at STRING, what STRING, who STRING")
    (s.folder / "moved").mkdir()
    (s.data / "b.csv").rename(s.folder / "moved" / "c.csv")
    source = {**PLAIN, "path": "moved", "options": {"encoding": "windows-1252"}}
    assert s.ingest(source=source, attributes=None, schema="at STRING, who STRING, what STRING").rows_in == 1
    assert s.events("key", "name") == [(f"k{first.decode('windows-1252')}", "a")]


def test_a_first_run_that_began_no_batch_knows_no_columns(s: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Batch, "begin", die)
        with pytest.raises(CrashError):
            s.ingest()
    s.write("a.csv", "7,2024-01-01,a,k,1", header=f"y,{HEADER}")
    assert s.ingest(attributes={"y": "int"}).rows_in == 1
    assert s.events("name", "attributes['y']") == [("a", "7")]


def test_a_rebuild_that_another_one_stands_beside_loses_no_file(s: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    s.ingest()
    evaluate = ingesting._Run._evaluate

    def meeting(run: ingesting._Run, *given: Any) -> Any:
        evaluated = evaluate(run, *given)
        monkeypatch.setattr(ingesting._Run, "_evaluate", die)
        s.write("b.csv", "2024-01-02,b,k,1")
        with pytest.raises(CrashError):
            s.ingest(rebuild=True)
        monkeypatch.setattr(ingesting._Run, "_evaluate", evaluate)
        return evaluated

    monkeypatch.setattr(ingesting._Run, "_evaluate", meeting)
    assert s.ingest(rebuild=True).rows_out == 1
    assert s.ingest().rows_out == 1
    assert s.events("position", "name") == [(1, "a"), (2, "b")]


def test_a_checkpoint_without_publications_is_refused_and_a_rebuild_helps(s: Lake) -> None:
    finished = s.checkpoints / "1-lost" / "commits"
    finished.mkdir(parents=True)
    (finished / "0").touch()
    with pytest.raises(StateError, match=r"1-lost has read 1 batches, of which nothing is published; .*--rebuild"):
        s.ingest()
    assert s.ingest(rebuild=True).rows_in == 2


def test_a_run_without_new_files_starts_no_query(s: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    query = ingesting._Run._query

    def noted(run: ingesting._Run) -> None:
        started.append(run.name)
        query(run)

    monkeypatch.setattr(ingesting._Run, "_query", noted)
    assert (s.ingest().batches, s.ingest().batches, len(started)) == (1, 0, 1)
    s.write("b.csv", "2024-01-02,b,k,1")
    assert (s.ingest().batches, s.ingest().batches, len(started)) == (1, 0, 2)
    assert s.events("position", "name") == [(1, "a"), (2, "b")]


def test_a_checkpoint_that_is_lost_or_old_is_refused_and_a_rebuild_helps(s: Lake) -> None:
    s.ingest()
    folder = s.checkpoint
    shutil.copytree(folder, s.folder / "old")
    s.write("b.csv", "2024-01-02,b,k,1")
    s.ingest()
    s.write("c.csv", "2024-01-03,c,k,1")
    s.ingest()
    shutil.rmtree(folder)
    with pytest.raises(StateError, match=r"is lost: .*--rebuild"):
        s.ingest()
    shutil.copytree(s.folder / "old", folder)
    with pytest.raises(StateError, match=r"is older than the database: it has finished epoch 0 .*--rebuild"):
        s.ingest()
    (folder / "metadata").write_text('{"id":"11111111-1111-1111-1111-111111111111"}')
    (folder / ".metadata.crc").unlink(missing_ok=True)
    with pytest.raises(StateError, match=r"belongs to query 11111111"):
        s.ingest()
    summary = s.ingest(rebuild=True)
    assert (summary.batch_id, summary.rows_out) == (4, 3)
    assert s.events("position", "name", "batch_id") == [(1, "a", 4), (2, "b", 4), (3, "c", 4)]
    latest = PublicationsReader(s.db).latest("ingest", s.name)
    assert latest is not None
    assert (latest.base_batch, latest.source["epoch"]) == (4, 0)
    assert s.ingest().batches == 0


@pytest.mark.parametrize("few", [True, False], ids=["few files", "many files"])
def test_a_file_that_changed_after_it_was_read_is_refused_by_name(
    s: Lake, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not few:
        monkeypatch.setattr(file_times, "_FEW", 0)
    s.ingest()
    s.write("b c.csv", "2024-01-02,b,k,1")
    s.ingest()
    s.write("b c.csv", "2024-01-02,changed,k,1")
    os.utime(s.data / "b c.csv", (1, 1))
    with pytest.raises(
        SourceError, match=r"changed after it was read: file:/.*/data/b(%20| )c\.csv; put new rows into new"
    ):
        s.ingest()
    assert s.events("name") == [("a",), ("b",)]
    assert s.ingest(on_change="rebuild").rows_in == 3
    assert s.events("name") == [("a",), ("changed",)]


@pytest.mark.parametrize("few", [True, False], ids=["few files", "many files"])
def test_nothing_is_read_where_all_files_were(s: Lake, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not few:
        monkeypatch.setattr(file_times, "_FEW", 0)
    s.write("b c.csv", "2024-01-02,b,k,1")
    assert s.ingest().batches == 1
    with monkeypatch.context() as patch:
        patch.setattr(ingesting._Run, "_query", die)
        assert s.ingest().batches == 0
        s.write("d.csv", "2024-01-03,d,k,1")
        with pytest.raises(CrashError):
            s.ingest()
    assert s.ingest().rows_in == 1


def test_a_file_that_vanished_after_it_was_read_does_no_harm(s: Lake) -> None:
    s.ingest()
    (s.data / "a.csv").unlink()
    s.write("b.csv", "2024-01-02,b,k,1")
    s.ingest()
    assert s.events("position", "name") == [(1, "a"), (2, "b")]


def test_a_configuration_of_another_meaning_is_refused_and_a_rebuild_takes_it(s: Lake) -> None:
    s.ingest()
    with pytest.raises(StateError) as raised:
        s.ingest(key="what", attributes={"x": "int"})
    assert str(raised.value).startswith(f"streams.{s.name}: key, attributes.x changed, which would mix events")
    assert '(key: "who" → "what"; attributes.x: double → int)' in str(raised.value)
    shutil.move(s.data, s.folder / "moved")
    source = {"format": "csv", "path": "moved", "options": {"header": True, "maxFilesPerTrigger": 1}}
    assert s.ingest(source=source).rows_in == 0, "the file is known by its name and time"
    s.ingest(source=source, key="what", attributes={"x": "int"}, rebuild=True)
    assert s.events("key", "attributes['x']") == [("a", "1")]


@pytest.mark.parametrize(
    ("attributes", "change"),
    [
        ({"x": {"type": "double", "expr": "x + 1"}}, "attributes.x.expr: `x` → x + 1"),
        ({"y": "double"}, "attributes.x: double → left out"),
    ],
)
def test_an_attribute_of_another_meaning_is_shown_alone(s: Lake, attributes: dict[str, Any], change: str) -> None:
    s.ingest()
    with pytest.raises(StateError) as raised:
        s.ingest(attributes=attributes)
    assert f"({change}); run the job with --rebuild" in str(raised.value)


def test_a_new_attribute_is_null_in_the_events_before(s: Lake) -> None:
    s.ingest()
    s.write("b.csv", "2024-01-02,b,k,1")
    assert s.ingest(attributes={"x": "double", "y": {"type": "int", "expr": "x + 6"}}).rows_in == 1
    assert s.events("name", "attributes['x']", "attributes['y']") == [("a", "1.0", None), ("b", "1.0", "7")]
    with pytest.raises(StateError, match=r"attributes\.y: int → left out"):
        s.ingest()


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_a_field_that_files_have_from_some_day_on_can_become_an_attribute(s: Lake, kind: str) -> None:
    def write(row: dict[str, Any]) -> None:
        file = s.data / f"{row['what']}.{kind}"
        if kind == "json":
            file.write_text(f"{json.dumps(row)}\n")
        else:
            pq.write_table(pa.Table.from_pylist([row]), file)

    source = {"format": kind, "path": "data"}
    (s.data / "a.csv").unlink()
    write({"at": "2024-01-01", "what": "a", "who": "k", "x": 1})
    s.ingest(source=source)
    write({"at": "2024-01-02", "what": "b", "who": "k", "x": 1, "y": 7})
    s.ingest(source=source, attributes={"x": "double", "y": "int"})
    assert s.events("name", "attributes['y']") == [("a", None), ("b", "7")]


def test_the_incarnation_before_a_rebuild_stays_for_as_of(s: Lake) -> None:
    s.ingest()
    s.ingest(rebuild=True, name="concat(what, '!')")
    rows = s.spark.table(s.db.log("events")).where(f"batch_id <= 2 AND stream_id = {s.checkpoints.name}")
    assert sorted((row["batch_id"], row["name"]) for row in rows.collect()) == [(1, "a"), (2, "a!")]
    assert s.events("name") == [("a!",)]

"""Backfill: late rows become events, in the order of time, none of them twice and none lost."""

from __future__ import annotations

import datetime
import json
import re
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sql.empty_database import common, lay

from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.tables.publications import PublicationsReader
from patternlake.delta_tables.writing import writes
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.ingest.backfill import parse_span
from patternlake.jobs.ingest.job import ingest
from patternlake.jobs.runs.running import run
from patternlake.udfs.errors import StateError
from tests.sql.ingesting import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_page_shows_what_happens(spark: SparkSession, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "late_data.md").read_text()

    def block(language: str) -> str:
        return page.split(f"```{language}\n")[1].split("```")[0]

    (tmp_path / "data").mkdir()
    (tmp_path / "patternlake.yaml").write_text(f"database: backfill_page\n{block('yaml')}")
    lay(spark, tmp_path / "lake")
    (tmp_path / "data" / "march.csv").write_text(
        "at,who,page\n2025-03-01 09:00:00,ann,view\n2025-03-01 09:01:00,bob,view\n"
    )
    conf = Configuration.load(tmp_path / "patternlake.yaml")
    run(spark, conf)
    (tmp_path / "data" / "january.csv").write_text(block("csv"))
    said = re.search(r"run (\w+) --conf patternlake.yaml --backfill (\S+)", page)
    assert said is not None
    summary = run(spark, conf, said[1], backfill=said[2])[0]
    shown = json.loads(block("json"))
    assert shown == {key: value for key, value in json.loads(json.dumps(asdict(summary))).items() if key in shown}
    # Other tests leave views of the same name in the session that all share.
    own = spark.newSession()
    own.catalog.setCurrentDatabase("backfill_page")
    _, _, *lines = block("text").rstrip("\n").split("\n")
    rows = [[str(value) for value in row] for row in own.sql(block("sql")).collect()]
    assert rows == [re.split("  +", line) for line in lines]


@pytest.fixture(scope="module")
def db(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Database:
    return common(spark, tmp_path_factory)


def fill(s: Lake, span: str = "2024-01-01..2024-02-01", **changes: Any) -> Any:
    return ingest(s.db, s.name, s.configuration(**changes), backfill=parse_span(span))


@pytest.mark.slow
@pytest.mark.parametrize("table", ["intents", "streams", "event_statistics", "quarantine", "events"])
def test_a_backfill_that_dies_is_done_by_the_next_run(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    s = Lake(db, tmp_path)
    s.write("a.csv", "2024-03-01,b,k,1", "bad,a,k,2")
    s.ingest()
    s.write("b.csv", "2024-01-05,a,k,3", "2024-02-05,a,k,4", "2024-01-04,c,k,5")
    s.ingest()
    with monkeypatch.context() as patch:
        patch.setattr(writes, "append", dying_with(table))
        with pytest.raises(RuntimeError, match="died"):
            fill(s)
    assert s.events("name") == [("b",)], "nothing half-done is seen"
    s.write("c.csv", "2024-03-02,d,k,6")
    summary = s.ingest()
    assert (summary.batches, summary.rows_out, summary.rows_quarantined) == (2, 3, 0)
    assert s.events("position", "name", "attributes['x']", "batch_id") == [
        (1, "c", "5.0", 3), (2, "a", "3.0", 3), (3, "b", "1.0", 3), (4, "d", "6.0", 4),
    ]  # fmt: skip
    assert s.reasons() == ["late", "time"]
    assert s.ingest().batches == 0


def dying_with(table: str) -> Any:
    """What appends rows, and dies once it has appended those of a table."""
    append = writes.append

    def dying(to: str, rows: Any, **keys: Any) -> Any:
        done = append(to, rows, **keys)
        if f"{table}_log" in to:
            raise RuntimeError("died")
        return done

    return dying


def test_a_run_that_completes_a_backfill_and_does_another_counts_each_row_once(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = Lake(db, tmp_path)
    s.write("a.csv", "2024-03-01,b,k,1")
    s.ingest()
    s.write("b.csv", "2024-01-05,a,k,3", "2024-02-05,a,k,4", "2024-01-04,c,k,5")
    s.ingest()
    with monkeypatch.context() as patch:
        patch.setattr(writes, "append", dying_with("events"))
        with pytest.raises(RuntimeError, match="died"):
            fill(s)
    summary = fill(s, "2024-02-01..2024-03-01")
    assert (summary.batches, summary.rows_in, summary.rows_out, summary.rows_quarantined) == (2, 3, 3, 0)


def test_repeats_stay_in_quarantine_and_what_comes_in_the_same_run_is_taken_in(db: Database, tmp_path: Path) -> None:
    s = Lake(db, tmp_path)
    s.stream["event_id"] = "x"
    s.write("a.csv", "2024-01-01,a,k,1", "2024-03-01,b,k,2")
    s.ingest()
    s.write("b.csv", "2024-01-01,a,k,1", "2024-01-02,c,k,3", "2024-01-02,c,k,3", "2024-03-02,d,k,4")
    summary = fill(s)
    assert (summary.batches, summary.rows_in, summary.rows_out, summary.rows_quarantined) == (2, 4, 2, 2)
    assert summary.rows_repeated == 2
    assert s.events("name", "event_id") == [("a", "1"), ("c", "3"), ("b", "2"), ("d", "4")]
    assert s.reasons() == ["repeat", "repeat"]
    assert summary.warnings == ()
    s.stream["attributes"] = {"x": "double", "who": "string"}
    s.write("c.csv", "2024-01-03,e,k,5")
    again = fill(s)
    assert (again.rows_out, again.rows_repeated) == (1, 0)
    assert s.events("name", "attributes['who']") == [(name, "k" if name == "e" else None) for name in "acebd"]


@pytest.mark.slow
def test_values_of_all_types_come_back_from_quarantine(db: Database, tmp_path: Path) -> None:
    s = Lake(db, tmp_path)
    s.stream["source"] = {"format": "parquet", "path": "data"}
    s.stream["timezone"] = "Asia/Tokyo"
    s.stream["attributes"] = {
        "f": {"type": "double", "expr": "number"}, "d": {"type": "decimal(20,3)", "expr": "exact"},
        "n": {"type": "string", "expr": "nested.inner[0]"}, "b": {"type": "string", "expr": "hex(bytes)"},
        "at_micros": {"type": "bigint", "expr": "unix_micros(at)"}, "day": "date", "w": "timestamp_ntz",
    }  # fmt: skip

    def rows(year: int) -> pa.Table:
        at = datetime.datetime(year, 1, 5, 23, 30, 0, 123456, datetime.timezone.utc)
        return pa.table(
            {
                "at": pa.array([at] * 3, pa.timestamp("us", "UTC")),
                "what": ["ä\n\"'", "b", "c"],
                "who": ["k", None, ""],
                "number": [0.1 + 0.2, float("nan"), float("-inf")],
                "exact": pa.array([Decimal("12345678901234567.891"), None, Decimal("0.001")], pa.decimal128(20, 3)),
                "nested": [{"inner": ["x", None]}, None, {"inner": []}],
                "bytes": [b"\x00\xff", b"", None],
                "day": [datetime.date(1, 1, 1), datetime.date(1582, 10, 15), None],
                "w": pa.array([at.replace(tzinfo=None)] * 3, pa.timestamp("us")),
            }
        )

    def seen() -> list[str]:
        columns = ("key", "name", *(f"attributes['{name}']" for name in s.stream["attributes"] if name != "at_micros"))
        return sorted(map(repr, s.events(*columns)))

    pq.write_table(rows(2025), s.data / "a.parquet")
    s.ingest()
    once = seen()
    pq.write_table(rows(2025).set_column(0, "at", rows(2024)["at"]), s.data / "b.parquet")
    assert fill(s, "2024-01-05..2024-01-06").rows_out == 3
    assert seen() == sorted([*once, *once])
    assert {*s.events("CAST(attributes['at_micros'] AS BIGINT) - unix_micros(time)")} == {(0,)}


def test_late_rows_come_in_though_an_attribute_came_after_them(db: Database, tmp_path: Path) -> None:
    s = Lake(db, tmp_path)
    s.write("a.csv", "2024-03-01,a,k,5")
    s.ingest()
    s.write("b.csv", "2024-01-01,b,k,1")
    assert s.ingest().rows_quarantined == 1
    s.stream["attributes"] = {**s.stream["attributes"], "whose, that is new": {"expr": "who", "type": "string"}}
    assert fill(s).rows_out == 1
    assert s.events("name", "attributes") == [
        ("b", {"x": "1.0", "whose, that is new": "k"}),
        ("a", {"x": "5.0"}),
    ]


def test_late_rows_come_in_though_an_attribute_reads_a_field_that_came_with_them(db: Database, tmp_path: Path) -> None:
    s = Lake(db, tmp_path)
    s.stream["source"] = {"format": "json", "path": "data"}
    s.write("a.json", '{"at": "2024-03-01", "what": "a", "who": "k", "x": 5}', header=None)
    s.ingest()
    s.write("b.json", '{"at": "2024-01-01", "what": "b", "who": "k", "x": 1, "y": 7}', header=None)
    assert s.ingest().rows_quarantined == 1
    s.stream["attributes"] = {"x": "double", "y": "int"}
    assert fill(s).rows_out == 1
    # Quarantine has the row as it was read, and the field was not.
    assert s.events("name", "attributes['y']") == [("b", None), ("a", None)]


def test_a_probabilistic_stream_is_refused_and_nothing_is_begun(db: Database, tmp_path: Path) -> None:
    s = Lake(db, tmp_path)
    s.stream |= {"step": "x", "probability": "0.5"}
    s.write("a.csv", "2024-03-01,a,k,5")
    s.ingest()
    s.write("b.csv", "2024-01-01,a,j,1")
    with pytest.raises(StateError, match="is probabilistic"):
        fill(s)
    latest = PublicationsReader(db).latest("ingest", s.name)
    assert latest is not None
    assert (latest.batch_id, latest.base_batch) == (2, 1)

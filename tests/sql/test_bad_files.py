"""Files that cannot be read: named with what to do, or left out and kept in quarantine by name; nothing is lost."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sql.empty_database import common

from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.writing import writes
from patternlake.udfs.errors import ConfigurationError, SourceError
from tests.sql.ingesting import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = "cast(at AS string) AS at, cast(what AS string) AS what, cast(who AS string) AS who, cast(x AS double) AS x"


@pytest.fixture(scope="module")
def db(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Database:
    return common(spark, tmp_path_factory)


@pytest.fixture
def s(db: Database, tmp_path: Path) -> Lake:
    return Lake(db, tmp_path)


class DiedError(Exception):
    """Stands for the end of a process."""


def source(kind: str, *, quarantine: bool = False, **options: Any) -> dict[str, Any]:
    return {
        "format": kind,
        "path": "data",
        **({"options": options} if options else {}),
        **({"on_bad_file": "quarantine"} if quarantine else {}),
    }


def parquet(s: Lake, file: str, select: str) -> Path:
    """A Parquet file of one row."""
    folder = s.folder / "made"
    s.spark.sql(f"SELECT {select}").coalesce(1).write.mode("overwrite").parquet(str(folder))
    (part,) = folder.glob("*.parquet")
    return Path(shutil.move(part, s.data / file))


def row(at: str, what: str) -> str:
    return f"SELECT {TYPES} FROM (SELECT '{at}' AS at, '{what}' AS what, 'k' AS who, 1 AS x)".removeprefix("SELECT ")


def cut(file: Path) -> Path:
    """Leave the first half of a file."""
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    return file


def zipped(s: Lake, file: str, lines: list[str]) -> Path:
    path = s.data / file
    path.write_bytes(gzip.compress("\n".join(["at,what,who,x", *lines]).encode()))
    return path


def many(what: str) -> list[str]:
    return [f"2024-01-01 00:00:{n % 60:02},{what},{n * 7919},{n}" for n in range(3000)]


def test_files_whose_names_look_like_patterns_are_each_read_once(s: Lake) -> None:
    for file in ("a.csv", "b [1].csv", "c {x,y}?.csv", "d e%20.csv"):
        s.write(file, f"2024-01-01,{file[0]},k,1")
    assert s.ingest().rows_in == 4
    assert s.events("position", "name") == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]


def test_a_truncated_gzip_file_is_named_or_left_out(s: Lake) -> None:
    zipped(s, "a.csv.gz", ["2024-01-01,a,k,1"])
    cut(zipped(s, "b [1] {x}.csv.gz", many("b")))
    zipped(s, "c [2].csv.gz", ["2024-01-02,c,k,1"])
    with pytest.raises(SourceError) as raised:
        s.ingest(source=source("csv", header=True))
    said = str(raised.value)
    assert "b%20%5B1%5D%20%7Bx%7D.csv.gz cannot be read: " in said
    assert said.endswith(
        "; put a whole file in its place, or write `on_bad_file: quarantine` in the stream's source to go on without "
        "the file"
    )
    assert "\n" not in said
    summary = s.ingest(source=source("csv", quarantine=True, header=True))
    assert (summary.rows_in, summary.rows_out, summary.rows_quarantined) == (3, 2, 1)
    assert s.events("position", "name") == [(1, "a"), (2, "c")]
    (bad,) = s.quarantine()
    assert (bad["reason"], bad["row"], bad["origin"].endswith(".csv.gz")) == ("file", None, True)
    assert bad["detail"].startswith("file: cannot be read: ")
    zipped(s, "d.csv.gz", ["2024-01-03,d,k,1"])
    assert s.ingest(source=source("csv", header=True)).rows_out == 1


def test_parquet_files_that_are_broken_or_changed_are_named_or_left_out(s: Lake) -> None:
    parquet(s, "a.parquet", row("2024-01-01", "a"))
    s.ingest(source=source("parquet"))
    other = "'2024-01-02' AS at, 'b' AS what, 'k' AS who, 'many' AS x"
    renamed = "'2024-01-02' AS at, 'b' AS what, 'k' AS customer, 1D AS x"
    for file, select, told in (
        ("b.parquet", None, r"b\.parquet cannot be read: .*is not a Parquet file"),
        ("b.parquet", other, r"b\.parquet cannot be read: Data type mismatches .*\[x\]"),
        (
            "b.parquet",
            renamed,
            r"b\.parquet lacks the columns who; it has at, what, customer, x; put its columns right, .*mergeSchema",
        ),
    ):
        if select is None:
            cut(parquet(s, file, row("2024-01-02", "b")))
        else:
            parquet(s, file, select)
        with pytest.raises(SourceError, match=told):
            s.ingest(source=source("parquet"))
    cut(parquet(s, "c.parquet", row("2024-01-02", "c")))
    parquet(s, "d.parquet", other)
    parquet(s, "e.parquet", row("2024-01-05", "e"))
    summary = s.ingest(source=source("parquet", quarantine=True))
    assert (summary.rows_out, summary.rows_quarantined) == (1, 3)
    assert s.events("position", "name", "key") == [(1, "a", "k"), (2, "e", "k")]
    assert sorted((Path(bad["origin"]).name, bad["detail"].split()[1]) for bad in s.quarantine()) == [
        ("b.parquet", "lacks"),
        ("c.parquet", "cannot"),
        ("d.parquet", "cannot"),
    ]


def test_parquet_columns_in_folders_are_there_and_merged_schemas_may_lack_some(s: Lake) -> None:
    for day in ("1", "2"):
        (s.data / f"day={day}").mkdir()
        parquet(s, f"day={day}/a.parquet", f"'a{day}' AS what, 'k' AS who, 1D AS x")
    parquet(s, "day=2/b.parquet", "'b' AS what, 1D AS x")
    merged = source("parquet", mergeSchema=True)
    assert s.ingest(source=merged, time="make_timestamp(2024, 1, day, 0, 0, 0)").rows_out == 3
    assert s.events("name", "key", "day(time)") == [("a1", "k", 1), ("a2", "k", 2), ("b", None, 2)]


@pytest.mark.slow
def test_a_first_file_that_is_broken_does_not_hide_the_columns_of_the_others(s: Lake) -> None:
    cut(parquet(s, "a.parquet", row("2024-01-01", "a")))
    parquet(s, "b.parquet", row("2024-01-02", "b"))
    with pytest.raises(SourceError, match=r"a\.parquet cannot be read"):
        s.ingest(source=source("parquet"))
    assert s.ingest(source=source("parquet", quarantine=True)).rows_out == 1
    assert s.events("name") == [("b",)]


@pytest.mark.slow
def test_a_truncated_file_of_json_lines_is_left_out(s: Lake) -> None:
    line = '{"at": "2024-01-01", "what": "%s", "who": "k", "x": "%d"}'
    (s.data / "a.json.gz").write_bytes(gzip.compress((line % ("a", 1)).encode()))
    (s.data / "b.json.gz").write_bytes(gzip.compress("\n".join(line % ("b", n * 7919) for n in range(3000)).encode()))
    cut(s.data / "b.json.gz")
    assert s.ingest(source=source("json", quarantine=True)).rows_out == 1
    assert s.events("name") == [("a",)]
    assert [bad["reason"] for bad in s.quarantine()] == ["file"]


@pytest.mark.slow
def test_a_broken_xes_log_is_left_out(s: Lake) -> None:
    day = '<date key="t" value="2024-01-01T00:00:00Z"/>'
    log = f'<log><trace><event><string key="concept:name" value="pay"/>{day}</event>'
    s.write("a.xes", f"{log}</trace></log>", header=None)
    s.write("b.xes", log, header=None)
    columns = {"time": "t", "name": "`concept:name`", "key": None, "attributes": {}}
    assert s.ingest(source=source("xes", quarantine=True), **columns).rows_out == 1
    (bad,) = s.quarantine()
    assert bad["detail"].startswith("file: cannot be read: line 2, column 1: broken XML")


@pytest.mark.slow
def test_a_header_that_differs_is_left_out_too(s: Lake) -> None:
    s.write("a.csv", "2024-01-01,a,k,1")
    s.ingest()
    s.write("b.csv", "2024-01-01,b,k,1", header="at,what,customer,x")
    s.write("c.csv", "2024-01-01,c,k,1")
    assert s.ingest(source=source("csv", quarantine=True, header=True)).rows_out == 1
    (bad,) = s.quarantine()
    assert bad["detail"] == (
        "file: has the columns at, what, customer, x, expected at, what, who, x (new: customer; missing: who)"
    )


@pytest.mark.slow
def test_a_batch_that_left_a_file_out_leaves_it_out_when_it_is_done_again(
    s: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    zipped(s, "a.csv.gz", ["2024-01-01,a,k,1"])
    whole = zipped(s, "b.csv.gz", many("b"))
    data = whole.read_bytes()
    cut(whole)
    append = writes.append

    def dying(table: str, rows: Any, **keys: Any) -> Any:
        if "events" in table:
            raise DiedError
        return append(table, rows, **keys)

    with monkeypatch.context() as patch:
        patch.setattr(writes, "append", dying)
        with pytest.raises(DiedError):
            s.ingest(source=source("csv", quarantine=True, header=True))
    stamp = whole.stat()
    whole.write_bytes(data)
    os.utime(whole, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert s.ingest(source=source("csv", quarantine=True, header=True)).rows_out == 1
    assert [bad["reason"] for bad in s.quarantine()] == ["file"]


def test_a_table_leaves_no_file_out(s: Lake) -> None:
    with pytest.raises(ConfigurationError, match=rf"streams\.{s.name}\.source\.on_bad_file: 'quarantine': a file of a"):
        s.configuration(source={"table": "raw.t", "on_bad_file": "quarantine"})
    with pytest.raises(ConfigurationError, match=r"options\.ignoreCorruptFiles: cannot be set: write `on_bad_file"):
        s.configuration(source=source("csv", header=True, ignoreCorruptFiles=True))

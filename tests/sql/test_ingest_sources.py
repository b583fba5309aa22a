"""Every kind of source, and what is wrong with one, told with file, columns or version."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sql.empty_database import common

from patternlake.delta_tables.committing.database import Database
from patternlake.jobs.configuration.file_patterns import alone
from patternlake.jobs.sources.errors import ChangedSourceError
from patternlake.udfs.errors import ConfigurationError, SourceError
from tests.sql.ingesting import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

XES = """<?xml version="1.0" encoding="UTF-8"?>
<log xes.version="1.0"><trace><string key="concept:name" value="case 1"/>
<event><string key="concept:name" value="pay"/><date key="time:timestamp" value="2024-01-01T00:00:01+01:00"/></event>
<event><string key="concept:name" value="ship"/><date key="time:timestamp" value="2024-01-02T00:00:01+01:00"/></event>
</trace></log>
"""


@pytest.fixture(scope="module")
def db(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Database:
    return common(spark, tmp_path_factory)


@pytest.fixture
def s(db: Database, tmp_path: Path) -> Lake:
    return Lake(db, tmp_path)


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("at,who,what,x", "in another order"),
        ("at,what,who", "missing: x"),
        ("at,what,who,x,y", "new: y"),
        ("at,What,who,z", "new: z; missing: x"),
    ],
)
def test_a_csv_file_with_another_header_is_refused_with_its_columns(
    s: Lake, header: str, told: str, later: bool
) -> None:
    s.write("a.csv", "2024-01-01,a,k,1")
    if later:
        s.ingest()
    s.write("b.csv", ",".join(["2024-01-02", *"bky1"[: header.count(",")]]), header=header)
    with pytest.raises(SourceError) as raised:
        s.ingest()
    if later:
        assert (
            f"b.csv has the columns {header.replace(',', ', ')}, expected at, what, who, x ({told}); put its header "
            "right, or make files with these columns a stream of their own, or write `on_bad_file: quarantine`"
        ) in str(raised.value)
        assert s.events("name") == [("a",)]
        return
    message = str(raised.value)
    assert re.search(r"file file:/.*/[ab]\.csv has the columns", message)
    assert header.replace(",", ", ") in message
    assert "at, what, who, x" in message
    assert s.events("name") == []


def test_a_csv_file_put_right_is_read(s: Lake) -> None:
    s.write("a.csv", "2024-01-01,a,k,1")
    s.write("b.csv", "2024-01-01,a,k,1", header="at,what,who")
    with pytest.raises(SourceError, match=r"put its header right"):
        s.ingest()
    s.write("b.csv", "2024-01-01,b,k,1")
    assert s.ingest().rows_out == 2
    assert s.ingest().batches == 0, "it is not one that changed after it was read"
    s.write("c.csv", "2024-01-01,a,k,1", header="at,what,who")
    with pytest.raises(SourceError, match=r"put its header right"):
        s.ingest()
    s.write("c.csv", "2024-01-02,c,k,1")
    os.utime(s.data / "c.csv", (7, 7))
    assert s.ingest().rows_out == 1
    s.write("d.csv", "2024-01-03,d,k,1")
    assert s.ingest().rows_out == 1
    s.write("c.csv", "2024-01-02,changed,k,1")
    with pytest.raises(SourceError, match=r"changed after it was read: file:/.*/c\.csv; put new rows"):
        s.ingest()


def test_csv_of_a_schema_is_typed_and_globs_choose_files(s: Lake) -> None:
    s.write("a.csv", "2024-01-01 00:00:00;a;1.5", "2024-01-01 00:00:01;b;many", header=None)
    s.write("a.txt", "not;csv", header=None)
    s.ingest(
        source={"format": "csv", "path": "data/*.csv", "options": {"sep": ";"}},
        schema="at TIMESTAMP, what STRING, x DOUBLE",
        key=None,
    )
    assert s.events("name", "key", "attributes['x']") == [("a", None, "1.5")]
    assert [(row["reason"], "many" in row["row"]) for row in s.quarantine()] == [("corrupt", True)]


def test_a_path_that_is_one_file_is_refused_with_what_to_write(s: Lake) -> None:
    file = s.write("a.csv", "2024-01-01,a,k,1")
    source = {"format": "csv", "path": "data/a.csv", "options": {"header": True}}
    with pytest.raises(SourceError) as raised:
        s.ingest(source=source)
    assert f"source {file} is one file, and a stream reads a folder" in str(raised.value)
    alone = f"{file.parent}/{{a.csv}}"
    assert f"write path: {file.parent}, or, if the folder holds other files, too, path: '{alone}'" in str(raised.value)
    s.write("b.csv", "2024-01-01,b,k,1")
    assert s.ingest(source={**source, "path": alone}).rows_out == 1
    options = {"header": True, "pathGlobFilter": "a.csv"}
    assert s.ingest(source={"format": "csv", "path": str(file.parent), "options": options}).rows_in == 0


@pytest.mark.parametrize("name", ["a.csv", "a,b.csv", "a[1].csv", "a{b,c}.csv", "no ending"])
def test_a_pattern_can_mean_one_file_whatever_its_name(s: Lake, name: str) -> None:
    file = s.write(name, "2024-01-01,a,k,1")
    for other in ("ab.csv", "a1.csv", "b.csv"):
        s.write(other, "2024-01-01,b,k,1")
    source = {"format": "csv", "path": alone(str(file)), "options": {"header": True}}
    assert s.ingest(source=source).rows_out == 1
    assert s.events("name") == [("a",)]


def test_a_source_that_holds_the_lake_is_refused(s: Lake) -> None:
    s.write("a.csv", "2024-01-01,a,k,1")
    with pytest.raises(SourceError, match=r"stream 's\d+': source '.*' means files of the lake, '.*', too"):
        s.ingest(source={"format": "csv", "path": s.db.location, "options": {"header": True}})


OVER_LINES = {
    "array": '[{"at": "2024-01-01", "what": "a"},\n{"at": "2024-01-02", "what": "b"}]\n',
    "pretty": '{\n  "at": "2024-01-01",\n  "what": "a",\n  "deep": [\n    {"at": 1}\n  ]\n}\n'
    '{\n  "at": "2024-01-02",\n  "what": "b"\n}\n',
}


@pytest.mark.parametrize("text", OVER_LINES.values(), ids=OVER_LINES)
@pytest.mark.parametrize("schema", [None, "at STRING, what STRING"])
def test_json_over_lines_is_refused_without_multiline_and_read_with_it(s: Lake, schema: str | None, text: str) -> None:
    changes = {"key": None, "attributes": None, "schema": schema}
    source: dict[str, Any] = {"format": "json", "path": "data"}
    (s.data / "a.json").write_text(text)
    with pytest.raises(
        SourceError,
        match=r"file file:/\S*/a.json would be misread: a JSON value goes on in the next line, which needs "
        r"`multiLine: true`: '[\[{].*; write that option, put the file right, or write `on_bad_file: quarantine`",
    ):
        s.ingest(source=source, **changes)
    s.write("b.json", '{"at": "2024-01-03", "what": "c"}', header=None)
    s.ingest(source={**source, "on_bad_file": "quarantine"}, **changes)
    assert (s.events("name"), s.reasons()) == ([("c",)], ["file"])
    source["options"] = {"multiLine": True}
    assert s.ingest(rebuild=True, source=source, **changes).rows_quarantined == 0
    assert s.events("name") == [("a",), ("b",), ("c",)]


def test_multiline_json_keeps_what_is_no_object_for_quarantine_and_knows_its_encoding(s: Lake) -> None:
    s.stream |= {
        "source": {"format": "json", "path": "data", "options": {"multiLine": True, "encoding": "UTF-16"}},
        "attributes": {"x": {"type": "string", "expr": "deep.list[1].x"}},
    }
    c, b, a = (
        json.dumps(
            {"at": "2024-01-01", "what": what, "who": "jürgen", "deep": {"list": [{}, {"x": "}{"}]}},
            indent=1,
            ensure_ascii=False,
        )
        for what in "cba"
    )
    (s.data / "1.json").write_text(f"{c}\n\n[{b},\n4]\n", encoding="utf-16")
    with gzip.open(s.data / "2.json.gz", "wt", encoding="utf-16") as packed:
        packed.write(f"{a} said {{\n")
    s.ingest()
    # In the order of their files.
    assert s.events("name", "key", "attributes['x']") == [(name, "jürgen", "}{") for name in "cba"]
    bad = [(row["reason"], json.loads(row["row"])["_corrupt_record"]) for row in s.quarantine()]
    assert sorted(bad) == [("corrupt", "4"), ("corrupt", "said"), ("corrupt", "{")]


def test_a_field_of_multiline_json_that_is_renamed_is_refused(s: Lake) -> None:
    s.stream |= {
        "source": {"format": "json", "path": "data", "options": {"multiLine": True}},
        "key": "userId",
        "attributes": {},
    }
    for number, field in enumerate(("userId", "userID")):
        (s.data / f"{number}.json").write_text(json.dumps({"at": "2024-01-01", "what": "a", field: "k"}, indent=1))
        if field == "userId":
            s.ingest()
    with pytest.raises(SourceError, match=r"1\.json has no field userId; it has at, userID, what"):
        s.ingest()


ROW_CSV = "at,what,für\n2024-01-01,a,k\n"
ROW_JSON = '{"at": "2024-01-01", "what": "a", "für": "k"}\n'


@pytest.mark.parametrize(
    ("format", "text", "options", "told"),
    [
        ("csv", ROW_CSV.encode("utf-16"), {}, r"byte 0xFF at 0 .*such as `encoding: UTF-16`, `multiLine: true`"),
        ("json", ROW_JSON.encode("utf-16"), {}, r"byte 0xFF at 0 .*such as `encoding: UTF-16`, `multiLine: true`"),
        ("csv", ROW_CSV.encode("cp1252"), {}, r"byte 0xFC at 9 \(line 1\) is no text; .*`encoding: windows-1252`"),
        ("json", ROW_JSON.encode("cp1252"), {}, r"byte 0xFC at 36 \(line 1\) is no text; .*`encoding: windows-1252`"),
        ("json", b"\ngarbage\nand more\n", {}, r"1\.json holds no JSON object: 'garbage'"),
        ("csv", ROW_CSV.encode(), {"encoding": "utf9"}, r"options\.encoding: 'utf9' is no encoding that is known"),
        ("json", ROW_JSON.encode(), {"encoding": "utf9"}, r"options\.encoding: 'utf9' is no encoding that is known"),
        ("json", ROW_JSON.encode("utf-16"), {"encoding": "UTF-16"}, r"'UTF-16': .*write `multiLine: true` beside it"),
    ],
)
def test_a_first_file_in_which_no_column_can_be_read_is_refused(
    s: Lake, format: str, text: bytes, options: dict[str, str], told: str
) -> None:
    (s.data / f"1.{format}").write_bytes(text)
    header = {"header": True} if format == "csv" else {}
    with pytest.raises((SourceError, ConfigurationError), match=told):
        s.ingest(source={"format": format, "path": "data", "options": {**header, **options}}, key="`für`")


def test_a_view_is_no_source(s: Lake) -> None:
    s.spark.sql("SELECT '2024-01-01' AS at, 'a' AS what").createOrReplaceTempView("no_source")
    changes = {"key": None, "attributes": None}
    with pytest.raises(SourceError) as raised:
        s.ingest(source={"table": "no_source"}, **changes)
    message = str(raised.value)
    assert "source no_source is a temporary view, and a stream follows the commits of a Delta table" in message
    assert "keep its rows: CREATE TABLE … USING delta AS SELECT * FROM no_source" in message
    assert "or files (csv, json, parquet, xes)" in message
    s.spark.catalog.dropTempView("no_source")


def test_json_lines_are_text_unless_a_schema_says_otherwise(s: Lake) -> None:
    rows = [
        {"at": "2024-01-01", "what": "a", "n": {"x": 1.50}},
        {"at": "2024-01-02", "what": "b", "big": 12345678901234567890},
    ]
    s.write("a.json", *map(json.dumps, rows), "{broken", header=None)
    attributes = {"x": {"type": "string", "expr": "n.x"}, "big": "string"}
    summary = s.ingest(source={"format": "json", "path": "data"}, key=None, attributes=attributes)
    assert (summary.rows_out, summary.rows_quarantined) == (2, 1)
    assert s.events("name", "attributes['x']", "attributes['big']") == [
        ("a", "1.5", None),
        ("b", None, "12345678901234567890"),
    ]
    assert "{broken" in s.quarantine()[0]["row"]


def test_parquet_brings_its_types(s: Lake) -> None:
    made = s.spark.sql(
        "SELECT TIMESTAMP '2024-01-01 00:00:00Z' AS at, 'a' AS what, 5 AS who, DOUBLE('NaN') AS x, map('k', 1) AS m"
    )
    made.write.parquet(str(s.data / "p"))
    s.ingest(source={"format": "parquet", "path": "data/p"})
    assert s.events("position", "key", "attributes['x']") == [(1, "5", "NaN")]


def test_xes_logs_give_events_of_traces(s: Lake) -> None:
    s.write("log 1.xes", XES, header=None)
    xes = {
        "source": {"format": "xes", "path": "data/*.xes"},
        "time": "`time:timestamp`",
        "name": "`concept:name`",
        "key": "`case:concept:name`",
        "attributes": {},
    }
    s.ingest(**xes)
    assert s.events("position", "name", "key", "cast(time AS string)") == [
        (1, "pay", "case 1", "2023-12-31 23:00:01"),
        (2, "ship", "case 1", "2024-01-01 23:00:01"),
    ]
    s.write("log 2.xes", "<log><event></log>", header=None)
    with pytest.raises(SourceError, match=r"log(%20| )2\.xes cannot be read: line 1, column \d+: broken XML"):
        s.ingest(**xes)


def test_a_delta_table_is_followed_and_changes_in_it_are_refused_with_the_version(s: Lake) -> None:
    table = f"{s.db.name}.raw_{s.name}"
    s.spark.sql(f"CREATE TABLE {table} (at TIMESTAMP, what STRING, who STRING, x DOUBLE) USING DELTA")
    s.spark.sql(f"INSERT INTO {table} VALUES (TIMESTAMP '2024-01-01', 'a', 'k', 1), (NULL, 'a', 'k', 1)")
    source = {"table": table}
    s.ingest(source=source)
    s.spark.sql(f"INSERT INTO {table} VALUES (TIMESTAMP '2024-01-02', 'b', 'k', 1)")
    assert s.ingest(source=source).rows_in == 1
    assert s.events("name", "batch_id") == [("a", 1), ("b", 2)]
    assert [(row["reason"], row["origin"]) for row in s.quarantine()] == [("time", table)]
    s.spark.sql(f"UPDATE {table} SET what = 'c' WHERE what = 'b'")
    with pytest.raises(SourceError, match=rf"version 3 of {table} updates or deletes rows.*on_change: rebuild"):
        s.ingest(source=source)
    s.ingest(source=source, on_change="rebuild")
    assert s.events("name", "batch_id") == [("a", 3), ("c", 3)]


def test_a_source_that_is_not_there_is_named(s: Lake) -> None:
    with pytest.raises(SourceError, match=r"nowhere"):
        s.ingest(source={"format": "parquet", "path": "nowhere"})
    with pytest.raises(SourceError, match=r"nowhere"):
        s.ingest(source={"format": "xes", "path": "nowhere"})
    with pytest.raises(SourceError, match=r"no\.table|`no`\.`table`"):
        s.ingest(source={"table": "no.table"})
    with pytest.raises(ConfigurationError, match=rf"streams\.{s.name}\.schema: 'a b c' is not DDL"):
        s.ingest(schema="a b c")


def test_a_folder_that_is_still_empty_is_no_error(s: Lake) -> None:
    assert s.ingest().batches == 0


def test_folders_whose_files_are_not_read_are_told(s: Lake, caplog: pytest.LogCaptureFixture) -> None:
    for folder in ("2024-01-01", "_old"):
        (s.data / folder).mkdir()
    s.write("2024-01-01/a.csv", "2024-01-01,a,k,1")
    s.ingest()
    assert "folders are, whose files are not read: 2024-01-01; for all files below it, write" in caplog.text
    deep = {**s.stream["source"], "options": {"header": True, "recursiveFileLookup": True}}
    assert s.ingest(source=deep).rows_out == 1


@pytest.mark.parametrize("change", ["replaced", "made again", "renamed", "dropped"])
def test_a_table_that_became_another_is_refused_and_read_anew_where_asked(s: Lake, change: str) -> None:
    table = f"{s.db.name}.raw_{s.name}"
    source = {"table": table}
    properties = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    made = f"{table} USING delta {properties} AS SELECT '2024-01-01' at, '{{}}' what, 'k' who, '1' x, '2' y"
    s.spark.sql(f"CREATE TABLE {made.format('a')}")
    s.ingest(source=source)
    if change == "made again":
        s.spark.sql(f"DROP TABLE {table}")
    if change in ("renamed", "dropped"):
        rest = "RENAME COLUMN y TO z" if change == "renamed" else "DROP COLUMN y"
        s.spark.sql(f"ALTER TABLE {table} {rest}")
        values = "'2024-01-02', 'b', 'k', '1'" + (", '2'" if change == "renamed" else "")
        s.spark.sql(f"INSERT INTO {table} VALUES ({values})")
    else:
        s.spark.sql(f"CREATE OR REPLACE TABLE {made.format('b')}")
    version = "from version 1 on, " if change in ("renamed", "dropped") else ".*"
    with pytest.raises(ChangedSourceError, match=f"stream '{s.name}': {version}{table}.*on_change: rebuild"):
        s.ingest(source=source)
    s.ingest(source=source, on_change="rebuild")
    assert s.events("name") == ([("a",), ("b",)] if change in ("renamed", "dropped") else [("b",)])


def test_a_table_whose_log_was_cleaned_up_before_it_was_read_is_read_anew_where_asked(s: Lake) -> None:
    table, folder = f"{s.db.name}.raw_{s.name}", s.folder / "raw"
    source = {"table": table}
    made = f"{table} USING delta TBLPROPERTIES ('delta.checkpointInterval' = '1') LOCATION '{folder}'"
    s.spark.sql(f"CREATE TABLE {made} AS SELECT '2024-01-01' at, 'a' what, 'k' who, '1' x")
    s.ingest(source=source)
    for day in (2, 3):
        s.spark.sql(f"INSERT INTO {table} VALUES ('2024-01-0{day}', 'b', 'k', '1')")
    for version in (0, 1):
        (folder / "_delta_log" / f"{version:020}.json").unlink()
    told = f"stream '{s.name}': the log of {table} has lost commits from version 0 on .*on_change: rebuild"
    with pytest.raises(ChangedSourceError, match=told):
        s.ingest(source=source)
    s.ingest(source=source, on_change="rebuild")
    assert s.events("name") == [("a",), ("b",), ("b",)]

"""A batch's rows are written by Spark's tasks, range by range in the driver, or at once where they are few: alike."""

from __future__ import annotations

import datetime as dt
import gzip
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from sql.empty_database import opened

from patternlake.delta_tables.batches.batch import Batch
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.committing.sessions import temporary_settings
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.writing import writes
from patternlake.jobs.batches import few
from patternlake.jobs.ingest import bringing, ordering, spilling, writing
from patternlake.jobs.sources import places, text_files
from patternlake.jobs.starter.checking import check
from patternlake.udfs.errors import ConfigurationError, SourceError, StateError
from tests.sql.ingesting import HEADER, Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAYS = ("few", "ranges", "tasks")
Way = Callable[[str], None]


@pytest.fixture(scope="module")
def db(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Database:
    return opened(spark, "ways_of_ingest", tmp_path_factory.mktemp("lake"))


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch) -> Way:
    """Make ingest go one of the ways from here on."""

    def choose(way: str) -> None:
        if way != "few":
            monkeypatch.setattr(text_files, "FEW_BYTES", -1)
            monkeypatch.setattr(few, "FEW_EVENTS", -1)
            monkeypatch.setattr(ordering, "RANGE_ROWS", 7)
            monkeypatch.setattr(ordering, "SAMPLED", 1)
        if way == "tasks":
            monkeypatch.setattr(bringing, "on_one_disk", lambda spark: False)
            monkeypatch.setattr(text_files, "is_at_hand", lambda file: False)

    return choose


LINES = [
    f"2024-01-0{1 + n % 2} 00:00:{n % 5:02},{'abc'[n * n % 3]},{('k', 'j', '')[n % 3]},{n if n % 7 else 'bad'}"
    for n in range(40)
]


@pytest.fixture(scope="module")
def written() -> dict[str, Any]:
    """What the ways that were gone so far have written."""
    return {}


@pytest.mark.parametrize("way", WAYS)
def test_the_tables_are_the_same_whichever_way_the_rows_go(
    db: Database, tmp_path: Path, go: Way, way: str, written: dict[str, Any]
) -> None:
    go(way)
    lake = Lake(db, tmp_path)
    lake.stream |= {"tokens": ["name", "who"], "allowed_lateness": "1 DAY", "event_id": "concat(what, who, at)"}
    lake.write("1.csv", *LINES[:25], "not a time,a,k,1", "2024-01-01 00:00:09,,k,1")
    lake.ingest()
    lake.write("2.csv", *LINES[25:], "2023-01-01 00:00:00,late,k,1")
    lake.ingest()
    events = lake.events("position", "time", "key", "name", "attributes", "tokens", "event_id", "batch_id")
    assert [row[0] for row in events] == list(range(1, len(events) + 1))
    log = db.table("event_statistics").where(f"stream_id = {_number(lake)}")
    counted = log.selectExpr("batch_id", "name", "events", "first_time", "last_time").collect()
    written[way] = (
        events,
        [tuple(row)[1:4] for row in lake.quarantine()],
        sorted(map(tuple, counted)),
    )
    assert len(written[way][1]) > 5
    assert written[way] == next(iter(written.values()))


@pytest.mark.parametrize("way", WAYS)
def test_events_of_one_time_stand_in_the_order_that_the_stream_says(
    db: Database, tmp_path: Path, go: Way, way: str
) -> None:
    go(way)
    lake = Lake(db, tmp_path)
    # A shuffled file of one time and key; what is alike in `order` stays as it stands in the file.
    numbers = [1e300, -1.0, float("nan"), 0.0, -0.0, float("inf"), 2.5, None]
    rows = [(number, f"n{(number_at * 5 + turn) % 9}") for turn in range(3) for number_at, number in enumerate(numbers)]
    lake.write("1.csv", *(f"2024-01-01,{name},k,{'' if x is None else x}" for x, name in rows))
    order = ["CAST(x AS DOUBLE)", "CAST(x AS DECIMAL(4, 2)) IS NULL", "length(what)", "who"]
    lake.ingest(order=order)

    def by(row: tuple[float | None, str]) -> tuple[Any, ...]:
        x, _ = row
        return (x is not None, x is not None and x != x, 0.0 if x is None or x != x else x)

    assert lake.events("attributes['x'] IS NULL", "name") == [(x is None, name) for x, name in sorted(rows, key=by)]
    lake.write("2.csv", "2024-01-02,buy,k,2", "2024-01-02,view,k,1")
    lake.ingest(order=order)
    assert lake.events("name")[-2:] == [("view",), ("buy",)]
    with pytest.raises(StateError, match="order changed, which would mix"):
        lake.ingest(order="x")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_events_of_one_time_stand_in_the_order_of_their_files(
    db: Database, tmp_path: Path, go: Way, way: str, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(way)
    # The numbers of few files are found by comparisons, of many by a look-up.
    monkeypatch.setattr(places, "_COMPARED", 2 if way == "tasks" else 64)
    lake = Lake(db, tmp_path)
    names = {"b ü": ["view", "buy", "ask"] * 9, "a": ["zoom", "ask", "buy", "a", "view"], "c": ["late"]}
    for file, told in names.items():
        table = pa.table({"at": ["2024-01-01"] * len(told), "what": told, "who": ["k"] * len(told)})
        path = lake.data / f"{file}.{format}"
        if format == "parquet":
            pq.write_table(table, path, row_group_size=2)
        else:
            rows = table.to_pylist()
            lines = [json.dumps(row) if format == "json" else ",".join(row.values()) for row in rows]
            lake.write(path.name, *lines, header="at,what,who" if format == "csv" else None)
    options = {"header": True} if format == "csv" else {}
    lake.stream |= {"source": {"format": format, "path": "data", "options": options}, "attributes": {}}
    # Each file is cut into blocks of some rows, which tasks take by their sizes.
    cut = {"spark.sql.files.maxPartitionBytes": "100", "spark.sql.files.openCostInBytes": "1"}
    with temporary_settings(lake.spark, cut):
        lake.ingest()
    assert lake.events("name") == [(name,) for name in names["a"] + names["b ü"] + names["c"]]


@pytest.mark.parametrize("way", WAYS[1:])
@pytest.mark.parametrize("place", ["table", "file", "files"])
def test_events_that_only_their_names_order_are_counted_and_told(
    db: Database, tmp_path: Path, go: Way, way: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(way)
    lake = Lake(db, tmp_path)
    # 300 events of 300 keys, of which each comes alone; 2 with one time and key, and one name; 4 with two names.
    rows = [("2024-01-01", "a", f"k{number}", number) for number in range(300)]
    rows += [("2024-01-02", "a", "same", 1), ("2024-01-02", "a", "same", 2)]
    rows += [("2024-01-03", name, key, number) for key in ("k", None) for number, name in enumerate("ab")]
    refused = ("2024-01-01", None, "k1", 1)
    frame = lake.spark.createDataFrame([*rows, refused], "at string, what string, who string, x bigint").coalesce(1)
    lake.stream["source"] = {"format": "delta" if place == "table" else "parquet", "path": "data"}
    if place == "files":
        for wanted in ("what != 'b'", "what = 'b' OR what IS NULL"):
            frame.where(wanted).write.mode("append").parquet(str(lake.data))
    else:
        frame.write.format(lake.stream["source"]["format"]).mode("overwrite").save(str(lake.data))
    other = " in another file" if place == "files" else ""
    decide = "the names of the files decide" if place == "files" else "their names decide, by the alphabet,"
    told = (
        f"4 of 306 events (1.3%) share time and key with an event of another name{other}, and {decide} which comes "
        "first; write `order:` in the stream with an expression that says it, such as a sequence number"
    )
    assert check(lake.spark, lake.name, lake.configuration()).ties == (None if place == "file" else told)
    warnings = lake.ingest(quarantine_warning=1).warnings
    assert warnings == (() if place == "file" else (f"stream '{lake.name}': {told}, and run ingest with --rebuild",))
    assert lake.ingest(quarantine_warning=1, order="x", rebuild=True).warnings == ()
    lake.stream |= {"attributes": {}, "order": "'the same'", "key": None}
    warnings = lake.ingest(quarantine_warning=1, rebuild=True).warnings
    shared = ["4 of 306 events (1.3%) share time and `order` with"] if place != "file" else []
    assert [each.split(": ", 1)[1][: len(text)] for each, text in zip(warnings, shared, strict=True)] == shared


@pytest.mark.parametrize("way", WAYS[1:])
def test_events_of_one_time_stand_in_the_order_of_their_log(db: Database, tmp_path: Path, go: Way, way: str) -> None:
    go(way)
    lake = Lake(db, tmp_path)
    names = ["view", "buy", "view", "ask", "buy", "zoom", "ask", "buy", "view", "a"]
    moment = "<date key='at' value='2024-01-01T00:00:00Z'/>"
    events = "".join(f"<event>{moment}<string key='what' value='{name}'/></event>" for name in names)
    bad = f"<event>{moment}<string key='what' value='bad'/><string value='?'/></event>"
    (lake.data / "1.xes").write_text(f"<log><string value='?'/><trace>{events}{bad}</trace></log>")
    (lake.data / "more").mkdir()
    (lake.data / "more" / "1.xes").write_text(
        f"<log><trace><event>{moment}<string key='what' value='x'/></event></trace></log>"
    )
    source = {"format": "xes", "path": "data", "options": {"recursiveFileLookup": True}}
    lake.stream |= {"source": source, "key": "`case:concept:name`", "attributes": {}}
    lake.ingest()
    # Traces without a name go by the file, below the source's folder, and their number in it.
    assert lake.events("name", "key") == [*[(name, "1.xes#1") for name in names], ("x", "more/1.xes#1")]
    (refused,) = lake.quarantine()
    assert refused["reason"] == "corrupt"
    assert "line 1: <string> in <event> has no key" in refused["detail"]


def test_columns_of_any_name_but_our_own_are_read_as_they_are(db: Database, tmp_path: Path) -> None:
    lake = Lake(db, tmp_path)
    header = "__time,__name,__key,__hash,__a0,__s0,__origin,__place,__event_id,_metadata,file,block,place"
    more = "m,f,b,p"
    lake.write("1.csv", f"2024-01-02,a,k,7,1,s,o,p,e1,{more}", f"never,b,k,8,2,s,o,p,e2,{more}", header=header)
    kept: dict[str, Any] = dict.fromkeys(["__hash", "__s0", "__origin", "__time", "_metadata", "block"], "string")
    kept["x"] = {"type": "int", "expr": "__a0"}
    lake.stream |= {"time": "__time", "name": "__name", "key": "__key", "event_id": "__event_id", "attributes": kept}
    lake.ingest(tokens=["name", "__place"])
    told = {
        "__hash": "7",
        "__s0": "s",
        "__origin": "o",
        "__time": "2024-01-02",
        "_metadata": "m",
        "block": "b",
        "x": "1",
    }
    assert lake.events("name", "key", "event_id", "attributes", "tokens") == [("a", "k", "e1", told, ["a", "p"])]
    (refused,) = lake.quarantine()
    assert json.loads(refused["row"])["__time"] == "never"
    (tmp_path / "other").mkdir()
    other = Lake(db, tmp_path / "other")
    other.write("1.csv", "2024-01-02,a,k,7,1", header="at,what,who,x,__PatternLake_time")
    with pytest.raises(SourceError, match="called '__PatternLake_time'; names that begin with '__patternlake_'"):
        other.ingest()


@pytest.mark.parametrize("way", WAYS)
def test_a_row_in_quarantine_has_all_microseconds_of_its_moments(
    db: Database, tmp_path: Path, go: Way, way: str
) -> None:
    go(way)
    lake = Lake(db, tmp_path)
    rows = lake.spark.sql(
        "SELECT CAST(NULL AS TIMESTAMP) at, 'a' what, 'k' who, 1D x, TIMESTAMP '2024-01-01 00:00:00.123456Z' seen, "
        "TIMESTAMP_NTZ '2024-01-01 00:00:00.000001' wall, "
        "named_struct('list', array(TIMESTAMP '2024-01-01 00:00:00Z')) deep"
    )
    rows.write.parquet(str(tmp_path / "rows"))
    next((tmp_path / "rows").glob("*.parquet")).rename(lake.data / "1.parquet")
    lake.stream["source"] = {"format": "parquet", "path": "data"}
    lake.ingest()
    (row,) = lake.quarantine()
    assert json.loads(row["row"]) == {
        "at": None, "what": "a", "who": "k", "x": 1.0,
        "seen": "2024-01-01T00:00:00.123456Z",
        "wall": "2024-01-01T00:00:00.000001",
        "deep": {"list": ["2024-01-01T00:00:00.000000Z"]},
    }  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_quotes_inside_quotes_are_doubled_as_pandas_and_excel_write_them(
    db: Database, tmp_path: Path, go: Way, way: str
) -> None:
    go(way)
    lake = Lake(db, tmp_path)
    lake.write(
        "1.csv", '2024-01-01,"click ""buy""",k,1', '2024-01-02,"{""a"": 1, ""b"": 2}",k,1', '2024-01-03,"c\\",k,1'
    )
    assert lake.ingest().rows_quarantined == 0
    assert lake.events("name") == [('click "buy"',), ('{"a": 1, "b": 2}',), ("c\\",)]


def refused(lake: Lake, file: str, reason: str, **changes: Any) -> None:
    """One file is refused by its name, or left out where bad files are; the other one is read."""
    with pytest.raises(SourceError, match=rf"file file:/\S*/{re.escape(file)} {reason}.*; .*on_bad_file: quarantine"):
        lake.ingest(**changes)
    source = {**lake.stream["source"], "on_bad_file": "quarantine"}
    lake.ingest(source=source, **changes)
    (bad,) = lake.quarantine()
    assert (Path(bad["origin"]).name, bad["reason"]) == (file, "file")
    assert re.match(rf"file: {reason}", bad["detail"]), bad["detail"]
    assert len(lake.events("name")) == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("packed", [False, True])
def test_text_that_is_not_of_its_encoding_is_refused_by_byte(
    db: Database, tmp_path: Path, go: Way, way: str, packed: bool
) -> None:
    go(way)
    lake = Lake(db, tmp_path)
    lake.write("1.csv", "2024-01-01,a,k,1")
    rows = f"{HEADER}\n2024-01-01,a,jürgen,1\n2024-01-02,b,jörgen,1\n".encode("windows-1252")
    (lake.data / f"2.csv{'.gz' * packed}").write_bytes(gzip.compress(rows) if packed else rows)
    refused(
        lake,
        f"2.csv{'.gz' * packed}",
        r"is not of the encoding UTF-8: byte 0xFC at 28 \(line 2\) is no text; name its encoding .*1252`",
    )


def test_an_encoding_that_is_named_is_the_one_that_is_read(db: Database, tmp_path: Path) -> None:
    lake = Lake(db, tmp_path)
    (lake.data / "1.csv").write_bytes(f"{HEADER}\n2024-01-01,a,jürgen,1\n".encode("windows-1252"))
    options = {"header": True, "encoding": "windows-1252"}
    lake.stream["source"]["options"] = options
    assert lake.ingest().rows_out == 1
    assert lake.events("key") == [("jürgen",)]
    other = Lake(db, tmp_path / "other")
    other.stream["source"]["options"] = {**options, "encoding": "US-ASCII"}
    other.write("1.csv", "2024-01-01,a,k,1")
    other.write("2.csv", "2024-01-01,a,jürgen,1")
    refused(other, "2.csv", r"is not of the encoding US-ASCII: byte 0xC3 at 28 \(line 2\)")
    lines = Lake(db, tmp_path / "json")
    lines.stream |= {
        "source": {"format": "json", "path": "data", "options": {"encoding": "windows-1252"}},
        "key": "`für`",
        "attributes": {},
    }
    (lines.data / "1.json").write_bytes('{"at": "2024-01-01", "what": "a", "für": "jürgen"}\n'.encode("windows-1252"))
    lines.ingest()
    assert lines.events("name", "key") == [("a", "jürgen")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "line", ['{"at": "2024-01-02", "what": "b"}{"at": "2024-01-03", "what": "c"}', '{"what": "b"} xyz']
)
def test_a_json_line_with_more_than_one_object_is_refused(
    db: Database, tmp_path: Path, go: Way, way: str, line: str
) -> None:
    go(way)
    lake = Lake(db, tmp_path)
    lake.stream |= {"source": {"format": "json", "path": "data"}, "key": None, "attributes": {}}
    good = '{"at": "2024-01-01", "what": "a", "deep": {"list": [{"x": 1}, {}], "text": "}{]"}, "odd": NaN, \'q\': 1}'
    lake.write("1.json", good, "", header=None)
    lake.write("2.json", good, line, header=None)
    refused(lake, "2.json", r"holds more than one JSON value on a line: '\{")


def test_a_json_field_that_is_renamed_is_refused_and_one_that_is_missing_is_null(db: Database, tmp_path: Path) -> None:
    lake = Lake(db, tmp_path)
    lake.stream |= {"source": {"format": "json", "path": "data"}, "key": "userId", "attributes": {"x": "double"}}
    lake.write("1.json", '{"at": "2024-01-01", "what": "a", "userId": "k", "x": 1}', header=None)
    lake.ingest()
    lake.write("2.json", '{"at": "2024-01-02", "what": "b"}', header=None)
    lake.write("3.json", '{"at": "2024-01-02", "what": "b", "userId": "k", "y": 1}', header=None)
    assert lake.ingest().rows_out == 2
    for number, fields in enumerate(('"userID": "k", "x": 1', '"customer": "k", "x": 1', '"userId": "k", "X": 1'), 4):
        file = lake.write(f"{number}.json", f'{{"at": "2024-01-02", "what": "b", {fields}}}', header=None)
        with pytest.raises(
            SourceError, match=rf"{number}\.json has no field (userId|x); it has .*coalesce\(old, new\)"
        ):
            lake.ingest()
        file.unlink()


@pytest.mark.parametrize("over_lines", [False, True])
def test_a_json_field_inside_of_another_that_is_renamed_is_refused(
    db: Database, tmp_path: Path, over_lines: bool
) -> None:
    lake = Lake(db, tmp_path)
    lake.stream |= {
        "source": {"format": "json", "path": "data", "options": {"multiLine": over_lines}},
        "key": "user.account.id",
        "attributes": {"x": {"type": "double", "expr": "user.x"}, "y": {"type": "double", "expr": "more.y"}},
    }

    def write(number: int, user: Any, **more: Any) -> Path:
        row = {"at": "2024-01-01", "what": "a", "user": user, **more}
        return lake.write(f"{number}.json", json.dumps(row, indent=1 if over_lines else None), header=None)

    write(1, {"account": {"id": "k"}, "x": 1}, more={"y": 1})
    lake.ingest()
    write(2, {"account": {"id": "k"}, "z": 1})
    write(3, {"account": {}})
    write(4, {"account": None}, more={"y": 2})
    assert lake.ingest().rows_out == 3
    for number, (account, x) in enumerate(((("ID", "k"), "x"), (("uid", "k"), "x"), (("id", "k"), "X")), 5):
        file = write(number, {"account": dict([account]), x: 1})
        told = rf"{number}\.json has no field (user\.account\.id; it has user\.account\.|user\.x; it has user\.X)"
        with pytest.raises(SourceError, match=told):
            lake.ingest()
        file.unlink()


def test_a_json_field_is_renamed_though_its_name_stands_elsewhere(db: Database, tmp_path: Path) -> None:
    lake = Lake(db, tmp_path)
    lake.stream |= {"source": {"format": "json", "path": "data"}, "key": "user.id", "attributes": {"id": "int"}}

    def write(number: int, **row: Any) -> Path:
        return lake.write(f"{number}.json", json.dumps({"at": "2024-01-01", "what": "a", **row}), header=None)

    write(1, id=1, user={"id": "k"}, item={"id": 1})
    lake.ingest()
    write(2, id=1, user=None, item={"id": 1})
    write(3, id=1, user={}, item={"id": 1})
    assert lake.ingest().rows_out == 2
    for number, field, row in (
        (4, "user.id", {"id": 1, "user": {"uid": "k"}, "item": {"id": 1}}),
        (5, "id", {"ID": 1, "user": {"id": "k"}, "item": {"id": 1}}),
    ):
        file = write(number, **row)
        with pytest.raises(SourceError, match=rf"{number}\.json has no field {re.escape(field)}; it has "):
            lake.ingest()
        file.unlink()


def test_a_field_of_nested_parquet_that_is_renamed_is_refused(db: Database, tmp_path: Path) -> None:
    lake = Lake(db, tmp_path)
    lake.stream |= {"source": {"format": "parquet", "path": "data"}, "key": "user.id", "attributes": {}}
    row = {"at": "2024-01-01", "what": "a"}
    for number, user in enumerate(({"id": "k", "x": 1}, {"ID": "k"}, {"id": "k", "y": 1})):
        pq.write_table(pa.Table.from_pylist([{**row, "user": user}]), lake.data / f"{number}.parquet")
        assert lake.ingest().rows_out == 1
    pq.write_table(pa.Table.from_pylist([{**row, "user": {"userId": "k", "x": 1}}]), lake.data / "9.parquet")
    told = r"9\.parquet lacks the columns user\.id; it has at, what, user, user\.userId"
    with pytest.raises(SourceError, match=told):
        lake.ingest()


@pytest.mark.parametrize("way", WAYS)
def test_csv_headers_with_empty_and_repeated_cells_are_read_and_enforced(
    db: Database, tmp_path: Path, go: Way, way: str
) -> None:
    go(way)
    lake = Lake(db, tmp_path)
    lake.stream |= {
        "name": "what4",
        "attributes": {"row": {"type": "int", "expr": "`_c0`"}, "end": {"type": "string", "expr": "`_c5`"}},
    }
    header = ",at,what,who,what,"
    lake.write("1.csv", "7,2024-01-01,x,k,a,", header=header)
    lake.ingest()
    lake.write("2.csv", "8,2024-01-02,x,k,b", header=",at,what,who,action")
    refused(lake, "2.csv", r"has the columns _c0, at, what, who, action, expected _c0, at, what2, who, what4, _c5")
    assert lake.events("name", "attributes") == [("a", {"row": "7"})]


@pytest.mark.parametrize("way", WAYS)
def test_a_quoted_value_over_lines_is_refused_without_multiline(
    db: Database, tmp_path: Path, go: Way, way: str
) -> None:
    go(way)
    lake = Lake(db, tmp_path)
    lake.write("1.csv", '2024-01-01,"5"" disk, ""new""",k,1')
    lake.write("2.csv", '2024-01-01,a,"two', 'lines",1')
    refused(
        lake, "2.csv", r"would be misread: a value in quotes goes on in the next line, which needs `multiLine: true`"
    )
    lake.ingest(rebuild=True, source={**lake.stream["source"], "options": {"header": True, "multiLine": True}})
    assert lake.events("name", "key") == [('5" disk, "new"', "k"), ("a", "two\nlines")]


@pytest.mark.parametrize("way", WAYS[1:])
def test_parquet_is_read_whatever_the_types_of_columns_that_are_not_used(
    db: Database, tmp_path: Path, go: Way, way: str
) -> None:
    go(way)
    lake = Lake(db, tmp_path)
    lake.stream |= {"source": {"format": "parquet", "path": "data"}, "attributes": {"x": "double", "note": "string"}}
    nanoseconds = pa.array([1704067200123456789, -1], pa.timestamp("ns"))
    odd = {"clock": pa.array([dt.time(1), None]), "half": pa.array([np.float16(1), None], pa.float16())}
    first = {"at": nanoseconds, "what": ["a", "b"], "who": ["k", "k"], "x": [1.0, 2.0], "note": pa.nulls(2)}
    pq.write_table(pa.table({**first, **odd, "free": pa.nulls(2), "other": [1, 2]}), lake.data / "1.parquet")
    lake.ingest()
    second = {"at": pa.array([1704067200123456, -1], pa.timestamp("us")), "what": ["c", "d"], "who": pa.nulls(2)}
    more = {"x": [3.0, 4.0], "note": ["late", None], "free": ["one", "two"], "other": ["many", "3"]}
    odd = {"clock": [1, 2], "half": [1, 2]}
    pq.write_table(pa.table({**second, **more, **odd}), lake.data / "2.parquet")
    lake.ingest(allowed_lateness="none")
    third = {**first, "note": [5, 6], "free": [1, 2], "other": pa.nulls(2), **odd}
    pq.write_table(pa.table(third), lake.data / "3.parquet")
    with pytest.raises(SourceError, match=r"3\.parquet cannot be read: Data type mismatches .*\[note\]"):
        lake.ingest(allowed_lateness="none")
    assert lake.reasons() == []
    assert lake.events("name", "date_format(time, 'yyyy-MM-dd HH:mm:ss.SSSSSS')", "key", "attributes['note']") == [
        ("b", "1969-12-31 23:59:59.999999", "k", None),
        ("a", "2024-01-01 00:00:00.123456", "k", None),
        ("d", "1969-12-31 23:59:59.999999", None, None),
        ("c", "2024-01-01 00:00:00.123456", None, "late"),
    ]


def test_a_column_of_parquet_that_spark_has_no_type_for_is_named_where_it_is_used(db: Database, tmp_path: Path) -> None:
    lake = Lake(db, tmp_path)
    lake.stream |= {"source": {"format": "parquet", "path": "data"}, "attributes": {"clock": "string"}}
    table = pa.table({"at": ["2024-01-01"], "what": ["a"], "who": ["k"], "clock": [dt.time(1)]})
    pq.write_table(table, lake.data / "1.parquet")
    with pytest.raises(
        ConfigurationError, match=r"attributes\.clock: no column 'clock' .* type TIME\(MICROS,false\), which"
    ):
        lake.ingest()


@pytest.mark.parametrize("way", WAYS[1:])
def test_a_file_that_is_cut_off_goes_to_quarantine(db: Database, tmp_path: Path, go: Way, way: str) -> None:
    go(way)
    lake = Lake(db, tmp_path)
    lake.stream["source"] = {"format": "parquet", "path": "data", "on_bad_file": "quarantine"}
    lake.spark.sql("SELECT '2024-01-01' at, 'a' what, 'k' who, 1D x").write.parquet(str(lake.data / "good"))
    good = next((lake.data / "good").glob("*.parquet"))
    (lake.data / "1.parquet").write_bytes(good.read_bytes())
    (lake.data / "2.parquet").write_bytes(good.read_bytes()[:-40])
    lake.stream["source"]["path"] = "data/*.parquet"
    summary = lake.ingest()
    assert (summary.rows_out, summary.rows_quarantined) == (1, 1)
    assert lake.reasons() == ["file"]


def test_each_range_is_a_file_with_rising_numbers_packed(db: Database, tmp_path: Path, go: Way) -> None:
    go("ranges")
    lake = Lake(db, tmp_path)
    lake.write("1.csv", *LINES)
    lake.ingest()
    files = list(Path(db.location, "events_log", f"stream_id={_number(lake)}", "block=0").glob("*.parquet"))
    assert len(files) > 1, "a file for each range"
    for file in files:
        encodings = {
            column.path_in_schema: column.encodings
            for column in map(pq.read_metadata(file).row_group(0).column, range(3))
        }
        for name in ("position", "time"):
            assert set(encodings[name]) - {"RLE"} == {"DELTA_BINARY_PACKED"}


def test_a_long_commit_through_spark_makes_spark_copy_the_files(
    db: Database, tmp_path: Path, go: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    go("ranges")
    monkeypatch.setattr(writes, "_PATIENCE", 0.0)
    lake = Lake(db, tmp_path)
    lake.write("1.csv", *LINES)
    commits = db.commits(TABLES["events"])
    assert commits is not None
    with commits.through_spark():
        lake.ingest()
    assert [row[0] for row in lake.events("position")] == list(range(1, len(lake.events("position")) + 1))
    last = DeltaTable(db.folder(TABLES["events"].log)).history(1)[0]
    assert "Apache-Spark" in last["engineInfo"]


def test_a_replay_writes_no_files(db: Database, tmp_path: Path, go: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    go("ranges")
    lake = Lake(db, tmp_path)
    lake.write("1.csv", *LINES)
    original = Batch.publish

    def die(*given: object, **named: object) -> None:
        raise RuntimeError("dead")

    monkeypatch.setattr(Batch, "publish", die)
    with pytest.raises(RuntimeError, match="dead"):
        lake.ingest()
    monkeypatch.setattr(Batch, "publish", original)
    before = _files(db)
    lake.ingest()
    assert _files(db) == before
    assert len(lake.events("position")) > 20


def test_nothing_is_left_where_the_rows_lay_on_disk(
    db: Database, tmp_path: Path, go: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    go("ranges")
    place = tmp_path / "spark"
    place.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{place},{tmp_path}/other")
    seen = []
    original = spilling.spill

    def spilled(rows: Any, folder: str) -> Any:
        found = original(rows, folder)
        seen.extend(place.rglob("*.accepted"))
        return found

    monkeypatch.setattr(spilling, "spill", spilled)
    lake = Lake(db, tmp_path)
    lake.write("1.csv", *LINES)
    lake.ingest()
    assert seen
    assert list(place.iterdir()) == []


def test_more_rows_than_the_driver_takes_are_left_to_tasks(
    db: Database, tmp_path: Path, go: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    go("ranges")
    monkeypatch.setattr(bringing, "MOST_ROWS", 39)
    monkeypatch.setattr(writing, "_write_here", None)
    lake = Lake(db, tmp_path)
    lake.write("1.csv", *LINES)
    assert lake.ingest().rows_in == 40


def _number(lake: Lake) -> int:
    (row,) = lake.db.table("streams").where(f"name = '{lake.name}'").select("stream_id").distinct().collect()
    return int(row["stream_id"])


def _files(db: Database) -> set[Path]:
    tables = ("events_log", "quarantine_log", "event_statistics_log")
    return set(itertools.chain(*(Path(db.location, table).rglob("*.parquet") for table in tables)))

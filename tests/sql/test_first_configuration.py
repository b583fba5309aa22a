"""From a table or files to a first answer, by the commands `init`, `check`, `run` and `sql`, as a user types them."""

from __future__ import annotations

import gzip
import json
import logging
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import patternlake
from patternlake.jobs.command_line import commands, local_spark
from patternlake.jobs.configuration.file import Configuration
from patternlake.udfs.errors import ArgumentError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLICKS = [
    ("2025-03-03 09:00:00", "ann", "cart", "19.90"),
    ("2025-03-03 09:02:00", "ben", "cart", "5.00"),
    ("2025-03-03 09:04:00", "ann", "help", "NA"),
    ("2025-03-03 09:05:00", "ben", "pay", "5.00"),
    ("2025-03-03 09:20:00", "ann", "leave", "NA"),
    ("2025-03-03 09:31:00", "ben", "leave", "NA"),
]
HEADER = "at,user,page,amount"


@pytest.fixture(autouse=True)
def _the_tests_session(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run on a platform whose session is that of the tests, in an empty folder."""
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "as in the tests")
    monkeypatch.setattr(local_spark, "hush", lambda: None)
    monkeypatch.setattr(commands.signal, "signal", lambda *given: None)
    for name in local_spark._ECHOES:
        monkeypatch.setattr(logging.getLogger(name), "disabled", True)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "clicks"
    folder.mkdir()
    (folder / "monday.csv").write_text("\n".join([HEADER, *map(",".join, CLICKS)]) + "\n")
    return folder


@pytest.fixture
def raw(spark: SparkSession) -> Iterator[str]:
    """A Delta table of the catalog, in a database of its own."""
    spark.sql("CREATE DATABASE raw_first")
    rows = [(at, user, page, None if amount == "NA" else amount) for at, user, page, amount in CLICKS]
    frame = spark.createDataFrame(rows, "at string, user string, page string, amount string")
    typed = frame.selectExpr("timestamp(at) AS at", "user", "page", "double(amount) AS amount")
    typed.write.format("delta").saveAsTable("raw_first.clicks")
    yield "raw_first.clicks"
    spark.sql("DROP DATABASE raw_first CASCADE")


def command(*arguments: str) -> int:
    try:
        commands.main(arguments)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def written(name: str = "patternlake.yaml") -> Configuration:
    return Configuration.load(name)


def meaning(configuration: Configuration) -> tuple[str, str, str | None, dict[str, str]]:
    stream = configuration.streams["clicks"]
    return stream.time, stream.name, stream.key, stream.types


def test_from_a_table_to_an_answer(
    spark: SparkSession, raw: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("init", "--table", raw, "--conf", "shop.yaml") == 0, capsys.readouterr().err
    told = capsys.readouterr()
    assert told.out == ""
    assert "looked at all 6 rows of table raw_first.clicks, and guessed:" in told.err
    assert "time: at (timestamp, 6 different)" in told.err
    configuration = written("shop.yaml")
    assert configuration.streams["clicks"].source.table == raw
    assert meaning(configuration) == ("at", "page", "user", {"amount": "double"})
    text = Path("shop.yaml").read_text()
    assert "the commonest: cart (2), leave (2), help (1), pay (1)" in text

    assert command("check", "--conf", "shop.yaml") == 0, capsys.readouterr().err
    checked = capsys.readouterr().out
    assert "6 rows read: 6 would be events, 0 would go to quarantine" in checked
    assert re.search(r"2025-03-03 09:04:00 Z +ann +help +NULL", checked)
    assert not spark.catalog.databaseExists("patternlake")

    place = text.replace("# location: ./lake", "location: ./lake").replace("database: patternlake", "database: first")
    Path("shop.yaml").write_text(place)
    assert command("run", "all", "--conf", "shop.yaml") == 0, capsys.readouterr().err
    ran = capsys.readouterr()
    assert ran.err == f"info: made a new lake at {tmp_path}/lake; there was none\n"
    summaries = [json.loads(line) for line in ran.out.splitlines()]
    assert (summaries[0]["job"], summaries[0]["rows_out"]) == ("ingest", 6)
    stood = patternlake.status(spark, "shop.yaml")
    assert (stood[0].job, stood[0].object, stood[0].rows_out) == ("ingest", "clicks", 6)
    shown = re.search(r'patternlake sql [^"]*"[^"]*"', told.err)
    assert shown
    assert command(*shlex.split(shown[0])[1:], "--format", "csv") == 0, capsys.readouterr().err
    assert capsys.readouterr().out.splitlines()[1:] == [
        "ann,2025-03-03 09:00:00,2025-03-03 09:20:00",
        "ben,2025-03-03 09:02:00,2025-03-03 09:31:00",
    ]


@pytest.mark.processes
def test_csv_files_are_read_by_their_header_and_their_word_for_what_is_missing(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("init", "--files", "clicks/*.csv") == 0, capsys.readouterr().err
    configuration = written()
    assert meaning(configuration) == ("at", "page", "user", {"amount": "double"})
    assert configuration.streams["clicks"].source.option("nullValue") == "NA"
    assert "path: clicks/*.csv" in Path("patternlake.yaml").read_text()
    assert command("check", "--conf", "patternlake.yaml") == 0, capsys.readouterr().err
    assert "6 would be events, 0 would go to quarantine" in capsys.readouterr().out


@pytest.mark.processes
def test_numbers_with_other_texts_become_null_there_and_names_are_counted_exactly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        f"2025-03-03 09:00:{n % 60:02d},u{n % 7},page {n % 105},{n / 10 if n % 150 else 'free'}" for n in range(630)
    ]
    (tmp_path / "clicks.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    assert command("init", "--files", "clicks.csv", "--conf", "-") == 0
    text = capsys.readouterr().out
    assert re.search(r"name: page +# string, 105 different$", text, re.M)
    assert re.search(
        r"amount: \{type: double, expr: try_cast\(amount AS DOUBLE\)\}\n +#   string, 626 different; 5 that are no "
        "numbers, such as 'free', become NULL$",
        text,
        re.M,
    )
    Path("patternlake.yaml").write_text(text)
    assert command("check", "--conf", "patternlake.yaml") == 0
    assert "630 rows read: 630 would be events, 0 would go to quarantine" in capsys.readouterr().out


@pytest.mark.processes
@pytest.mark.parametrize(
    ("zones", "pattern"),
    [
        (("", "", "", ""), "dd.MM.yyyy HH:mm"),
        ((" +01:00", " +0100", " CET", " Z"), "dd.MM.yyyy HH:mm[.SSSSSS][ ][XXX][XX][z]"),
    ],
)
def test_a_german_table_is_understood(
    zones: tuple[str, str, str, str], pattern: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two, three, four = zones
    hour = "10" if one else "09"
    rows = ["zeitpunkt;kundennummer;ereignis;betrag", f"28.11.2026 {hour}:00{one};K1;warenkorb;1.019,90"]
    rows += [f"28.11.2026 {hour}:02{two};K2;warenkorb;5", f"28.11.2026 {hour}:20{three};K1;bezahlt;-0,5"]
    rows += [f"01.12.2026 10:05{four};K2;weg;"]
    (tmp_path / "verkauf.csv").write_text("\n".join(rows) + "\n")
    assert command("init", "--files", "verkauf.csv") == 0, capsys.readouterr().err
    stream = written().streams["verkauf"]
    assert (stream.time, stream.name, stream.key) == (
        f"to_timestamp(zeitpunkt, '{pattern}')",
        "ereignis",
        "kundennummer",
    )
    capsys.readouterr()
    assert command("check", "--conf", "patternlake.yaml") == 0, capsys.readouterr().err
    shown = capsys.readouterr().out
    assert "4 would be events, 0 would go to quarantine" in shown
    assert re.search(r"2026-11-28 09:00:00 Z +K1 +warenkorb +1019\.9$", shown, re.M)
    assert re.search(r"2026-12-01 10:05:00 Z +K2 +weg +NULL$", shown, re.M)


@pytest.mark.processes
def test_times_whose_seconds_are_left_out_where_they_are_0_are_understood(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "calls").mkdir()
    times = ["2025-03-03T10:00+01:00", "2025-03-03T09:01Z", "2025-03-03T09:02:30Z", "2025-03-03T09:03:30.250Z"]
    rows = [f"{at},u{n % 2},{what}" for n, (at, what) in enumerate(zip(times, "abab", strict=True))]
    (tmp_path / "calls" / "1.csv").write_text("\n".join(["at,user,what", *rows]) + "\n")
    assert command("init", "--files", "calls") == 0, capsys.readouterr().err
    stream = written().streams["calls"]
    assert stream.time == r"to_timestamp(at, 'yyyy-MM-dd\'T\'HH:mm[:ss][.SSSSSS][ ][XXX][XX][z]')"
    capsys.readouterr()
    assert command("check", "--conf", "patternlake.yaml") == 0, capsys.readouterr().err
    shown = capsys.readouterr().out
    assert "4 would be events, 0 would go to quarantine" in shown
    assert re.findall(r"2025-03-03 (\S+) Z", shown) == ["09:00:00", "09:01:00", "09:02:30", "09:03:30.25"]


def test_one_file_is_read_again_where_the_lake_has_come_to_lie_beside_it(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "monday.csv").rename(tmp_path / "clicks.csv")
    assert command("init", "--files", "clicks.csv") == 0, capsys.readouterr().err
    assert "path: '{clicks.csv}'" in Path("patternlake.yaml").read_text()
    assert meaning(written()) == ("at", "page", "user", {"amount": "double"})
    capsys.readouterr()
    for rows in (6, 0):
        assert command("run", "ingest", "--conf", "patternlake.yaml") == 0, capsys.readouterr().err
        assert json.loads(capsys.readouterr().out)["rows_out"] == rows
    assert command("check", "--conf", "patternlake.yaml") == 0, capsys.readouterr().err
    assert "6 would be events, 0 would go to quarantine" in capsys.readouterr().out


@pytest.mark.processes
def test_a_folder_in_which_the_lake_would_lie_is_refused(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(files)
    assert command("init", "--files", ".") == 1
    told = capsys.readouterr().err
    assert f"{str(files)!r} means files of the lake, '{files}/lake', too: write a pattern such as {files}/*.csv" in told
    assert [file.name for file in files.iterdir()] == ["monday.csv"]
    assert command("init", "--files", ".", "--conf", "../patternlake.yaml") == 0, capsys.readouterr().err
    assert written("../patternlake.yaml").location == f"{tmp_path}/lake"


@pytest.mark.processes
def test_csv_files_without_a_header_get_names_and_their_separator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "clicks").mkdir()
    (tmp_path / "clicks" / "a.csv").write_text("\n".join(map(";".join, CLICKS)) + "\n")
    assert command("init", "--files", "clicks") == 0, capsys.readouterr().err
    stream = written().streams["clicks"]
    assert (stream.ddl, stream.source.option("sep")) == ("c1 STRING, c2 STRING, c3 STRING, c4 STRING", ";")
    assert (stream.time, stream.name) == ("c1", "c2")
    assert command("check", "--conf", "patternlake.yaml") == 0, capsys.readouterr().err
    assert "6 would be events" in capsys.readouterr().out


@pytest.mark.processes
def test_json_lines_are_read_with_what_is_nested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "clicks").mkdir()
    rows = [
        {"meta": {"user": user, "at": at}, "page": page, "tags": ["x"], "amount": None if amount == "NA" else amount}
        for at, user, page, amount in CLICKS
    ]
    (tmp_path / "clicks" / "a.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert command("init", "--files", "clicks/a.jsonl", "--stream", "shop") == 0, capsys.readouterr().err
    stream = written().streams["shop"]
    assert (stream.time, stream.name, stream.key) == ("meta.at", "page", "meta.user")
    assert stream.types == {"amount": "double"}
    assert "left out: tags is array<string>; an attribute is a single value" in Path("patternlake.yaml").read_text()
    assert command("check", "--conf", "patternlake.yaml") == 0, capsys.readouterr().err
    assert "6 would be events" in capsys.readouterr().out


PAGES = [(at, user, page.replace("cart", "café"), amount) for at, user, page, amount in CLICKS]


def as_csv(rows: list[tuple[str, ...]], header: str = HEADER) -> str:
    return "\n".join([header, *map(",".join, rows)]) + "\n"


def as_objects(rows: list[tuple[str, ...]]) -> list[dict[str, str]]:
    return [dict(zip(HEADER.split(","), row, strict=True)) for row in rows]


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("pandas.csv", as_csv([(str(n), *row) for n, row in enumerate(CLICKS)], f",{HEADER}"), {}),
        ("comma.csv", as_csv([(*row, "") for row in CLICKS], f"{HEADER},"), {}),
        ("repeated.csv", as_csv([(*row, "x") for row in CLICKS], f"{HEADER},user"), {}),
        ("doubled.csv", as_csv(CLICKS).replace("help", '"the ""help"", again"'), {}),
        ("slashed.csv", as_csv(CLICKS).replace("help", r'"the \"help\", again"'), {"escape": "\\"}),
        ("lines.csv", as_csv(CLICKS).replace("help", '"help\nagain"'), {"multiLine": "true"}),
        ("windows.csv", as_csv(PAGES).encode("cp1252"), {"encoding": "windows-1252"}),
        ("excel.csv", as_csv(PAGES).encode("utf-16"), {"encoding": "UTF-16", "multiLine": "true"}),
        (
            "pretty.json",
            "\n".join(json.dumps(each, indent=2) for each in as_objects(CLICKS)),
            {"multiLine": "true"},
        ),
        (
            "array.json.gz",
            gzip.compress(json.dumps(as_objects(PAGES), indent=2).encode()),
            {"multiLine": "true"},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
def test_what_init_writes_of_any_text_is_checked_and_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str | bytes, options: dict[str, str]
) -> None:
    (tmp_path / "clicks").mkdir()
    (tmp_path / "clicks" / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    assert command("init", "--files", "clicks") == 0, capsys.readouterr().err
    source = written().streams["clicks"].source
    ours = {"header": "true", **options} if name.endswith("csv") else options
    assert {option: value for option, value in source.options.items() if option != "nullValue"} == ours
    assert command("check", "--conf", "patternlake.yaml") == 0, capsys.readouterr().err
    assert "6 would be events, 0 would go to quarantine" in capsys.readouterr().out
    # One session knows a database at one location.
    conf = Path("patternlake.yaml")
    conf.write_text(conf.read_text().replace("database: patternlake", f"database: {name.replace('.', '_')}"))
    assert command("run", "ingest", "--conf", "patternlake.yaml") == 0, capsys.readouterr().err
    assert json.loads(capsys.readouterr().out)["rows_out"] == 6


@pytest.mark.processes
def test_init_refuses_files_that_no_option_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "clicks").mkdir()
    (tmp_path / "clicks" / "1.csv").write_bytes(as_csv(PAGES).encode())
    (tmp_path / "clicks" / "2.csv").write_bytes(as_csv(PAGES).encode("cp1252"))
    assert command("init", "--files", "clicks") == 1
    assert re.search(r"file file:.*2\.csv is not of the encoding UTF-8: byte 0xE9 at 47 ", capsys.readouterr().err)
    assert not Path("patternlake.yaml").exists()


@pytest.mark.processes
def test_parquet_files_and_the_folder_of_a_delta_table_have_types(
    spark: SparkSession, raw: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for format in ("parquet", "delta"):
        spark.table(raw).write.format(format).save(str(tmp_path / format / "clicks"))
        assert command("init", "--files", f"{format}/clicks", "--conf", f"{format}.yaml") == 0, capsys.readouterr().err
        configuration = written(f"{format}.yaml")
        assert configuration.streams["clicks"].source.kind == format
        assert meaning(configuration) == ("at", "page", "user", {"amount": "double"})
        assert command("check", "--conf", f"{format}.yaml") == 0, capsys.readouterr().err
        assert "6 would be events" in capsys.readouterr().out


def test_the_text_may_go_to_standard_output(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("init", "--files", "clicks", "--conf", "-") == 0
    shown = capsys.readouterr().out
    assert Configuration.from_text(shown).streams["clicks"].name == "page"
    assert not Path("patternlake.yaml").exists()


def test_a_file_that_is_there_is_not_overwritten(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.yaml").write_text("streams: {}\n")
    assert command("init", "--files", "clicks", "--conf", "mine.yaml") == 1
    assert capsys.readouterr().err == (
        "mine.yaml is there already, and is not overwritten; give another file: --conf FILE, in Python file=\n"
    )
    assert Path("mine.yaml").read_text() == "streams: {}\n"


REFUSED = [
    (("--table", "raw_first.click"), "there is no such table in this session's catalog (did you mean 'clicks'?)"),
    (("--table", "raw_frist.clicks"), "catalog, nor a database 'raw_frist' (did you mean 'raw_first'?); there are "),
    (("--table", "spark_catalog.raw_frist.clicks"), "catalog, nor a database 'raw_frist' (did you mean 'raw_first'?)"),
    (("--table", "seen_first"), "seen_first is a temporary view, and a stream follows the commits of a Delta table"),
    (("--table", "raw_first.seen"), "raw_first.seen is a view, and a stream follows the commits of a Delta table"),
    (("--table", "raw_first.plain"), "raw_first.plain is a table of parquet, and a stream follows the commits of"),
    (("--files", "nowhere"), "--files 'nowhere': no file is there; write a folder, or a pattern such as"),
    (("--files", "clicks"), "means files of several kinds (1 of csv, 1 of json); a source has one"),
    (("--files", "odd"), "--files 'odd': names of files that end in dat tell no format; write --format csv"),
    (("--files", "odd", "--format", "yaml"), "format 'yaml': files have one of the formats csv, json, parquet, xes"),
]


def test_what_can_be_no_source_is_refused_with_what_can(
    spark: SparkSession, raw: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spark.table(raw).createOrReplaceTempView("seen_first")
    spark.sql(f"CREATE VIEW raw_first.seen AS SELECT * FROM {raw}")
    spark.table(raw).write.format("parquet").saveAsTable("raw_first.plain")
    (files / "b.json").write_text("{}\n")
    (files.parent / "odd").mkdir()
    (files.parent / "odd" / "a.dat").write_text("x\n")
    for arguments, said in REFUSED:
        assert command("init", *arguments) == 1
        shown = capsys.readouterr()
        assert said in shown.err
        assert shown.out == ""
        if arguments[0] == "--table":
            assert "a source is a Delta table (by its name, or by its path with format: delta)" in shown.err
    assert not Path("patternlake.yaml").exists()
    spark.catalog.dropTempView("seen_first")


def test_in_python_the_session_at_hand_is_asked(spark: SparkSession, raw: str) -> None:
    text = patternlake.init(spark, table=raw, file="mine.yaml")
    assert Path("mine.yaml").read_text() == text
    (found,) = patternlake.check(spark, "mine.yaml")
    assert (found.rows, found.accepted) == (6, 6)
    assert "6 rows read: 6 would be events, 0 would go to quarantine" in str(found)
    assert found.events.header == ("time", "key", "name", "amount")
    assert found.events.rows[2] == ("2025-03-03 09:04:00 Z", "ann", "help", None)
    with pytest.raises(ArgumentError, match="one of the two says where rows come from"):
        patternlake.init(spark)
    with pytest.raises(ArgumentError, match=r"there is no stream 'click' .did you mean 'clicks'"):
        patternlake.check(spark, "mine.yaml", object="click")


def test_in_python_the_file_is_for_the_lake_of_the_session(spark: SparkSession, raw: str, tmp_path: Path) -> None:
    own = spark.newSession()
    patternlake.enable(own, "first_placed", str(tmp_path / "my lake"), create=True)
    patternlake.init(own, table=raw, file="mine.yaml")
    mine = written("mine.yaml")
    assert (mine.database, mine.location) == ("first_placed", str(tmp_path / "my lake"))
    text = Path("mine.yaml").read_text()
    assert "location: ./my lake" in text
    # The catalog of the tests forgets its tables; their files stay.
    found = re.search(r"#   source: ({format: delta, path: .*})$", text, re.M)
    assert found
    Path("elsewhere.yaml").write_text(text.replace(f"{{table: {raw}}}", found[1]))
    assert [(each.rows, each.accepted) for each in patternlake.check(own, "elsewhere.yaml")] == [(6, 6)]
    # What lies elsewhere than below the file is named in full.
    Path("conf").mkdir()
    patternlake.init(own, table=raw, file="conf/mine.yaml")
    assert f"location: {tmp_path}/my lake" in Path("conf/mine.yaml").read_text()
    assert f"location: {tmp_path}/my lake" in patternlake.init(own, table=raw)
    patternlake.run(own, "mine.yaml", "ingest")
    assert own.table("clicks").count() == 6
    own.sql("DROP DATABASE first_placed CASCADE")
    # Where the catalog puts a database, it is for the catalog to say.
    with pytest.warns(UserWarning, match="from here on they answer from 'first_unplaced'"):
        patternlake.enable(own, "first_unplaced", create=True)
    patternlake.init(own, table=raw, file="other.yaml")
    assert (written("other.yaml").database, written("other.yaml").location) == ("first_unplaced", None)
    own.sql("DROP DATABASE first_unplaced CASCADE")


def test_status_makes_no_lake_where_the_catalog_has_none(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("nowhere.yaml").write_text("database: first_nowhere\n")
    assert command("status", "--conf", "nowhere.yaml") == 1
    assert "first_nowhere.db: it has no table publications_log; the first run of a job makes one" in (
        capsys.readouterr().err
    )
    assert not spark.catalog.databaseExists("first_nowhere")


CONF = """
database: {database}
location: ./lake
streams:
  clicks:
    source: {{format: csv, path: clicks, options: {{header: true}}}}
    time: at
    name: page
    key: user
    attributes: {{amount: double}}
    timezone: Europe/Berlin
"""


@pytest.mark.processes
def test_check_shows_what_ingest_then_does_and_writes_nothing(
    spark: SparkSession, files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = ["31.12.2024,eve,pay,1", "2025-03-03 10:00:00,eve,,1", "2025-03-03 10:00:00,eve,pay,1,2"]
    (files / "tuesday.csv").write_text("\n".join([HEADER, *bad]) + "\n")
    Path("shop.yaml").write_text(CONF.format(database="checked"))
    before = sorted(tmp_path.rglob("*"))
    assert command("check", "--conf", "shop.yaml") == 0, capsys.readouterr().err
    shown = capsys.readouterr().out
    assert sorted(tmp_path.rglob("*")) == before
    assert not spark.catalog.databaseExists("checked")
    assert "9 rows read: 3 would be events, 6 would go to quarantine" in shown
    assert re.search(r"2025-03-03 09:00:00 \+01:00 +ann +cart +19.9", shown)
    assert re.search(r"cast +3 +amount: 'NA' is not of type double", shown)
    assert re.search(r"time +1 +time: '31.12.2024' is not a timestamp", shown)
    assert re.search(r"name +1 +name: is NULL \(page: NULL\)", shown)

    assert command("run", "ingest", "--conf", "shop.yaml") == 0, capsys.readouterr().err
    summary = json.loads(capsys.readouterr().out)
    assert (summary["rows_in"], summary["rows_out"], summary["rows_quarantined"]) == (9, 3, 6)
    reasons = spark.table("checked.quarantine").groupBy("reason").count().collect()
    assert {row["reason"]: row["count"] for row in reasons} == {"cast": 3, "time": 1, "name": 1, "corrupt": 1}
    assert re.search(r"corrupt +1 +the record could not be read", shown)


@pytest.mark.processes
def test_check_counts_rows_that_are_the_same_as_another(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = CONF.format(database="checked").replace("    timezone: Europe/Berlin\n", "")
    text = text.replace("{header: true}", "{header: true, nullValue: NA}")
    Path("shop.yaml").write_text(text)
    assert command("check", "--conf", "shop.yaml") == 0, capsys.readouterr().err
    assert "same as" not in capsys.readouterr().out
    again = [",".join(CLICKS[row]) for row in (1, 1, 4)]
    # Bad rows are no events, and so no repeats.
    (files / "tuesday.csv").write_text("\n".join([HEADER, *again, *["never,eve,pay,1"] * 2]) + "\n")
    assert command("check", "--conf", "shop.yaml") == 0, capsys.readouterr().err
    assert (
        "\n  3 rows are the same as earlier ones in all columns, such as time 2025-03-03 09:02:00 Z, key ben, name "
        "cart, amount 5.0 (3 times); each would be an event of its own: where rows come more than once, write "
        "`event_id:` in the stream with an expression that identifies an event\n"
    ) in capsys.readouterr().out
    Path("shop.yaml").write_text(text + "    event_id: concat(at, user, page)\n")
    assert command("check", "--conf", "shop.yaml") == 0, capsys.readouterr().err
    shown = capsys.readouterr().out
    assert "same as" not in shown
    assert re.search(r"repeat +3 ", shown)


def test_check_tells_every_expression_that_does_not_fit(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = CONF.format(database="checked").replace("time: at", "time: att").replace("amount: double", "cost: double")
    Path("shop.yaml").write_text(text)
    assert command("check", "--conf", "shop.yaml") == 1
    assert capsys.readouterr().err.splitlines() == [
        "streams.clicks.time: no column 'att' in the source (did you mean 'at'?); columns: at, user, page, amount",
        "streams.clicks.attributes.cost: no column 'cost' in the source; columns: at, user, page, amount",
    ]


@pytest.mark.processes
def test_check_goes_on_after_a_stream_with_a_problem(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = "  sky: {source: {table: raw_first.nowhere}, time: at, name: what}\n"
    Path("shop.yaml").write_text(CONF.format(database="checked").replace("streams:\n", f"streams:\n{more}"))
    assert command("check", "--conf", "shop.yaml") == 1
    shown = capsys.readouterr()
    assert "stream 'sky': source raw_first.nowhere: there is no such table in this session's catalog" in shown.err
    assert "stream clicks: " in shown.out
    assert command("check", "--conf", "shop.yaml", "--object", "clicks", "--rows", "2") == 0
    assert "2 rows read, and there may be more: 2 would be events" in capsys.readouterr().out
    assert command("check", "--conf", "shop.yaml", "--object", "sea") == 1
    assert "there is no stream 'sea'; streams are 'sky', 'clicks'" in capsys.readouterr().err


@pytest.mark.processes
def test_check_tells_a_bad_file_or_leaves_it_out_as_ingest_does(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "odd.csv").write_text("at,page\n2025-03-03,x\n")
    Path("strict.yaml").write_text(CONF.format(database="checked"))
    assert command("check", "--conf", "strict.yaml") == 1
    assert re.search(r"file file:.*odd\.csv has the columns at, page, expected", capsys.readouterr().err)
    lenient = CONF.format(database="checked").replace("path: clicks,", "path: clicks, on_bad_file: quarantine,")
    Path("lenient.yaml").write_text(lenient)
    assert command("check", "--conf", "lenient.yaml") == 0
    shown = capsys.readouterr().out
    assert "6 rows read: 3 would be events, 4 would go to quarantine" in shown
    assert re.search(r"odd\.csv has the columns at, page, expected .*; it would be left out", shown)


def test_a_source_that_is_still_empty_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "clicks").mkdir()
    Path("shop.yaml").write_text(CONF.format(database="checked"))
    assert command("check", "--conf", "shop.yaml") == 0, capsys.readouterr().err
    assert "nothing is there yet" in capsys.readouterr().out


@pytest.mark.slow
def test_a_shell_without_a_platform_needs_nothing_but_the_files(files: Path, tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "DATABRICKS_RUNTIME_VERSION"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "patternlake.jobs.command_line", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    begun = run("init", "--files", "clicks/*.csv")
    assert (begun.returncode, begun.stdout) == (0, ""), begun.stderr
    # A line is broken where the path is long.
    told = f"looked at all 6 rows of 1 file ({tmp_path}/clicks/*.csv), and guessed: "
    assert " ".join(begun.stderr.split()).startswith(told)
    checked = run("check", "--conf", "patternlake.yaml")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "6 rows read: 6 would be events, 0 would go to quarantine" in checked.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"clicks", "patternlake.yaml"}
    conf = tmp_path / "patternlake.yaml"
    conf.write_text(conf.read_text().replace("# location: ./lake", "location: ./lake"))
    ran = run("run", "ingest", "--conf", "patternlake.yaml")
    assert (ran.returncode, ran.stderr) == (0, f"info: made a new lake at {tmp_path}/lake; there was none\n")
    assert [json.loads(line)["rows_out"] for line in ran.stdout.splitlines()] == [6]
    conf.write_text(conf.read_text().replace("location: ./lake", "location: ./lak"))
    asked = run("sql", "--conf", "patternlake.yaml", "SELECT count(*) AS n FROM events", "--format", "csv")
    assert (asked.returncode, asked.stdout) == (0, "n\n0\n")
    assert asked.stderr.startswith(f"warning: there was no database at {tmp_path}/lak, so an empty one was made ")

"""Runs over several jobs and objects, and what a query's answer looks like on standard output."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import patternlake
from patternlake.delta_tables.committing.database import Database
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.command_line import answers, commands, local_spark
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.runs import running
from patternlake.jobs.runs import steps as job_steps
from patternlake.jobs.terminal.messages import message
from patternlake.udfs.errors import ArgumentError, ConfigurationError, PatternSyntaxError, StateError

pytestmark = pytest.mark.slow

CONFIGURATION = """
database: running
location: lake
streams:
  flights:
    source: {format: csv, path: flights, options: {header: true}}
    time: at
    name: what
    key: plane
    allowed_lateness: none
sketches:
  flights: {events_per_leaf: 4, expected_events: 1000, keyed: true, memory: 1MB}
"""


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("running")
    (folder / "conf.yaml").write_text(CONFIGURATION)
    (folder / "flights").mkdir()
    lines = ["at,what,plane"] + [f"2013-01-01 12:00:{n:02},{'ABC'[n % 3]},N{n % 2}" for n in range(30)]
    (folder / "flights" / "1.csv").write_text("\n".join([*lines, "never,A,N1"]) + "\n")
    return folder / "conf.yaml"


def noting(done: list[tuple[str, str, bool]], job: str) -> Any:
    def work(database: Database, name: str, configuration: Configuration, rebuild: bool) -> Summary:
        done.append((job, name, rebuild))
        return Summary(job, name, 0, 1, 1, 1, 0, 0.1)

    return work


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, bool]]:
    """Jobs that only note what they were asked for."""
    done: list[tuple[str, str, bool]] = []
    for name, job in job_steps.JOBS.items():
        monkeypatch.setitem(job_steps.JOBS, name, job_steps.Job(job.objects, noting(done, name), job.maintains))
    return done


@pytest.fixture
def shared_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands use the tests' session, and leave it running."""

    @contextmanager
    def session(
        configuration: Configuration | None, *, create: bool = False, verbose: bool = False
    ) -> Iterator[SparkSession]:
        yield spark if configuration is None else patternlake.enable(spark, configuration, create=create)

    for name in local_spark._ECHOES:
        monkeypatch.setattr(logging.getLogger(name), "disabled", True)
    monkeypatch.setattr(local_spark, "spark_for", session)
    monkeypatch.setattr(commands.signal, "signal", lambda *given: None)


def command(*arguments: str) -> int:
    try:
        commands.main(arguments)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_run_does_all_jobs_in_order_and_returns_their_summaries(
    spark: SparkSession, conf: Path, done: list[tuple[str, str, bool]]
) -> None:
    summaries = patternlake.run(spark, str(conf))
    assert done == [("ingest", "flights", False), ("sketch", "flights", False), ("maintain", "flights", False)]
    assert [summary.job for summary in summaries] == ["ingest", "sketch", "maintain"]


def test_run_takes_a_configuration_that_was_loaded(
    spark: SparkSession, conf: Path, done: list[tuple[str, str, bool]]
) -> None:
    running.run(spark, Configuration.load(conf), "sketch", object="flights", rebuild=True)
    assert done == [("sketch", "flights", True)]


def test_run_refuses_unknown_jobs_objects_and_files(
    spark: SparkSession, conf: Path, done: list[tuple[str, str, bool]]
) -> None:
    jobs = "ingest, sketch, trends, groups, patterns, predict, alerts, evaluate, maintain, all"
    with pytest.raises(ArgumentError, match=f"there is no job 'forecast'; jobs are {jobs}"):
        running.run(spark, conf, "forecast")
    with pytest.raises(ArgumentError, match="nothing is configured for ingest under 'trains'; known: 'flights'"):
        running.run(spark, conf, "ingest", object="trains")
    with pytest.raises(ConfigurationError, match=r"nowhere\.yaml: there is no such configuration file"):
        running.run(spark, "nowhere.yaml")
    assert done == []


def test_the_first_error_stops_the_run_and_keeps_its_class(
    spark: SparkSession, conf: Path, done: list[tuple[str, str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any) -> Summary:
        raise PatternSyntaxError("found ';', expected a name", "A ; ; B", 4)

    monkeypatch.setitem(job_steps.JOBS, "sketch", job_steps.Job(lambda configuration: configuration.sketches, fail))
    with pytest.raises(PatternSyntaxError, match=r"^sketch of 'flights': line 1, column 5: found") as caught:
        running.run(spark, conf)
    assert caught.value.column == 5
    assert [job for job, _, _ in done] == ["ingest"]


def test_files_become_events_and_sketches_and_a_second_run_finds_nothing_new(
    spark: SparkSession,
    conf: Path,
    shared_session: None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert command("run", "all", "--conf", str(conf)) == 0, capsys.readouterr().err
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["job"], line["object"]) for line in lines] == [
        ("ingest", "flights"),
        ("sketch", "flights"),
        ("maintain", "flights"),
    ]
    counts = {line["job"]: (line["rows_in"], line["rows_out"], line["rows_quarantined"]) for line in lines}
    assert counts["ingest"] == (31, 30, 1)
    assert counts["sketch"][0] == 30

    assert command("run", "all", "--conf", str(conf)) == 0
    again = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["batches"] for line in again if line["job"] != "maintain"] == [0, 0]

    with monkeypatch.context() as patched:
        # A lake of this version on a local disk is read without Spark.
        patched.setattr(local_spark, "spark_for", lambda *_, **__: pytest.fail("Spark was started"))
        assert command("status", "--conf", str(conf), "--format", "json") == 0
    ingest, sketch = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (ingest["rows_out"], ingest["rows_quarantined"], ingest["open_batch"]) == (30, 1, None)
    assert (sketch["lag_rows"], sketch["lag_batches"]) == (0, 0)
    assert sketch["bytes_per_event"] > 0
    # 3 names and 2 keys: 3 bits for each of 30 events; the names and keys once.
    assert sketch["dictionary_bytes_per_event"] == (12 + 3 + 4) / 30
    assert sketch["events_bytes_per_event"] > 0


def test_a_stream_that_has_nothing_yet_stops_no_other(
    spark: SparkSession, tmp_path: Path, shared_session: None, capsys: pytest.CaptureFixture[str]
) -> None:
    text = CONFIGURATION.replace("running", "running_with_none").replace("\nsketches:", "", 1)
    empty = text[text.index("  flights:") : text.index("  flights: {events")].replace("flights", "empty")
    text = text.replace(
        "  flights: {events", f"{empty}sketches:\n  empty: {{expected_events: 1000}}\n  flights: {{events"
    )
    (tmp_path / "conf.yaml").write_text(text + "subscriptions: {none_yet: {stream: empty, query: 'A ; B'}}\n")
    for folder in ("flights", "empty"):
        (tmp_path / folder).mkdir()
    (tmp_path / "flights" / "1.csv").write_text("at,what,plane\n2013-01-01 12:00:00,A,N1\n")
    conf = str(tmp_path / "conf.yaml")
    assert command("run", "all", "--conf", conf) == 0, capsys.readouterr().err
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {(line["job"], line["object"]): line["batches"] for line in lines if line["job"] != "maintain"} == {
        ("ingest", "flights"): 1,
        ("ingest", "empty"): 0,
        ("sketch", "flights"): 1,
        ("sketch", "empty"): 0,
        ("predict", "flights"): 0,
        ("predict", "empty"): 0,
    }
    assert command("run", "sketch", "--conf", conf) == 1
    assert "the stream has no published events; run `ingest` first" in capsys.readouterr().err


def test_sql_sees_the_configured_database_and_writes_a_table(
    conf: Path, shared_session: None, capsys: pytest.CaptureFixture[str]
) -> None:
    query = "SELECT name, count(*) AS n FROM events WHERE stream = 'nothing' GROUP BY name"
    assert command("sql", "--conf", str(conf), query) == 0
    assert capsys.readouterr().out == "name  n\n----  -\n"


def test_an_error_of_sql_is_told_without_plan_and_java(
    conf: Path, shared_session: None, capsys: pytest.CaptureFixture[str]
) -> None:
    for query, said in (
        ("SELECT nothing FROM events", "[UNRESOLVED_COLUMN.WITH_SUGGESTION] "),
        ("SELEC 1", "[PARSE_SYNTAX_ERROR] "),
        ("SELECT raise_error('only this')", "only this\n"),
        ("SELECT assert_true(position < 0) FROM VALUES (1) AS t(position)", "'(position < 0)' is not true!\n"),
    ):
        assert command("sql", "--conf", str(conf), query) == 1
        shown = capsys.readouterr().err
        assert shown.startswith(said)
        assert shown.count("\n") == 1


def test_statements_of_a_pipe_are_answered_one_by_one_and_an_error_ends_only_its_own(
    conf: Path, shared_session: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1 AS one; SELEC 2;\nSELECT 'A ; B' AS three\n"))
    assert command("sql", "--conf", str(conf)) == 1
    shown = capsys.readouterr()
    assert shown.out == "one\n---\n  1\nthree\n-----\nA ; B\n"
    assert shown.err.startswith("statement 2: [PARSE_SYNTAX_ERROR] ")
    assert shown.err.count("\n") == 1
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1 AS one;"))
    assert command("sql", "--conf", str(conf), "--format", "csv") == 0
    assert capsys.readouterr() == ("one\n1\n", "")


def test_raised_messages_of_several_lines_stay_whole(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="USER_RAISED_EXCEPTION") as caught:
        spark.sql("SELECT raise_error(concat('line 1: odd', '\\n  A ; ; B', '\\n      ^')) FROM range(3)").collect()
    assert message(caught.value) == "line 1: odd\n  A ; ; B\n      ^"


ANSWER = """
SELECT 7 AS n, 'a, "b"' AS text, CAST(NULL AS STRING) AS nothing, TIMESTAMP '2013-01-01 12:00:00.000001' AS at,
  map('a', array(1L)) AS bindings, array(named_struct('operand', 'A', 'at', CAST(NULL AS INT))) AS steps,
  X'0102' AS bits
"""


def test_an_answer_as_table(spark: SparkSession) -> None:
    lines, more = answers.as_table(spark.sql(ANSWER))
    assert lines == [
        "n  text    nothing  at                          bindings   steps                        bits",
        "-  ------  -------  --------------------------  ---------  ---------------------------  ----",
        '7  a, "b"  NULL     2013-01-01 12:00:00.000001  {"a":[1]}  [{"operand":"A","at":null}]  AQI=',
    ]
    assert not more


def test_an_answer_as_csv(spark: SparkSession) -> None:
    assert list(answers.as_csv(spark.sql(ANSWER))) == [
        "n,text,nothing,at,bindings,steps,bits",
        '7,"a, ""b""",,2013-01-01 12:00:00.000001,"{""a"":[1]}","[{""operand"":""A"",""at"":null}]",AQI=',
    ]


def test_an_answer_as_json_lines(spark: SparkSession) -> None:
    (line,) = answers.as_json(spark.sql(ANSWER))
    assert json.loads(line) == {
        "n": 7,
        "text": 'a, "b"',
        "nothing": None,
        "at": "2013-01-01T12:00:00.000001Z",
        "bindings": {"a": [1]},
        "steps": [{"operand": "A", "at": None}],
        "bits": "AQI=",
    }


def test_a_table_ends_after_a_thousand_rows_and_says_so(spark: SparkSession) -> None:
    lines, more = answers.as_table(spark.range(1500).coalesce(1))
    assert (len(lines), lines[-1].strip(), more) == (1002, "999", True)
    assert len(list(answers.as_csv(spark.range(1500).coalesce(1)))) == 1501


def test_columns_of_one_name_and_statements_without_an_answer_are_shown(spark: SparkSession) -> None:
    assert answers.as_table(spark.sql("SELECT 1 AS a, 2 AS a"))[0][-1] == "1  2"
    assert answers.as_table(spark.sql("SELECT 'a\\nb' AS x, 2 AS y"))[0][-1] == "a\\nb  2"
    plan = spark.sql("SELECT 'a\\n\\n  b' AS plan UNION ALL SELECT NULL")
    assert answers.as_table(plan) == (["a", "", "  b", "NULL"], False)
    assert answers.as_table(spark.sql("CREATE OR REPLACE TEMPORARY VIEW running_nothing AS SELECT 1")) == ([], False)


def test_a_local_session_that_does_not_start_names_the_file_with_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any, **named: Any) -> SparkSession:
        local_spark.os.write(2, b"unresolved dependency")
        raise StateError("Spark could not start.")

    monkeypatch.setattr(local_spark.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(patternlake, "session", fail)
    monkeypatch.setattr(local_spark, "_running", lambda: False)
    with (
        pytest.raises(StateError, match=r"Spark could not start\. All that Spark said: (.*)") as caught,
        local_spark.spark_for(Configuration.from_text("database: lake"), verbose=False),
    ):
        pass
    (log,) = tmp_path.glob("*.log")
    assert str(log) in str(caught.value)
    assert log.read_text() == "unresolved dependency"

"""What the command line understands, and what it says when it does not. Nothing here starts Spark."""

from __future__ import annotations

import errno
import inspect
import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from rich.console import Console

import patternlake
from patternlake.delta_tables.tables.publications import PublicationsReader
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.command_line import commands, local_spark
from patternlake.jobs.command_line.ending import report_failures
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.progress.reporting import ShownProgress
from patternlake.jobs.runs import steps as job_steps
from patternlake.jobs.runs.steps import JOBS
from patternlake.jobs.sources import source_files
from patternlake.jobs.starter import checking
from patternlake.udfs.errors import ArgumentError, StateError

CONFIGURATION = """
streams:
  flights: {source: {format: csv, path: data, options: {header: true}}, time: at, name: what}
  sky: {source: {format: json, path: sky}, time: at, name: what}
sketches:
  flights: {}
"""


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    file = tmp_path / "conf.yaml"
    file.write_text(CONFIGURATION)
    return file


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Jobs that only note what they were asked for, and a session that is none."""
    done: list[tuple[Any, ...]] = []

    def doing(job: str) -> Any:
        def work(database: Any, name: str, configuration: Configuration, rebuild: bool) -> Summary:
            done.append((job, name, rebuild))
            return Summary(job, name, 3, 1, 10, 9, 1, 0.12345)

        return work

    @contextmanager
    def session(
        configuration: Configuration, *, create: bool = False, verbose: bool = False
    ) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace()

    for name, job in JOBS.items():
        monkeypatch.setitem(JOBS, name, job_steps.Job(job.objects, doing(name), job.maintains, stream=job.stream))
    monkeypatch.setattr(local_spark, "spark_for", session)
    session_of_one_core = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=1))
    one_core = SimpleNamespace(spark=session_of_one_core, location="/lake", direct=None, made=False)
    monkeypatch.setattr("patternlake.delta_tables.databases.opening.open_database", lambda *_, **__: one_core)
    monkeypatch.setattr("patternlake.delta_tables.databases.workers.check", lambda _: None)
    monkeypatch.setattr(commands.signal, "signal", lambda *given: None)
    return done


def command(*arguments: str) -> int:
    """Exit code of a command."""
    try:
        commands.main(arguments)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--help") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("run", "status", "sql", "serve"))


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--version") == 0
    assert capsys.readouterr().out == f"{patternlake.__version__}\n"


def test_help_in_python_lists_the_options_of_every_door() -> None:
    told = {door: str(inspect.signature(getattr(patternlake, door))) for door in ("session", "enable", "run", "serve")}
    for door, options in {
        "session": ("location", "master", "database", "create", "settings", "storage_options"),
        "enable": ("spark", "database", "location", "create", "storage_options"),
        "run": ("spark", "configuration", "job", "object", "rebuild", "backfill", "progress", "side_by_side"),
        "serve": (
            "configuration",
            "host",
            "port",
            "connect_port",
            "password_file",
            "insecure",
            "allow_writes",
            "settings",
            "master",
        ),
    }.items():
        assert list(inspect.signature(getattr(patternlake, door)).parameters) == list(options), told[door]
        described = inspect.getdoc(getattr(patternlake, door)) or ""
        assert all(f"\n{option}\n    " in described for option in options), door


def test_the_command_alone_shows_its_help_with_a_whole_line_for_each_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert command() == 0
    alone = capsys.readouterr().out
    assert command("--help") == 0
    assert capsys.readouterr().out == alone
    assert alone.startswith("Usage: patternlake ")
    assert "..." not in alone.split("Commands:")[1]


def test_help_of_run_names_every_job_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("run", "--help") == 0
    assert ", ".join(JOBS) in " ".join(capsys.readouterr().out.replace("│", " ").split())


def test_help_of_run_tells_how_an_interrupted_watch_ends(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("run", "--help") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Ctrl-C in a pause ends with exit code 0, at work with 130" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--verbos",), "No such option: --verbos"),
        (("frobnicate",), "No such command 'frobnicate'; see patternlake --help"),
        (("run",), "Missing argument 'JOB...'; see patternlake run --help"),
        (("run", "all"), "Missing option '--conf'; see patternlake run --help"),
        (("run", "all", "--conf", "x", "--watch", "0"), "0 is no pause; more than 0 seconds"),
        (("run", "all", "--conf", "x", "--fail-on-quarantine", "7"), "7 is no share; from 0 to 1"),
        (("run", "all", "--conf", "x", "--watch", "soon"), "Invalid value for '--watch'"),
        (("run", "all", "--conf", "x", "--side-by-side", "0"), "0 is no number of jobs; 1 or more"),
        (("run", "all", "--conf", "x", "--side-by-side", "two"), "Invalid value for '--side-by-side'"),
        (("status", "--conf", "x", "--format", "xml"), "'xml' is not one of 'table', 'csv', 'json'"),
        (("sql", "--conf", "x", " "), "the statement is empty; see patternlake sql --help"),
        (("serve",), "Missing option '--conf'; see patternlake serve --help"),
        (("serve", "--conf", "x", "--drain", "-1"), "-1 is no time; 0 seconds or more"),
        (("serve", "--conf", "x", "--port", "http"), "Invalid value for '--port'"),
    ],
)
def test_a_usage_that_is_not_understood_gives_one_line_and_exit_code_2(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(*arguments) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""


def test_a_missing_configuration_is_named_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("status", "--conf", "nowhere.yaml") == 1
    assert capsys.readouterr().err == "nowhere.yaml: there is no such configuration file; patternlake init writes one\n"


def test_status_of_a_place_without_a_lake_says_so_and_makes_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "mistyped"
    (tmp_path / "lake.yaml").write_text(f"location: {place}\n", encoding="utf-8")
    assert command("status", "--conf", str(tmp_path / "lake.yaml")) == 1
    assert capsys.readouterr().err == (
        f"there is no lake at {place}: it has no table publications_log; the first run of a job makes one\n"
    )
    assert not place.exists()
    (tmp_path / "lake" / "publications_log" / "_delta_log").mkdir(parents=True)
    assert command("status", "--conf", str(tmp_path / "lake.yaml")) == 1
    assert capsys.readouterr().err.endswith(f". Lakes beside it: {tmp_path}/lake; perhaps one of them is meant\n")


def test_an_unknown_job_is_refused_with_the_jobs_that_exist(conf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("run", "forget", "--conf", str(conf)) == 1
    jobs = "ingest, sketch, trends, groups, patterns, predict, alerts, evaluate, maintain, all"
    assert capsys.readouterr().err == f"there is no job 'forget'; jobs are {jobs}\n"


def test_an_unknown_object_is_refused_with_the_known_ones(conf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("run", "all", "--conf", str(conf), "--object", "flight") == 1
    said = "nothing is configured for all under 'flight' (did you mean 'flights'?); known: 'flights', 'sky'\n"
    assert capsys.readouterr().err == said
    assert command("run", "sketch", "--conf", str(conf), "--object", "sky") == 1
    assert capsys.readouterr().err == "nothing is configured for sketch under 'sky'; known: 'flights'\n"


@pytest.mark.parametrize("job", JOBS)
def test_each_job_is_a_command_of_its_own(job: str) -> None:
    command = [sys.executable, "-m", f"patternlake.jobs.{job}", "--conf", "nowhere.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = "nowhere.yaml: there is no such configuration file; patternlake init writes one\n"
    assert (done.returncode, done.stderr) == (1, told)


def test_maintenance_has_nothing_to_rebuild(conf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("run", "maintain", "--conf", str(conf), "--rebuild") == 1
    told = capsys.readouterr().err
    assert (
        "the job 'maintain' has nothing to rebuild; jobs that have: ingest, sketch, trends, groups, patterns, predict"
        in told
    )


def test_all_is_every_job_in_the_order_of_dependence_over_all_its_objects() -> None:
    steps = job_steps.steps(Configuration.from_text(CONFIGURATION))
    assert [(step.job, step.object) for step in steps] == [
        ("ingest", "flights"),
        ("ingest", "sky"),
        ("sketch", "flights"),
        ("maintain", "flights"),
        ("maintain", "sky"),
    ]


def test_an_object_restricts_each_job_that_has_it() -> None:
    configuration = Configuration.from_text(CONFIGURATION)
    assert [step.job for step in job_steps.steps(configuration, object="flights")] == ["ingest", "sketch", "maintain"]
    assert [step.job for step in job_steps.steps(configuration, object="sky")] == ["ingest", "maintain"]


def test_several_jobs_run_in_the_order_of_dependence() -> None:
    configuration = Configuration.from_text(CONFIGURATION)
    steps = job_steps.steps(configuration, ["sketch", "ingest", "trends", "ingest"])
    assert [(step.job, step.object) for step in steps] == [
        ("ingest", "flights"),
        ("ingest", "sky"),
        ("sketch", "flights"),
    ]
    with pytest.raises(ArgumentError, match="there is no job 'sketsch' \\(did you mean 'sketch'"):
        job_steps.steps(configuration, ["ingest", "sketsch"])
    with pytest.raises(ArgumentError, match="no job is named; jobs are ingest, "):
        job_steps.steps(configuration, [])


def test_several_jobs_run_with_one_command(conf: Path, work: list[tuple[Any, ...]]) -> None:
    assert command("run", "sketch", "ingest", "--conf", str(conf), "--object", "flights") == 0
    assert work == [("ingest", "flights", False), ("sketch", "flights", False)]


def note_enabled(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether functions are enabled, of each session that a command asks for; none is started."""
    enabled: list[bool] = []

    @contextmanager
    def session(configuration: Configuration | None, **_: object) -> Iterator[SimpleNamespace]:
        enabled.append(configuration is not None)
        yield SimpleNamespace()

    monkeypatch.setattr(local_spark, "spark_for", session)
    return enabled


@pytest.mark.parametrize(
    ("source", "functions"),
    [("{format: csv, path: data, options: {header: true}}", False), ("{table: patternlake_internal.alerts_log}", True)],
)
def test_a_run_enables_functions_where_a_source_is_called_by_a_name_that_may_be_the_lakes(
    conf: Path, work: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, source: str, functions: bool
) -> None:
    enabled = note_enabled(monkeypatch)
    conf.write_text(f"streams:\n  flights: {{source: {source}, time: at, name: what}}\n")
    assert command("run", "ingest", "--conf", str(conf)) == 0
    assert enabled == [functions]
    assert [job for job, _, _ in work] == ["ingest"]


@pytest.mark.parametrize(
    ("source", "lake", "functions"),
    [
        ("{table: told.alerts_log}", True, True),
        ("{table: raw.clicks}", False, False),
        ("{path: d, format: parquet}", True, False),
    ],
)
def test_a_check_enables_functions_where_a_source_may_be_the_lakes_own(
    conf: Path, monkeypatch: pytest.MonkeyPatch, source: str, lake: bool, functions: bool
) -> None:
    enabled = note_enabled(monkeypatch)
    monkeypatch.setattr(source_files, "tell_of_stores", lambda *_: None)
    monkeypatch.setattr(checking, "check", lambda *_, **__: "well")
    if lake:
        (conf.parent / "lake" / "publications_log" / "_delta_log").mkdir(parents=True)
    conf.write_text(f"location: ./lake\nstreams:\n  flights: {{source: {source}, time: at, name: what}}\n")
    assert command("check", "--conf", str(conf)) == 0
    assert enabled == [functions]


def _run_the_command(conf: Path) -> None:
    assert command("run", "ingest", "--conf", str(conf)) == 0


def _check_by_command(conf: Path) -> None:
    assert command("check", "--conf", str(conf)) == 0


def _check_in_python(conf: Path) -> None:
    patternlake.check(SimpleNamespace(), conf)  # type: ignore[arg-type]


@pytest.mark.parametrize("read", [_run_the_command, _check_by_command, _check_in_python])
def test_whoever_reads_sources_lets_spark_into_their_buckets(
    conf: Path, work: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], None]
) -> None:
    told: list[tuple[str, dict[str, str]]] = []
    monkeypatch.setattr(source_files, "tell_spark", lambda _, place, options: told.append((place, dict(options))))
    monkeypatch.setattr(checking, "check", lambda *_, **__: "well")
    source = "{path: 's3a://raw/clicks', format: csv, options: {header: true}}"
    text = (
        f"storage_options: {{AWS_ACCESS_KEY_ID: k}}\nstreams:\n  clicks: {{source: {source}, time: at, name: what}}\n"
    )
    conf.write_text(text)
    read(conf)
    assert told == [("s3a://raw/clicks", {"AWS_ACCESS_KEY_ID": "k"})]


def test_a_run_can_fail_where_much_goes_to_quarantine(
    conf: Path, work: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("run", "all", "--conf", str(conf), "--fail-on-quarantine", "0.1") == 0
    assert capsys.readouterr().err == ""
    assert command("run", "all", "--conf", str(conf), "--fail-on-quarantine", "0.09") == 1
    shown = capsys.readouterr()
    assert shown.err.splitlines() == [
        f"stream '{name}': 1 of 10 rows went to quarantine, more than the share of 0.09 that --fail-on-quarantine "
        "allows; the view quarantine has them with their reasons"
        for name in ("flights", "sky")
    ]
    assert len(shown.out.splitlines()) == 5, "the other jobs run"


def test_run_writes_one_line_of_json_per_object_and_job(
    conf: Path, work: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("run", "ingest", "--conf", str(conf)) == 0
    shown = capsys.readouterr()
    assert [json.loads(line) for line in shown.out.splitlines()] == [
        {
            "job": "ingest",
            "object": name,
            "batch_id": 3,
            "batches": 1,
            "rows_in": 10,
            "rows_out": 9,
            "rows_quarantined": 1,
            "seconds": 0.123,
            "rows_repeated": 0,
            "warnings": [],
        }
        for name in ("flights", "sky")
    ]
    assert shown.err == "", "on what is no terminal, standard error is for what is wrong"


def test_rebuild_reaches_every_job_that_can(conf: Path, work: list[tuple[Any, ...]]) -> None:
    assert command("run", "all", "--conf", str(conf), "--object", "flights", "--rebuild") == 0
    assert work == [("ingest", "flights", True), ("sketch", "flights", True), ("maintain", "flights", False)]


def test_a_job_without_objects_says_so_and_succeeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "empty.yaml"
    file.write_text("database: lake\n")
    assert command("run", "all", "--conf", str(file)) == 0
    assert f"nothing is configured for all in {file}" in capsys.readouterr().err


def test_watch_rebuilds_once_repeats_and_ends_in_a_pause_with_exit_code_0(
    conf: Path, work: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(commands, "sleep", sleep)
    arguments = ("run", "sketch", "--conf", str(conf), "--watch", "7", "--rebuild")
    assert command(*arguments) == 0
    assert work == [("sketch", "flights", True), ("sketch", "flights", False), ("sketch", "flights", False)]
    assert pauses == [7.0, 7.0, 7.0]


def test_watch_reports_objects_without_news_in_the_first_round_only(
    conf: Path, work: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds = iter([0, 0, 1])

    def idle(database: Any, name: str, configuration: Configuration, rebuild: bool) -> Summary:
        batches = next(rounds)
        return Summary("sketch", name, batches or None, batches, 0, 0, 0, 0.0)

    def sleep(seconds: float, left: list[int] = [1, 1]) -> None:  # noqa: B006
        if not left:
            raise KeyboardInterrupt
        left.pop()

    monkeypatch.setitem(JOBS, "sketch", job_steps.Job(lambda configuration: ["flights"], idle))
    monkeypatch.setattr(commands, "sleep", sleep)
    assert command("run", "sketch", "--conf", str(conf), "--watch", "1") == 0
    assert [json.loads(line)["batches"] for line in capsys.readouterr().out.splitlines()] == [0, 1]


@pytest.mark.parametrize(
    ("more", "stream"), [("", "flights"), ("groups:\n  fronts: {stream: sky, pattern: 'a, b', within: 3}\n", "sky")]
)
def test_later_rounds_of_a_watch_maintain_only_what_is_new(
    conf: Path, work: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, more: str, stream: str
) -> None:
    if more:
        conf.write_text(CONFIGURATION.partition("sketches:")[0] + more)

    def idle(database: Any, name: str, configuration: Configuration, rebuild: bool) -> Summary:
        return Summary("ingest", name, None, 0, 0, 0, 0, 0.0)

    def sleep(seconds: float, left: list[int] = [1]) -> None:  # noqa: B006
        if not left:
            raise KeyboardInterrupt
        left.pop()

    monkeypatch.setitem(JOBS, "ingest", job_steps.Job(lambda configuration: configuration.streams, idle))
    monkeypatch.setattr(PublicationsReader, "latest", lambda *_: object())
    monkeypatch.setattr(commands, "sleep", sleep)
    assert command("run", "all", "--conf", str(conf), "--watch", "1") == 0
    maintained = [name for job, name, _ in work if job == "maintain"]
    assert maintained == ["flights", "sky", stream]


def test_standard_input_that_is_no_text_is_one_line(
    conf: Path, work: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for given, line in [(b"SELECT 'caf\xe9'", "'utf-8' codec can't decode byte 0xe9"), (b" \n", "no statement")]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), "utf-8"))
        assert command("sql", "--conf", str(conf), "-") == 1
        shown = capsys.readouterr().err
        assert line in shown
        assert shown.count("\n") == 1


def test_a_terminal_is_shown_what_became_of_each_object() -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=200)
    with ShownProgress(screen, spark=None) as progress:  # type: ignore[arg-type]
        progress.begin("ingest", "flights [all]", 1, 2)
        progress.end(Summary("ingest", "flights [all]", 3, 1, 1000, 999, 1, 0.123))
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "ingest flights [all] (1 of 2)" in shown
    assert "ingest flights [all]: 1,000 rows in, 999 out, 1 quarantined (0.1 s)" in shown


def test_a_terminal_is_shown_progress_unless_it_is_to_be_quiet(
    conf: Path, work: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert command("run", "sketch", "--conf", str(conf)) == 0
    assert "sketch flights (1 of 1) 0:00" in capsys.readouterr().err
    assert command("run", "sketch", "--conf", str(conf), "--quiet") == 0
    assert capsys.readouterr().err == ""


def test_a_log_with_colours_is_no_terminal(
    conf: Path, work: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert command("run", "sketch", "--conf", str(conf)) == 0
    assert capsys.readouterr().err == ""


def failing(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the job `ingest` fail."""

    def fail(*given: Any) -> Summary:
        raise error

    monkeypatch.setitem(JOBS, "ingest", job_steps.Job(lambda configuration: configuration.streams, fail))


def test_an_interrupt_at_work_ends_with_exit_code_130(
    conf: Path, work: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(KeyboardInterrupt(), monkeypatch)
    assert command("run", "ingest", "--conf", str(conf), "--watch", "5") == 130
    assert "interrupted; nothing half-done is seen" in capsys.readouterr().err


def test_a_jobs_error_names_job_and_object_and_ends_with_exit_code_1(
    conf: Path, work: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(StateError("the checkpoint is not the one that was published"), monkeypatch)
    assert command("run", "all", "--conf", str(conf)) == 1
    shown = capsys.readouterr()
    assert shown.err == "ingest of 'flights': the checkpoint is not the one that was published\n"
    assert shown.out == ""
    assert work == []


def test_a_jobs_error_that_names_its_object_is_left_as_it_is(
    conf: Path, work: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(StateError("stream 'flights': the source is gone"), monkeypatch)
    assert command("run", "ingest", "--conf", str(conf)) == 1
    assert capsys.readouterr().err == "stream 'flights': the source is gone\n"


def test_an_unexpected_error_gives_one_line_and_its_trace_only_with_verbose(
    conf: Path, work: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(ZeroDivisionError("division by zero\nsecond line"), monkeypatch)
    assert command("run", "ingest", "--conf", str(conf)) == 1
    assert capsys.readouterr().err == "ZeroDivisionError: division by zero\n"
    assert command("run", "ingest", "--conf", str(conf), "--verbose") == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_pipe_closed_by_its_reader_is_a_failure_only_of_what_has_work_left(
    conf: Path, work: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(os.devnull, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        failing(BrokenPipeError(errno.EPIPE, "Broken pipe"), monkeypatch)
        assert command("run", "ingest", "--conf", str(conf)) == 1
        with pytest.raises(typer.Exit) as ended, report_failures(verbose=False):
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        assert ended.value.exit_code == 0


def test_the_packages_warnings_reach_standard_error_and_no_handler_is_left(
    conf: Path, work: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def warn(database: Any, name: str, configuration: Configuration, rebuild: bool) -> Summary:
        logging.getLogger("patternlake.jobs.sketch.job").warning("sketch %r takes more than memory", name)
        logging.getLogger("patternlake.jobs.sketch.job").info("not told")
        return Summary("sketch", name, 0, 1, 0, 0, 0, 0.0)

    before = logging.getLogger("patternlake").handlers[:]
    monkeypatch.setitem(JOBS, "sketch", job_steps.Job(lambda configuration: ["flights"], warn))
    assert command("run", "sketch", "--conf", str(conf)) == 0
    shown = capsys.readouterr().err
    assert "warning: sketch 'flights' takes more than memory\n" in shown
    assert "not told" not in shown
    assert logging.getLogger("patternlake").handlers == before


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("patternlake exp", {"export"}),
        ("patternlake run p", {"patterns", "predict"}),
        ("patternlake run ingest --back", {"--backfill"}),
        ("patternlake completion f", {"fish"}),
    ],
)
def test_a_shell_completes_commands_options_and_jobs(
    capsys: pytest.CaptureFixture[str], typed: str, offered: set[str]
) -> None:
    assert command("completion", "bash") == 0
    script = capsys.readouterr().out
    words = typed.split()
    asked = f"COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _patternlake_completion patternlake"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    said = subprocess.run(
        ["bash", "-c", f'{script}\n{asked}; printf "%s\\n" "${{COMPREPLY[@]}}"'],
        capture_output=True, text=True, check=True, env={**os.environ, "PATH": path},
    )  # fmt: skip
    assert set(said.stdout.split()) == offered
    assert said.stderr == ""


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_scripts_of_their_own(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    assert command("completion", shell) == 0
    assert f"_PATTERNLAKE_COMPLETE=complete_{shell}" in capsys.readouterr().out


def test_a_shell_that_is_not_known_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("completion", "tcsh") == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in capsys.readouterr().err

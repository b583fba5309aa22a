"""The command `patternlake`: jobs, status, queries and a server from a shell or a scheduler, and a first configuration.

Results go to standard output, everything else to standard error. Exit codes: 0, done; 1, it failed, and standard
error says why; 2, the command was not understood; 130, interrupted at work.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from datetime import datetime
from enum import Enum
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.completion import completion_init, get_completion_script  # type: ignore[attr-defined]

from patternlake.delta_tables.spark.own_process import choose_memory
from patternlake.jobs.command_line.ending import exit_code, report_failures
from patternlake.jobs.terminal.messages import message
from patternlake.udfs.errors import ArgumentError, PatternLakeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console

    from patternlake.jobs.batches.summary import Summary
    from patternlake.jobs.configuration.file import Configuration
    from patternlake.jobs.runs.steps import Step

_COMMAND = "patternlake"
_COMPLETE = "_PATTERNLAKE_COMPLETE"
"""The environment variable by which a shell asks what may follow."""

app = typer.Typer(
    name=_COMMAND,
    help="Questions about order in time, over Delta tables: run jobs, see how they stand, ask.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Format(str, Enum):
    """How rows are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


class Shell(str, Enum):
    """Shells that complete what is typed."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def _complete_job(begun: str) -> list[str]:
    from patternlake.jobs.runs.steps import ALL, JOBS

    return [name for name in (*JOBS, ALL) if name.startswith(begun)]


Conf = Annotated[
    Path, typer.Option("--conf", metavar="FILE", help="The configuration, a YAML file.", show_default=False)
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show Spark's log, and the full trace of an error.")]


def _version(asked: bool) -> None:
    """Write the version and stop."""
    if asked:
        import patternlake

        typer.echo(patternlake.__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    pass


@app.command()
def init(
    table: Annotated[
        str | None,
        typer.Option("--table", metavar="NAME", help="A Delta table of the session's catalog.", show_default=False),
    ] = None,
    files: Annotated[
        str | None,
        typer.Option(
            "--files",
            metavar="GLOB",
            help="Files: a folder, or a pattern in quotes. The folder of a Delta table is that table.",
            show_default=False,
        ),
    ] = None,
    conf: Annotated[
        Path, typer.Option("--conf", metavar="FILE", help="The file to write; - is standard output.")
    ] = Path("patternlake.yaml"),
    stream: Annotated[
        str | None,
        typer.Option(
            "--stream",
            metavar="NAME",
            help="Without it: the table's, the folder's or the one file's.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option("--format", help="csv, json, parquet or xes. Without it: told by names.", show_default=False),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Look at all files, however large they are.")] = False,
    verbose: Verbose = False,
) -> None:
    """Write a first configuration, guessed from a table or files.

    Comments give the reasons. What it looked at and guessed goes to standard error. A file that exists is not
    overwritten.
    """
    from patternlake.jobs.command_line.local_spark import spark_for
    from patternlake.jobs.starter import starting, text

    if (table is None) == (files is None):
        raise typer.BadParameter("one of the two says where rows come from", param_hint="'--table' / '--files'")
    file = None if str(conf) == "-" else conf
    with report_failures(verbose) as console:
        starting.refuse_file(file)
        with spark_for(None, verbose=verbose) as spark:
            found, written = starting.init(
                spark, table=table, files=files, file=file, stream=stream, format=format, everything=everything
            )
        if file is None:
            _write([written.rstrip("\n")])
        for line in text.report(found):
            _tell(console, line)


@app.command()
def check(
    conf: Conf,
    object: Annotated[str | None, typer.Option("--object", metavar="NAME", help="Only this stream.")] = None,
    rows: Annotated[
        int | None,
        typer.Option("--rows", metavar="N", help="Read N rows of each source. Without it: all.", show_default=False),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Show what ingest would make of the sources; write nothing.

    You see ten events, and what would go to quarantine.

    Every expression is checked against its source's columns; each source is read from its beginning.
    The exit code is 1 where a stream has a problem; rows for quarantine are no problem.
    """
    from patternlake.jobs.command_line.local_spark import spark_for
    from patternlake.jobs.configuration.file import Configuration
    from patternlake.jobs.sources.source_files import tell_of_stores
    from patternlake.jobs.starter import checking

    if rows is not None and rows < 1:
        raise typer.BadParameter(f"{rows} is no number of rows; 1 or more", param_hint="'--rows'")
    failed = False
    with report_failures(verbose):
        configuration = Configuration.load(conf)
        streams = checking.choose_streams(configuration, object)
        with spark_for(configuration if _may_read_its_own(configuration) else None, verbose=verbose) as spark:
            tell_of_stores(spark, configuration)
            for name, stream in streams.items():
                try:
                    _write([str(checking.check(spark, name, stream, rows=rows)), ""])
                except PatternLakeError as error:
                    failed = True
                    typer.echo(message(error), err=True)
    if failed:
        raise typer.Exit(1)


def _may_read_its_own(configuration: Configuration) -> bool:
    """Whether a source may be a table of the lake itself, which is there."""
    from patternlake.delta_tables.databases.opening import refuse_no_lake

    if configuration.location is None or not configuration.calls_by_name:
        return False
    try:
        refuse_no_lake(configuration.location)
    except PatternLakeError:
        return False
    return True


@app.command()
def run(
    jobs: Annotated[
        list[str],
        typer.Argument(
            metavar="JOB...",
            help="One or more of ingest, sketch, trends, groups, patterns, predict, alerts, evaluate, maintain, which "
            "run in this order, or all.",
            autocompletion=_complete_job,
        ),
    ],
    conf: Conf,
    object: Annotated[str | None, typer.Option("--object", metavar="NAME", help="Only this object.")] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Start anew, with the configuration as it is.")] = False,
    backfill: Annotated[
        str | None,
        typer.Option(
            "--backfill",
            metavar="FROM..TO",
            help="Let ingest take in late rows of these times, whatever the lateness, such as 2024-01-01..2024-02-01.",
            show_default=False,
        ),
    ] = None,
    watch: Annotated[
        float | None, typer.Option("--watch", metavar="SECONDS", help="Run again, with this pause, until Ctrl-C.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress on a terminal.")] = False,
    side_by_side: Annotated[
        int | None,
        typer.Option(
            "--side-by-side",
            metavar="N",
            help="So many jobs of different objects at once; 1: one after another. Without it: half as many as "
            "there are cores, 4 at the most.",
            show_default=False,
        ),
    ] = None,
    fail_on_quarantine: Annotated[
        float | None,
        typer.Option(
            "--fail-on-quarantine",
            metavar="SHARE",
            help="Exit with code 1 where more than this share of a stream's new rows went to quarantine, from 0 to 1; "
            "repeats of events don't count. What was taken in stays, and the other jobs run.",
            show_default=False,
        ),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Run jobs: take in new rows, bring what is kept up to date.

    They run on everything configured for them, or on one object; one line of JSON for each.

    With --watch, only the first round uses --rebuild and --backfill; later rounds print a line only for what is new,
    and maintain only that. Ctrl-C in a pause ends with exit code 0, at work with 130: nothing half-done is seen, and
    the next run takes the batch over.
    """
    from patternlake.delta_tables.databases.opening import NEW_LAKES
    from patternlake.jobs.command_line.local_spark import spark_for
    from patternlake.jobs.configuration.file import Configuration
    from patternlake.jobs.runs.steps import check_backfill, steps

    if watch is not None and not watch > 0:
        raise typer.BadParameter(f"{watch:g} is no pause; more than 0 seconds", param_hint="'--watch'")
    if side_by_side is not None and side_by_side < 1:
        raise typer.BadParameter(f"{side_by_side} is no number of jobs; 1 or more", param_hint="'--side-by-side'")
    if fail_on_quarantine is not None and not 0 <= fail_on_quarantine <= 1:
        raise typer.BadParameter(
            f"{fail_on_quarantine:g} is no share; from 0 to 1", param_hint="'--fail-on-quarantine'"
        )
    refused: list[str] = []
    with report_failures(verbose, has_work=True) as console:
        configuration = Configuration.load(conf)
        planned = steps(configuration, jobs, object=object, rebuild=rebuild)
        check_backfill(backfill, planned, rebuild=rebuild)
        if not planned:
            _tell(console, f"nothing is configured for {', '.join(jobs)} in {conf}")
            return
        NEW_LAKES.setLevel(logging.INFO)
        # Jobs need no functions; but a source that is called by a name may be the lake's own.
        with spark_for(configuration if configuration.calls_by_name else None, create=True, verbose=verbose) as spark:
            # SIGTERM, from a supervisor or a container's end, is Ctrl-C here; Spark has set that up to cancel its work.
            signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
            rounds = _round(
                spark, configuration, planned, console, side_by_side, quiet, rebuild=rebuild, backfill=backfill
            )
            with closing(rounds) as first:
                _write_summaries(_note_refused(first, fail_on_quarantine, refused))
            while watch is not None and not refused:
                try:
                    sleep(watch)
                except KeyboardInterrupt:
                    return
                rounds = _round(spark, configuration, planned, console, side_by_side, quiet, sparing=True)
                with closing(rounds) as later:
                    news = (summary for summary in later if summary.batches or summary.rows_out)
                    _write_summaries(_note_refused(news, fail_on_quarantine, refused))
    for line in refused:
        typer.echo(line, err=True)
    if refused:
        raise typer.Exit(1)


@app.command()
def status(
    conf: Conf,
    format: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.TABLE,
    verbose: Verbose = False,
) -> None:
    """Show how far every object is.

    Its last batch, lag behind its input, rows, quarantined rows, and size.
    """
    from patternlake.delta_tables.databases.opening import open_database, reader_without_spark, refuse_no_lake
    from patternlake.delta_tables.reading.table_logs import UnreadableError
    from patternlake.delta_tables.schema import timestamps
    from patternlake.jobs.command_line import status_lines
    from patternlake.jobs.command_line.local_spark import on_a_platform, spark_for
    from patternlake.jobs.configuration.file import Configuration
    from patternlake.jobs.reports.status import status as look
    from patternlake.jobs.reports.status import status_without_spark

    with report_failures(verbose):
        configuration = Configuration.load(conf)
        reader = found = None
        if not on_a_platform() and configuration.location is not None:
            refuse_no_lake(configuration.location)
            reader = reader_without_spark(configuration.location)
        if reader is not None:
            with suppress(UnreadableError):
                found = status_without_spark(reader, configuration)
        if found is None:
            with spark_for(None, verbose=verbose) as spark:
                database = open_database(
                    spark, configuration.database, configuration.location, configuration.storage_options, make=False
                )
                found = look(database, configuration)
        if format is Format.JSON:
            _write(json.dumps(asdict(each), default=datetime.isoformat, ensure_ascii=False) for each in found)
        elif format is Format.CSV:
            _write(status_lines.as_csv(found))
        else:
            _write(status_lines.as_table(found, timestamps.now()))


@app.command()
def export(
    location: Annotated[
        str, typer.Option("--location", metavar="PLACE", help="The lake's folder or address.", show_default=False)
    ],
    verbose: Verbose = False,
) -> None:
    """Write the configuration of a lake whose file is lost.

    It goes to standard output, as the last batches were made with it.

    Secrets are not kept in a lake: they become variables of the environment, which comments name.
    """
    from patternlake.jobs.command_line.local_spark import on_a_platform, spark_for
    from patternlake.jobs.reports import exporting

    with report_failures(verbose):
        if on_a_platform() or exporting.needs_spark(location):
            with spark_for(None, verbose=verbose) as spark:
                text = exporting.export(location, spark)
        else:
            text = exporting.export(location)
        _write([text.rstrip("\n")])


@app.command()
def completion(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Write a script for your shell, which completes with TAB.

    It completes commands, options and jobs.

    For bash, `eval "$(patternlake completion bash)"` in ~/.bashrc; for zsh the same in ~/.zshrc, behind compinit; for
    fish, `patternlake completion fish > ~/.config/fish/completions/patternlake.fish`.
    """
    typer.echo(get_completion_script(prog_name=_COMMAND, complete_var=_COMPLETE, shell=shell.value))


@app.command()
def sql(
    conf: Conf,
    query: Annotated[
        str | None,
        typer.Argument(
            metavar="[QUERY]",
            help="A SQL statement; - reads one from standard input. Without it: a shell, or, where standard input is "
            "no terminal, all statements that stand there, each ended by a semicolon.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[
        Format, typer.Option("--format", help="A table of at most 1000 rows; csv and json write all rows.")
    ] = Format.TABLE,
    verbose: Verbose = False,
) -> None:
    """Ask in SQL: one statement, or many in a shell.

    The functions are enabled, in the configured database.

    If a statement of a shell or of standard input fails, you see its error and the next one runs. The exit code is
    then 1, except in a shell.
    """
    from patternlake.jobs.command_line import shell
    from patternlake.jobs.command_line.local_spark import spark_for
    from patternlake.jobs.configuration.file import Configuration

    if query is not None and not query.strip():
        raise typer.BadParameter("the statement is empty", param_hint="'QUERY'")
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    with report_failures(verbose) as console:
        configuration = Configuration.load(conf)
        text = sys.stdin.read() if query == "-" else query
        if text is not None and not text.strip():
            raise ArgumentError("standard input has no statement")
        if text is None and at_terminal:
            _tell(console, "Spark starts …")
        with spark_for(configuration, verbose=verbose) as spark:
            spark.catalog.setCurrentDatabase(configuration.database)
            if text is not None:
                _answer(spark, text, format, console)
                return
            if at_terminal:
                shell.converse(
                    lambda statement: _answer_statement(spark, statement, format, console, verbose),
                    lambda line: _tell(console, line),
                )
                return
            statements = shell.read(sys.stdin, lambda line: _tell(console, line))
            told = [
                _answer_statement(spark, statement, format, console, verbose, f"statement {number}: ")
                for number, statement in enumerate(statements, 1)
            ]
    if not all(told):
        raise typer.Exit(1)


@app.command()
def serve(
    conf: Conf,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Of JDBC and ODBC (Hive's protocol); 0: any.")] = 10000,
    connect_port: Annotated[int, typer.Option("--connect-port", help="Of Spark Connect; 0: any.")] = 15002,
    password_file: Annotated[
        Path | None,
        typer.Option(
            "--password-file",
            metavar="FILE",
            help="Lines NAME:HASH, the hash as openssl passwd -6 writes it; both doors ask for them.",
        ),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen though nothing guards it: nobody is asked for a password.")
    ] = False,
    allow_writes: Annotated[
        bool,
        typer.Option(
            "--allow-writes", help="Let sessions do all that Spark may: write, read any file, run code of their own."
        ),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of Spark's (spark.…) or of Hive's server (hive.…); repeatable.",
        ),
    ] = None,
    drain: Annotated[
        float, typer.Option("--drain", metavar="SECONDS", help="How long queries may go on after SIGTERM or Ctrl-C.")
    ] = 60.0,
    verbose: Verbose = False,
) -> None:
    """Let BI tools ask, by JDBC, ODBC and Spark Connect.

    A line for each query goes to standard error: who asked, seconds, rows. SIGTERM or Ctrl-C: no more connections, what
    runs is finished, exit code 0; a second one cuts it.
    """
    from patternlake.jobs.command_line import serving
    from patternlake.jobs.configuration.file import Configuration

    if not drain >= 0:
        raise typer.BadParameter(f"{drain:g} is no time; 0 seconds or more", param_hint="'--drain'")
    with report_failures(verbose) as console:
        serving.serve(
            Configuration.load(conf),
            host=host,
            port=port,
            connect_port=connect_port,
            password_file=password_file,
            insecure=insecure,
            allow_writes=allow_writes,
            settings=serving.settings_of(settings or ()),
            drain_seconds=drain,
            verbose=verbose,
            tell=lambda line: _tell(console, line),
        )


def _answer_statement(
    spark: SparkSession, statement: str, format: Format, console: Console, verbose: bool, which: str = ""
) -> bool:
    """Answer a statement, or tell its error, and `which` it is; whether it was answered."""
    try:
        _answer(spark, statement, format, console)
    except BrokenPipeError:
        raise
    except Exception as error:
        if verbose:
            traceback.print_exception(error)
        typer.echo(f"{which}{message(error)}", err=True)
        return False
    return True


def _answer(spark: SparkSession, statement: str, format: Format, console: Console) -> None:
    from patternlake.jobs.command_line import answers

    answer = spark.sql(statement)
    if format is Format.TABLE:
        lines, more = answers.as_table(answer)
        _write(lines)
        if more:
            _tell(console, f"only the first {answers.TABLE_ROWS} rows; --format csv or json writes all")
    else:
        _write(answers.as_csv(answer) if format is Format.CSV else answers.as_json(answer))


def _tell(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command, without arguments its help; returns if all went well.

    Raises
    ------
    SystemExit
        With the exit code, if it is not 0: some schedulers take any exit, that with 0 too, for a failure.
    """
    choose_memory()
    if _COMPLETE in os.environ:
        completion_init()
    code = exit_code(app, list(sys.argv[1:] if arguments is None else arguments) or ["--help"])
    if code:
        sys.exit(code)


def main_of(job: str) -> None:
    """Run ``patternlake run <job>`` with the process' arguments: for ``python -m patternlake.jobs.<job>``."""
    main(["run", job, *sys.argv[1:]])


def _round(
    spark: SparkSession,
    configuration: Configuration,
    planned: Iterable[Step],
    console: Console,
    side_by_side: int | None,
    quiet: bool,
    **how: Any,
) -> Generator[Summary, None, None]:
    from patternlake.delta_tables.databases import workers
    from patternlake.delta_tables.databases.opening import NEW_LAKES, open_database, tell_new_lake
    from patternlake.jobs.progress.reporting import ShownProgress
    from patternlake.jobs.runs.running import perform

    # Rich takes FORCE_COLOR, which logs of builds are often written with, for a terminal.
    quiet = quiet or not sys.stderr.isatty()
    with ShownProgress(console, spark, quiet=quiet) as progress:
        workers.check(spark)
        database = open_database(
            spark, configuration.database, configuration.location, configuration.storage_options, named=False
        )
        if database.made:
            NEW_LAKES.info("%s", tell_new_lake(database))
        yield from perform(database, configuration, planned, progress=progress, side_by_side=side_by_side, **how)


def _note_refused(
    summaries: Iterable[Summary], share: float | None, refused: list[str]
) -> Generator[Summary, None, None]:
    """The same summaries; a line for each stream of whose rows more than a share went to quarantine joins `refused`."""
    for summary in summaries:
        yield summary
        bad = summary.rows_quarantined - summary.rows_repeated
        if share is not None and summary.job == "ingest" and bad > share * summary.rows_in:
            refused.append(
                f"stream {summary.object!r}: {bad:,} of {summary.rows_in:,} rows went to quarantine, more than the "
                f"share of {share:g} that --fail-on-quarantine allows; the view quarantine has them with their reasons"
            )


def _write_summaries(summaries: Iterable[Summary]) -> None:
    _write(
        json.dumps({**asdict(summary), "seconds": round(summary.seconds, 3)}, ensure_ascii=False)
        for summary in summaries
    )


def _write(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)

"""PatternLake: questions about order in time for Spark SQL over Delta tables.

`session` starts a local session with the SQL functions, `enable` adds them to a live one; `init` writes a first
configuration and `check` tries it, `run` runs jobs, `status` says how they stand, `serve` lets others ask by JDBC and
Spark Connect. Each SQL function stands here under its name, too: from a session (`match_recognize`: from a
table) and its arguments to a DataFrame, `match_exists` to True, False or None; `plot` draws what they answer.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from patternlake.sql_ext.functions import NAMES, OVER_ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from pyspark.sql import SparkSession

    from patternlake.jobs.batches.summary import Summary
    from patternlake.jobs.configuration.file import Configuration
    from patternlake.jobs.progress.reporting import Progress
    from patternlake.jobs.reports.status import ObjectStatus
    from patternlake.jobs.starter.checked import Checked
    from patternlake.sql_ext import plots as plot
    from patternlake.sql_ext.functions.cet_aggregate import cet_aggregate
    from patternlake.sql_ext.functions.cet_count import cet_count
    from patternlake.sql_ext.functions.cet_trends import cet_trends
    from patternlake.sql_ext.functions.explain_pattern import explain_pattern
    from patternlake.sql_ext.functions.group_members import group_members
    from patternlake.sql_ext.functions.match_exists import match_exists
    from patternlake.sql_ext.functions.match_funnel import match_funnel
    from patternlake.sql_ext.functions.match_funnel_rows import match_funnel_rows
    from patternlake.sql_ext.functions.match_groups import match_groups
    from patternlake.sql_ext.functions.match_paths import match_paths
    from patternlake.sql_ext.functions.match_pattern import match_pattern
    from patternlake.sql_ext.functions.match_recognize import match_recognize
    from patternlake.sql_ext.functions.match_seq import match_seq
    from patternlake.sql_ext.functions.match_subscription import match_subscription
    from patternlake.sql_ext.functions.predict_match import predict_match
    from patternlake.sql_ext.functions.sketch_error import sketch_error
    from patternlake.sql_ext.serving.server import Server

__all__ = [
    "__version__",
    "cet_aggregate",
    "cet_count",
    "cet_trends",
    "check",
    "enable",
    "explain_pattern",
    "group_members",
    "init",
    "match_exists",
    "match_funnel",
    "match_funnel_rows",
    "match_groups",
    "match_paths",
    "match_pattern",
    "match_recognize",
    "match_seq",
    "match_subscription",
    "plot",
    "predict_match",
    "run",
    "serve",
    "session",
    "sketch_error",
    "status",
]

if not Path(__file__).parent.is_dir():
    raise ImportError(
        f"patternlake cannot run from inside an archive ({Path(__file__).parents[1]}), as compiled kernels are kept "
        "beside its files. Install it; or, for Spark's workers, ship it as a zip file by --archives, which unpacks it, "
        "instead of --py-files"
    )
try:
    __version__ = version("patternlake")
except PackageNotFoundError:  # a source tree that is on the path without being installed
    __version__ = "0+unknown"


def session(
    location: str | None = "./lake",
    master: str = "local[*]",
    *,
    database: str | None = "patternlake",
    create: bool = False,
    settings: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start a local Delta-ready session with the functions enabled.

    Parameters
    ----------
    location
        Folder (or object-store path) of the tables; None: the catalog's own place.
    master
        Spark's master URL.
    database
        Name under which the views are registered; it becomes the current database. None, with a location of
        None: the session is ready for Delta, and has nothing of PatternLake.
    create
        Make an empty database without a warning where there is none.
    settings
        Further Spark settings; they win over PatternLake's own.
    storage_options
        As for `enable`.

    Returns
    -------
    pyspark.sql.SparkSession
        The session, with the database as the current one. If a session is already active, it is enabled without
        changing its settings.

    Raises
    ------
    patternlake.udfs.errors.ArgumentError
        There is a location and no database.
    patternlake.udfs.errors.StateError
        Spark could not start, Delta's jars could not be had, or as for `enable`.
    """
    from patternlake.sql_ext.session import session as start

    return start(location, master, database=database, create=create, settings=settings, storage_options=storage_options)


def enable(
    spark: SparkSession,
    database: str | PathLike[str] | Configuration = "patternlake",
    location: str | None = None,
    *,
    create: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> SparkSession:
    """Enable the SQL functions on a live session; idempotent.

    Parameters
    ----------
    spark
        A classic session that is ready for Delta; not one of Spark Connect.
    database
        Name under which the views are registered; the tables are, under ``<database>_internal``. Or a configuration or
        its file (a path, or a text that ends in ``.yaml`` or ``.yml``), whose database and location are taken, as `run`
        takes them. It becomes the current database, unless another was chosen: one that is neither ``default`` nor the
        database that was enabled before.
    location
        Folder or object-store path of the tables; None: the catalog's own place, or the configuration's.
    create
        Make an empty database without a warning where there is none.
    storage_options
        Of the object store, as delta-rs spells them (``AWS_ACCESS_KEY_ID``, …): for what is read without Spark, and for
        Spark where its own settings say nothing. None: the configuration's. Options that you don't give come from
        Spark's settings (``fs.s3a.…``, ``fs.azure.…``, ``fs.gs.…``) and from the environment.

    Returns
    -------
    pyspark.sql.SparkSession
        The same session.

    Raises
    ------
    patternlake.udfs.errors.ArgumentError
        A location stands beside a configuration.
    patternlake.udfs.errors.ConfigurationError
        The file has problems, one line each.
    patternlake.udfs.errors.StateError
        The session is one of Spark Connect, its workers cannot run PatternLake, or the database is newer than this
        code or registered at another location.

    Warns
    -----
    UserWarning
        There was no database and an empty one was made; the functions answered from another one until now; or another
        database stays the current one, so that the views need their database's name.
    """
    from patternlake.sql_ext.enabling import enable as start

    name, place, configured = _placed(database, location)
    options = configured if storage_options is None else storage_options
    return start(spark, database=name, location=place, create=create, storage_options=options)


def init(
    spark: SparkSession,
    *,
    table: str | None = None,
    files: str | None = None,
    file: str | PathLike[str] | None = None,
    stream: str | None = None,
    format: str | None = None,
    everything: bool = False,
) -> str:
    """Write a first configuration of a table or of files, guessed from their rows, with comments.

    It is for the lake that the session's functions answer from, if there is one.

    Parameters
    ----------
    spark
        A classic session that is ready for Delta; not one of Spark Connect.
    table, files
        The source: a Delta table's name in the session's catalog, or a folder or pattern of files; one of the two.
    file
        The file to write, which must not be there yet; None: none is written.
    stream
        The stream's name; None: the table's, the folder's or the one file's.
    format
        Of files: csv, json, parquet or xes; None: told from their names.
    everything
        Look at all files, not only at 256 MB of them; of a table all rows are looked at anyway.

    Returns
    -------
    str
        The text of the configuration, YAML.

    Raises
    ------
    patternlake.udfs.errors.ArgumentError
        Not one of table and files is given, the format is none of files, or the file is there already.
    patternlake.udfs.errors.SourceError
        The source is missing, is none, has nothing yet, or cannot be read.
    """
    from pathlib import Path

    from patternlake.jobs.starter.starting import init as start
    from patternlake.sql_ext.lakes.enabled import find_place

    _, text = start(
        spark,
        table=table,
        files=files,
        file=None if file is None else Path(file),
        stream=stream,
        format=format,
        everything=everything,
        lake=find_place(spark),
    )
    return text


def check(
    spark: SparkSession,
    configuration: str | PathLike[str] | Configuration,
    *,
    object: str | None = None,
    rows: int | None = None,
) -> list[Checked]:
    """Look at what `ingest` would make of the sources, and write nothing.

    Parameters
    ----------
    spark
        A classic session that is ready for Delta; not one of Spark Connect.
    configuration
        The configuration's file, or the configuration.
    object
        Only the stream of this name.
    rows
        Read so many rows of each source at the most; None: all.

    Returns
    -------
    list of Checked
        One per stream: rows, ten of them as events, and what would go to quarantine; ``print`` shows one as text.

    Raises
    ------
    patternlake.udfs.errors.ConfigurationError
        The file has problems, or expressions do not fit their source: one line each.
    patternlake.udfs.errors.ArgumentError
        There is no such stream.
    patternlake.udfs.errors.SourceError
        A source is missing, is none, or cannot be read.
    """
    from patternlake.jobs.configuration.file import Configuration
    from patternlake.jobs.sources.source_files import tell_of_stores
    from patternlake.jobs.starter.checking import check as look
    from patternlake.jobs.starter.checking import choose_streams

    given = configuration if isinstance(configuration, Configuration) else Configuration.load(configuration)
    tell_of_stores(spark, given)
    return [look(spark, name, stream, rows=rows) for name, stream in choose_streams(given, object).items()]


def run(
    spark: SparkSession,
    configuration: str | PathLike[str] | Configuration,
    job: str | Sequence[str] = "all",
    *,
    object: str | None = None,
    rebuild: bool = False,
    backfill: str | None = None,
    progress: Progress | None = None,
    side_by_side: int | None = None,
) -> list[Summary]:
    """Run jobs on everything that is configured for them, or on one object.

    You can call it at any time. It goes on where the last run ended, and completes a run that died. After an error no
    further job begins; jobs that are running finish, and what was published stays. The SQL functions are enabled apart,
    by `enable` with the same configuration.

    Parameters
    ----------
    spark
        A classic session that is ready for Delta; not one of Spark Connect.
    configuration
        The configuration's file, or the configuration.
    job
        One job or several of them: ``ingest``, ``sketch``, ``trends``, ``groups``, ``patterns``, ``predict``,
        ``alerts``, ``evaluate``, ``maintain``; or ``all``. They run in this order, whatever the order given.
    object
        Only the object of this name.
    rebuild
        Start the objects anew, under the configuration as it is; `as_of` still reads the former state until `maintain`
        forgets it.
    backfill
        ``FROM..TO``, as in ``2024-01-01..2024-02-01``: `ingest` takes in late rows of these times, too, whatever the
        lateness; what is kept of their streams is made anew.
    progress
        Hears of every object, in the thread that calls; by default, the output of the cell in a notebook, and
        elsewhere the log.
    side_by_side
        How many jobs of different objects may run at once; 1: one after another. None: half as many as there are
        cores, 4 at the most.

    Returns
    -------
    list of Summary
        One per job and object, in the order of the run: job, object, rows in, out and quarantined, batches, seconds.

    Raises
    ------
    patternlake.udfs.errors.ConfigurationError
        The file has problems, one line each.
    patternlake.udfs.errors.ArgumentError
        There is no such job or object, the job has nothing to rebuild, `backfill` is no span or goes with `rebuild` or
        without `ingest`, or `side_by_side` is not 1 or more.
    patternlake.udfs.errors.PatternLakeError
        From a job: of its own class, with the job's and the object's name in the message. Where several have failed,
        the first of them in the order of the run; the log, at level ERROR, has the others.
    """
    from patternlake.jobs.runs.running import run as start

    return start(
        spark,
        configuration,
        job,
        object=object,
        rebuild=rebuild,
        backfill=backfill,
        progress=progress,
        side_by_side=side_by_side,
    )


def status(spark: SparkSession, configuration: str | PathLike[str] | Configuration) -> list[ObjectStatus]:
    """Say how every object stands that is configured or was published.

    Parameters
    ----------
    spark
        A classic session that is ready for Delta; not one of Spark Connect.
    configuration
        The configuration's file, or the configuration.

    Returns
    -------
    list of ObjectStatus
        One per job and object, job by job: last batch, when it was published, watermark, lag behind its input, rows in,
        out and quarantined, bytes. ``pandas.DataFrame(patternlake.status(…))`` is a table of them.

    Raises
    ------
    patternlake.udfs.errors.ConfigurationError
        The file has problems, one line each.
    patternlake.udfs.errors.StateError
        The session is one of Spark Connect, or the database is newer than this code or registered at another location,
        or there is none.
    """
    from patternlake.delta_tables.databases.opening import open_database
    from patternlake.jobs.configuration.file import Configuration
    from patternlake.jobs.reports.status import status as look

    given = configuration if isinstance(configuration, Configuration) else Configuration.load(configuration)
    return look(open_database(spark, given.database, given.location, given.storage_options, make=False), given)


def serve(
    configuration: str | PathLike[str] | Configuration,
    *,
    host: str = "127.0.0.1",
    port: int = 10000,
    connect_port: int = 15002,
    password_file: str | PathLike[str] | None = None,
    insecure: bool = False,
    allow_writes: bool = False,
    settings: Mapping[str, str] | None = None,
    master: str = "local[*]",
) -> Server:
    """Start a local Spark with the functions, and let others ask by JDBC, ODBC and Spark Connect.

    What ``patternlake serve`` does, in a process of yours that has not started Spark.

    Parameters
    ----------
    configuration
        The configuration's file, or the configuration; its database is the current one of every session.
    host
        Address to listen at.
    port
        Of Hive's protocol, which JDBC and ODBC drivers speak; 0: any that is free.
    connect_port
        Of Spark Connect; 0: any that is free.
    password_file
        Lines ``name:hash``, the hash as ``openssl passwd -6`` writes it. Both doors ask for them then; it is read anew
        for each check.
    insecure
        Listen though nothing guards the doors. Without it, and without a password file, nothing listens.
    allow_writes
        Let sessions do all that Spark may: change tables, read and write files anywhere, run code of their own. Else
        they read tables and views, and call functions.
    settings
        Further settings: Spark's (``spark.…``), and those of Hive's server (``hive.…``).
    master
        Spark's master URL.

    Returns
    -------
    Server
        It listens. `close_doors` takes no more connections, `drain` waits for what runs; `stop` ends it, and so does
        the end of a ``with`` block.

    Raises
    ------
    patternlake.udfs.errors.ConfigurationError
        The file has problems, one line each.
    patternlake.udfs.errors.ArgumentError
        A port is none, or taken; the address is not this machine's; a door is unguarded; a setting contradicts; the
        password file cannot be read, or has a line that is none.
    patternlake.udfs.errors.StateError
        Spark runs in this process already, or could not start.
    """
    from pathlib import Path

    from patternlake.jobs.configuration.file import Configuration
    from patternlake.sql_ext.serving.doors import Doors
    from patternlake.sql_ext.serving.server import serve as start

    loaded = configuration if isinstance(configuration, Configuration) else Configuration.load(configuration)
    passwords = None if password_file is None else Path(password_file)
    doors = Doors(host, port, connect_port, passwords, insecure, settings or {}, allow_writes)
    return start(loaded.location, loaded.database, doors, master=master, storage_options=loaded.storage_options)


def _placed(
    database: str | PathLike[str] | Configuration, location: str | None
) -> tuple[str, str | None, Mapping[str, str] | None]:
    """Name, location and storage options of a database that is named, or configured."""
    if isinstance(database, str) and not database.lower().endswith((".yaml", ".yml")):
        return database, location, None
    from patternlake.jobs.configuration.file import Configuration
    from patternlake.udfs.errors import ArgumentError

    loaded = database if isinstance(database, Configuration) else Configuration.load(database)
    if location is not None:
        raise ArgumentError(
            f"location {location!r} beside a configuration, which says where its database is; leave it out"
        )
    return loaded.database, loaded.location, loaded.storage_options


def __getattr__(name: str) -> object:
    # Nothing happens at import: a function's module, and Spark's with it, is loaded when it is first asked for.
    if name == "plot":
        return import_module("patternlake.sql_ext.plots")
    if name not in (*NAMES, *OVER_ROWS):
        from difflib import get_close_matches

        near = get_close_matches(name, __all__, 1)
        hint = f"; near it: {near[0]}" if near else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    return getattr(import_module(f"patternlake.sql_ext.functions.{name}"), name)


def __dir__() -> list[str]:
    return __all__

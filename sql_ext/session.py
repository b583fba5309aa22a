"""A local Spark session that is ready for Delta and for PatternLake's functions."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from patternlake.sql_ext.spark_start import fetched_jars, quiet_start
from patternlake.sql_ext.spark_start.notebooks import notebook_settings
from patternlake.sql_ext.spark_start.settings import SESSION_SETTINGS
from patternlake.sql_ext.spark_start.spark_packages import PACKAGES, find_packages
from patternlake.udfs.errors import ArgumentError, StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

# pyspark writes a JSON document with Java's stack to standard error, beside raising, for each error of these kinds.
_ECHOES = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def session(
    location: str | None = "./lake",
    master: str = "local[*]",
    *,
    database: str | None = "patternlake",
    create: bool = False,
    settings: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start a local session with Delta and PatternLake's SQL functions.

    Parameters, results and errors: as of `patternlake.session`.
    """
    from patternlake.sql_ext.enabling import enable

    if database is None:
        if location is not None:
            raise ArgumentError(f"location {location!r} without a database; leave it out, too: location=None")
        return bare_session(master, settings)
    started = bare_session(master, settings)
    return enable(started, database=database, location=location, create=create, storage_options=storage_options)


def bare_session(master: str = "local[*]", settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start (or get) a session that is ready for Delta, with nothing of PatternLake registered.

    A JVM that it starts is quiet: only errors are logged, unless a log4j2 configuration of the user's says otherwise;
    ``spark.sparkContext.setLogLevel("WARN")`` brings Spark's warnings back.
    """
    from delta import configure_spark_with_delta_pip
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        # Elsewhere executors of other machines have to reach the driver: Spark chooses its address.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("patternlake").master(master)
    defaults = {"spark.driver.memory": os.environ.get("PATTERNLAKE_DRIVER_MEMORY", "4g"), **SESSION_SETTINGS}
    defaults |= notebook_settings()
    for key, value in {**defaults, **(settings or {})}.items():
        builder = builder.config(key, value)
    builder = configure_spark_with_delta_pip(builder, find_packages(settings or {}, os.environ))
    for name in _ECHOES:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    options = {key: str(value) for key, value in builder._options.items()}
    # On a cluster Spark itself brings what packages need to the other machines.
    jars = fetched_jars.recall(options, os.environ) if master.startswith("local") else None
    given = dict(options)
    if jars is not None:
        del given[PACKAGES]
        given[fetched_jars.JARS] = jars
    try:
        started = quiet_start.start(SparkConf().setAll(list(given.items())))
        spark = builder.getOrCreate()
        if started and jars is None:
            fetched_jars.remember(options, os.environ, spark.sparkContext.getConf().get(fetched_jars.JARS) or "")
        return spark
    except Exception as error:
        raise StateError(
            "Spark could not start with Delta's jars. They come from the Maven repository through Ivy at the first "
            f"start: is it reachable, and is Java 17 on the path? First line of the cause: {_first_line(error)}"
        ) from error


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__

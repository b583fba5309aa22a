"""Where Delta's jars are: sessions that a server's threads make find classes on the JVM's own class path only."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from patternlake.sql_ext.spark_start import fetched_jars, quiet_start
from patternlake.udfs.errors import StateError

# All that Ivy fetches would clash with Spark's own Jackson.
_DELTA = "io.delta_*.jar"


def class_path(settings: Mapping[str, str]) -> str:
    """Delta's jars as a class path; where no session has started with them before, a JVM is, to have Ivy find them.

    Parameters
    ----------
    settings
        Of the session that is to be started: where Ivy keeps jars, and the repository, may be among them.

    Raises
    ------
    StateError
        The jars could not be had.
    """
    from delta import configure_spark_with_delta_pip
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    options = {key: str(value) for key, value in configure_spark_with_delta_pip(builder)._options.items()}
    found = fetched_jars.recall(options, os.environ)
    if found is None:
        found = _ask_ivy(options)
        fetched_jars.remember(options, os.environ, found)
    wanted = [str(jar) for jar in fetched_jars.files_of(found) if jar.match(_DELTA)]
    if not wanted:
        raise StateError(f"Spark names no jars of Delta's ({_DELTA}) among those that it was started with: {found}")
    return os.pathsep.join(wanted)


def _ask_ivy(options: Mapping[str, str]) -> str:
    """The jars that a JVM has that is started with settings, as Spark lists them."""
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    try:
        gateway = launch_gateway(SparkConf().setAll(list(options.items())), {"stderr": subprocess.DEVNULL})  # type: ignore[no-untyped-call]
    except Exception as error:
        raise StateError(
            "Delta's jars could not be had. They come from the Maven repository through Ivy at the first start: is it "
            "reachable, and is Java 17 on the path?"
        ) from error
    try:
        return str(gateway.jvm.java.lang.System.getProperty("spark.jars") or "")
    finally:
        quiet_start.end(gateway)

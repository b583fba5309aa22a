"""PatternLake: questions about order in time for Spark SQL over Delta tables.

`session` starts a local session with the SQL functions, `enable` adds them to a live one, `run` runs jobs.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["__version__", "enable", "run", "session"]

try:
    __version__ = version("patternlake")
except PackageNotFoundError:  # a source tree that is on the path without being installed
    __version__ = "0+unknown"


def session(location: str | None = "./lake", master: str = "local[*]", **options: Any) -> SparkSession:
    """Start a local Delta-ready session with the functions enabled; see `patternlake.sql_ext.session.session`."""
    from patternlake.sql_ext.session import session as start

    return start(location, master, **options)


def enable(spark: SparkSession, database: str = "patternlake", location: str | None = None) -> SparkSession:
    """Enable the SQL functions on a live session; idempotent; see `patternlake.sql_ext.enabling.enable`."""
    from patternlake.sql_ext.enabling import enable as start

    return start(spark, database=database, location=location)


def run(spark: SparkSession, configuration: str, job: str = "all", **options: Any) -> list[Any]:
    """Run jobs on a live session and return their summaries; see `patternlake.jobs.running.run`."""
    from patternlake.jobs.running import run as start

    return start(spark, configuration, job, **options)

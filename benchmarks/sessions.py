"""The one Spark session of a measuring process: two cores, PatternLake's own settings, a quiet log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from patternlake.sql_ext.session import bare_session, session

MASTER = "local[2]"


@contextmanager
def spark_session(folder: Path, *, functions: bool = True, master: str = MASTER) -> Iterator[SparkSession]:
    """A session, stopped at the end; with the functions enabled over the database `patternlake` at ``folder/state``."""
    for name in ("py4j", "SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    settings = {"spark.sql.warehouse.dir": str(folder.resolve() / "warehouse")}
    if functions:
        spark = session(str(folder / "state"), master, settings=settings)
    else:
        spark = bare_session(master, settings)
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()

"""Adds PatternLake's SQL functions to a session."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from patternlake.delta_tables.databases import workers
from patternlake.delta_tables.databases.opening import NEW_LAKES, open_database, tell_new_lake
from patternlake.delta_tables.schema.locations import plain
from patternlake.delta_tables.schema.quoting import identifier
from patternlake.sql_ext.answering.user_warnings import warn_user
from patternlake.sql_ext.calls import registering
from patternlake.sql_ext.functions import load_declarations, load_rows_functions
from patternlake.sql_ext.lakes import enabled
from patternlake.sql_ext.spark_start.settings import FUNCTION_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

FUNCTIONS = load_declarations()
"""All functions over what is kept."""
ROWS_FUNCTIONS = load_rows_functions()
"""All functions over rows of any table."""

_DEFAULT = "default"


def enable(
    spark: SparkSession,
    database: str = "patternlake",
    location: str | None = None,
    *,
    create: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> SparkSession:
    """Open a database and register the SQL functions over its tables; idempotent.

    Parameters, results, errors and warnings: as of `patternlake.enable`.
    """
    workers.check(spark)
    db = open_database(spark, database, location, storage_options)
    if db.made and create:
        NEW_LAKES.info("%s", tell_new_lake(db))
    elif db.made:
        warn_user(
            f"there was no database at {db.location}, so an empty one was made and is registered as '{database}'. "
            "patternlake.run(spark, configuration) fills it, given a configuration with this database and location. "
            f"If the location is mistyped: DROP DATABASE {identifier(database)} CASCADE, then enable the right one"
        )
    for name, value in FUNCTION_SETTINGS.items():
        spark.conf.set(name, value)
    before = enabled.use(db, storage_options)
    registering.register(spark, (*FUNCTIONS, *ROWS_FUNCTIONS))
    same = before is not None and (before[0], plain(before[1])) == (db.name, plain(db.location))
    if before is not None and not same:
        warn_user(
            f"the SQL functions of this session answered from database {_show(*before)}; from here on they answer "
            f"from {_show(db.name, db.location)}. A session of its own, spark.newSession(), can answer from another"
        )
    current = spark.catalog.currentDatabase()
    if current in (_DEFAULT, before and before[0]):
        spark.catalog.setCurrentDatabase(database)
    elif current != database and not same:
        warn_user(
            f"'{current}' was chosen as the current database and stays it: the views are {database}.events, "
            f"{database}.quarantine and so on, or events and quarantine after USE {database}; functions need no prefix"
        )
    logger.info("enabled %d SQL functions over database %s at %s", len(FUNCTIONS), database, db.location)
    return spark


def _show(name: str, location: str) -> str:
    return f"'{name}' at {location}"

"""Adds PatternLake's SQL functions to a session."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from patternlake.delta_tables.database import Database
from patternlake.sql_ext import (
    cet_count,
    cet_trends,
    explain_pattern,
    group_udfs,
    kleene_udfs,
    machine_udfs,
    match_exists,
    match_groups,
    match_pattern,
    match_seq,
    match_subscription,
    predict_match,
    sketch_udfs,
    trend_udfs,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

FUNCTIONS = (
    match_seq.function,
    match_exists.function,
    match_pattern.function,
    explain_pattern.function,
    match_groups.function,
    cet_count.function,
    cet_trends.function,
    match_subscription.function,
    predict_match.function,
)
"""What makes each SQL function, given the database."""


def enable(spark: SparkSession, database: str = "patternlake", location: str | None = None) -> SparkSession:
    """Open a database and register the SQL functions over its tables; idempotent.

    Parameters
    ----------
    spark
        A Delta-ready session of any kind.
    database
        Name under which tables and views are registered; made the current database where none was chosen.
    location
        Folder or object-store path of the tables; None: the catalog's own place.

    Returns
    -------
    SparkSession
        The same session.

    Raises
    ------
    StateError
        The database is newer than this code, or registered at another location.
    """
    db = Database.open(spark, database, location)
    sketch_udfs.register(spark)
    trend_udfs.register(spark)
    kleene_udfs.register(spark)
    group_udfs.register(spark)
    machine_udfs.register(spark)
    for make in FUNCTIONS:
        make(db).create(spark)
    logger.info("enabled %d SQL functions over database %s at %s", len(FUNCTIONS), database, db.location)
    return spark

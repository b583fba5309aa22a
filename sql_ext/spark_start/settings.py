"""Spark's settings: those that functions need of any session, and those of a session that is started here."""

from __future__ import annotations

from patternlake.udfs.record_batches import SETTINGS as RECORD_BATCHES

FUNCTION_SETTINGS = {
    # Rows that the driver hands to Spark are part of the plan up to this size. Measured: 14 MB of them are read four
    # times as fast in tasks; few are read without any.
    "spark.sql.execution.arrow.localRelationThreshold": "1MB",
}
"""What functions need of the session that asks."""

# Each setting with the reason that it is not Spark's default.
SESSION_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Arrow-fed Python functions over a Parquet scan can hang with columnar input (SPARK-58241).
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    **RECORD_BATCHES,
    # The same answers on every machine, whatever its clock's zone.
    "spark.sql.session.timeZone": "UTC",
    # State tables are small: Delta's default of 50 tasks per snapshot costs more than the snapshot.
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "8",
    # The least memory of whatever is sorted, grouped or broadcast: Spark's own choice for a heap of this size is 64 MB,
    # and twenty joins with a few rows each, still referred to by their plans, filled half of it.
    "spark.buffer.pageSize": "4m",
    **FUNCTION_SETTINGS,
    # Workers are forked from a process that has loaded the kernels.
    "spark.python.daemon.module": "patternlake.sql_ext.worker_daemon",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""What a session has that is started here."""

"""Python functions over Arrow arrays as functions of a session, which the bodies of SQL functions call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession, functions

# Spark tells the kind of function from its annotations; its stubs want the kind spelt out.
arrow_udf: Any = functions.arrow_udf  # type: ignore[attr-defined]


def register_functions(spark: SparkSession, made: Mapping[str, Any]) -> None:
    """Register what `arrow_udf` made, by name."""
    for name, function in made.items():
        spark.udf.register(name, function)

"""The kernels of machines as Arrow functions of a session; the bodies of the functions call them."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_type

from patternlake.sql_ext.arrow_functions import arrow_udf, register_functions
from patternlake.udfs.machines.asking import FORECAST_TYPE, QUESTION_TYPE, ROW_TYPE, ask, forecast, row_forecast


def register(spark: SparkSession) -> None:
    """Register the functions in a session; they are not for analysts and may change."""
    made = {
        "_patternlake_machines_question": arrow_udf(_question, from_arrow_type(QUESTION_TYPE)),
        # Spark evaluates what LATERAL inline() takes twice, unless it may differ.
        "_patternlake_machines_forecast": arrow_udf(_forecast, from_arrow_type(FORECAST_TYPE)).asNondeterministic(),
        "_patternlake_machines_row": arrow_udf(_row, from_arrow_type(ROW_TYPE)),
    }
    register_functions(spark, made)


def _question(arguments: pa.Array, published: pa.Array) -> pa.Array:
    rows = zip(arguments.to_pylist(), published.to_pylist(), strict=True)
    return pa.array([ask(*row) for row in rows], QUESTION_TYPE)


def _forecast(text: pa.Array, moves: pa.Array) -> pa.Array:
    rows = zip(text.to_pylist(), moves.to_pylist(), strict=True)
    return pa.array([forecast(one, given or []) for one, given in rows], FORECAST_TYPE)


def _row(ages: pa.Array, trained: pa.Array, hazards: pa.Array) -> pa.Array:
    rows = zip(ages.to_pylist(), trained.to_pylist(), hazards.to_pylist(), strict=True)
    return pa.array([row_forecast(*row) for row in rows], ROW_TYPE)

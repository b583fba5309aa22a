"""The kernels of groups as Arrow functions of a session; the body of `match_groups` calls them."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_type

from patternlake.sql_ext.arrow_functions import arrow_udf, register_functions
from patternlake.sql_ext.portions import told_apart
from patternlake.udfs.exact_parts import PART_TYPE, rows_of
from patternlake.udfs.groups.asking import QUESTION_TYPE, ask, asked
from patternlake.udfs.groups.parts import ROW_TYPE, groups_part

_COLUMNS = ("part", "position", "time", "step", "key", "name", "probability", "attributes")


def register(spark: SparkSession) -> None:
    """Register the functions in a session; they are not for analysts and may change."""
    made = {
        "_patternlake_groups_question": arrow_udf(_question, from_arrow_type(QUESTION_TYPE)),
        "_patternlake_groups_part": arrow_udf(_part, from_arrow_type(PART_TYPE)),
        # Spark evaluates what LATERAL inline() takes twice, unless it may differ.
        "_patternlake_groups_rows": arrow_udf(_rows, from_arrow_type(pa.list_(ROW_TYPE))).asNondeterministic(),
    }
    register_functions(spark, made)


def _question(
    arguments: pa.Array, publication: pa.Array, known: pa.Array, counts: pa.Array, queries: pa.Array
) -> pa.Array:
    rows = zip(*(column.to_pylist() for column in (arguments, publication, known, counts, queries)), strict=True)
    return pa.array([ask(*row) for row in rows], QUESTION_TYPE)


def _part(
    text: pa.Array,
    part: pa.Array,
    position: pa.Array,
    time: pa.Array,
    step: pa.Array,
    key: pa.Array,
    name: pa.Array,
    probability: pa.Array,
    attributes: pa.Array,
) -> pa.StructScalar:
    given = (part, position, time, step, key, name, probability, attributes)
    question, events = told_apart(text, dict(zip(_COLUMNS, given, strict=True)))
    return groups_part(asked(question), events)


def _rows(chunks: pa.Array) -> pa.Array:
    return rows_of(chunks.to_pylist(), ROW_TYPE)

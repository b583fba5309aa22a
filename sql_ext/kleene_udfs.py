"""The kernels of exact patterns as Arrow functions; the bodies of `match_pattern` and `explain_pattern` call them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_type

from patternlake.sql_ext.arrow_functions import arrow_udf, register_functions
from patternlake.sql_ext.portions import told_apart
from patternlake.udfs.errors import PatternLakeError
from patternlake.udfs.exact_parts import PART_TYPE, refused, rows_of
from patternlake.udfs.kleene.asking import QUESTION_TYPE, ask, asked
from patternlake.udfs.kleene.parts import ROW_TYPE, match_part, refusal


def register(spark: SparkSession) -> None:
    """Register the functions in a session; they are not for analysts and may change."""
    made = {
        "_patternlake_kleene_question": arrow_udf(_question, from_arrow_type(QUESTION_TYPE)),
        "_patternlake_kleene_part": arrow_udf(_part, from_arrow_type(PART_TYPE)),
        "_patternlake_kleene_refusal": arrow_udf(_refusal, "string"),
        # Spark evaluates what LATERAL inline() takes twice, unless it may differ.
        "_patternlake_kleene_rows": arrow_udf(_rows, from_arrow_type(pa.list_(ROW_TYPE))).asNondeterministic(),
    }
    register_functions(spark, made)


def _question(arguments: pa.Array, publication: pa.Array, known: pa.Array, counts: pa.Array) -> pa.Array:
    rows = zip(*(column.to_pylist() for column in (arguments, publication, known, counts)), strict=True)
    return pa.array([ask(_plain(row[0]), *row[1:]) for row in rows], QUESTION_TYPE)


def _plain(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with the map of parameters as a mapping, not as pairs."""
    return {**arguments, "params": dict(arguments.get("params") or {})}


def _part(
    text: pa.Array,
    portion: pa.Array,
    part: pa.Array,
    position: pa.Array,
    time: pa.Array,
    step: pa.Array,
    key: pa.Array,
    name: pa.Array,
    probability: pa.Array,
    attributes: pa.Array,
    rank: pa.Array,
) -> pa.StructScalar:
    columns = {
        "part": part,
        "position": position,
        "time": time,
        "step": step,
        "key": key,
        "name": name,
        "probability": probability,
        "attributes": attributes,
        "rank": rank,
    }
    question, events = told_apart(text, columns)
    try:
        understood = asked(question)
    except PatternLakeError as error:
        return refused(str(error))
    return match_part(understood, portion[0].as_py(), events)


def _refusal(total: pa.Array, max_matches: pa.Array, truncate: pa.Array) -> pa.Array:
    rows = zip(total.to_pylist(), max_matches.to_pylist(), truncate.to_pylist(), strict=True)
    told = [refusal(*row) for row in rows]
    return pa.array(told, pa.string())


def _rows(chunks: pa.Array) -> pa.Array:
    return rows_of(chunks.to_pylist(), ROW_TYPE)

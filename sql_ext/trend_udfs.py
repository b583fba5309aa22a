"""The kernels of trends as Arrow functions of a session; the bodies of `cet_count` and `cet_trends` call them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_type

from patternlake.sql_ext.arrow_functions import arrow_udf, register_functions
from patternlake.sql_ext.portions import told_apart
from patternlake.sql_ext.trend_steps import NO_PORTION
from patternlake.udfs.digits import number_of
from patternlake.udfs.errors import PatternLakeError
from patternlake.udfs.exact_parts import PART_TYPE, rows_of
from patternlake.udfs.trends.asking import QUESTION_TYPE, ask, asked
from patternlake.udfs.trends.parts import COUNTS_TYPE, TREND_ROW, count_part, list_part
from patternlake.udfs.trends.sharing import Cell, shares

SHARES_TYPE = pa.list_(
    pa.struct(
        [
            ("portion", pa.int32()),
            ("low", pa.int64()),
            ("high", pa.int64()),
            ("truncated", pa.bool_()),
            ("error", pa.string()),
        ]
    )
)
"""The shares, or one of `NO_PORTION` that says why there are none."""


def register(spark: SparkSession) -> None:
    """Register the functions in a session; they are not for analysts and may change."""
    made = {
        "_patternlake_trends_question": arrow_udf(_question, from_arrow_type(QUESTION_TYPE)),
        "_patternlake_trends_count": arrow_udf(_count, from_arrow_type(COUNTS_TYPE)),
        # Spark evaluates what LATERAL inline() takes twice, unless it may differ.
        "_patternlake_trends_shares": arrow_udf(_shares, from_arrow_type(SHARES_TYPE)).asNondeterministic(),
        "_patternlake_trends_list": arrow_udf(_list, from_arrow_type(PART_TYPE)),
        "_patternlake_trends_rows": arrow_udf(_trend_rows, from_arrow_type(pa.list_(TREND_ROW))).asNondeterministic(),
    }
    register_functions(spark, made)


def _question(arguments: pa.Array, publication: pa.Array, known: pa.Array) -> pa.Array:
    rows = zip(arguments.to_pylist(), publication.to_pylist(), known.to_pylist(), strict=True)
    return pa.array([ask(*row) for row in rows], QUESTION_TYPE)


def _count(
    text: pa.Array,
    block: pa.Array,
    pane: pa.Array,
    part: pa.Array,
    position: pa.Array,
    time: pa.Array,
    term: pa.Array,
    left: pa.Array,
    right: pa.Array,
    along: pa.Array,
    carried: pa.Array,
) -> pa.StructScalar:
    question, rows = told_apart(text, _rows(block, pane, part, position, time, term, left, right, along, carried))
    return count_part(asked(question), rows)


def _list(
    text: pa.Array,
    low: pa.Array,
    high: pa.Array,
    block: pa.Array,
    pane: pa.Array,
    part: pa.Array,
    position: pa.Array,
    time: pa.Array,
    term: pa.Array,
    left: pa.Array,
    right: pa.Array,
    along: pa.Array,
    carried: pa.Array,
) -> pa.StructScalar:
    if not low[0].is_valid:  # the one share that says why there are none
        return pa.scalar({"total": 0, "chunks": []}, PART_TYPE)
    question, rows = told_apart(text, _rows(block, pane, part, position, time, term, left, right, along, carried))
    return list_part(asked(question), rows, low[0].as_py(), high[0].as_py())


def _trend_rows(chunks: pa.Array) -> pa.Array:
    return rows_of(chunks.to_pylist(), TREND_ROW)


def _rows(*columns: pa.Array) -> dict[str, pa.Array]:
    names = ("block", "pane", "part", "position", "time", "term", "left", "right", "along", "carried")
    return dict(zip(names, columns, strict=True))


def _shares(text: pa.Array, counted: pa.Array, allowed: pa.Array) -> pa.Array:
    rows = zip(text.to_pylist(), counted.to_pylist(), allowed.to_pylist(), strict=True)
    return pa.array([_dealt_out(*row) for row in rows], SHARES_TYPE)


def _dealt_out(
    text: str | None, counted: list[dict[str, Any]] | None, allowed: list[int] | None
) -> list[dict[str, Any]]:
    """The shares of one question; none where the question itself was refused."""
    if text is None:
        return []
    question, portions = asked(text), counted or []
    refused = [portion["error"] for portion in portions if portion["error"] is not None]
    if refused:
        return [{"portion": NO_PORTION, "error": refused[0]}]
    cells = [
        Cell(portion["portion"], row["key"], row["window"], number_of(row["trends"]))
        for portion in portions
        for row in portion["cells"]
    ]
    windows = None if allowed is None else set(allowed)
    try:
        found, truncated = shares(cells, question.max_trends, truncate=question.truncate, allowed=windows)
    except PatternLakeError as error:
        return [{"portion": NO_PORTION, "error": str(error)}]
    return [{"portion": share.part, "low": share.low, "high": share.high, "truncated": truncated} for share in found]

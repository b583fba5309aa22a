"""The sketch's kernels as Arrow functions of a session; the bodies of `match_seq` and `match_exists` call them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_type

from patternlake.sql_ext.arrow_functions import arrow_udf, register_functions
from patternlake.sql_ext.portions import told_apart
from patternlake.udfs.exact_parts import PART_TYPE, rows_of
from patternlake.udfs.sketch.answering import (
    ANSWER_TYPE,
    CANDIDATES_TYPE,
    EXISTS_TYPE,
    ROW_TYPE,
    answer,
    candidates,
    exists,
    refusal,
)
from patternlake.udfs.sketch.asking import QUESTION_TYPE, ask
from patternlake.udfs.sketch.descent import TOP_TYPE, node_hits, top_hits
from patternlake.udfs.sketch.gathering import HITS_TYPE
from patternlake.udfs.sketch.question import Question, compile_question
from patternlake.udfs.sketch.verifying import exact_part


def register(spark: SparkSession) -> None:
    """Register the functions in a session; they are not for analysts and may change."""
    made = {
        "_patternlake_sketch_question": arrow_udf(_question, from_arrow_type(QUESTION_TYPE)),
        "_patternlake_sketch_top": arrow_udf(_top, from_arrow_type(TOP_TYPE)),
        "_patternlake_sketch_nodes": arrow_udf(_nodes, from_arrow_type(HITS_TYPE)),
        "_patternlake_sketch_candidates": arrow_udf(_candidates, from_arrow_type(CANDIDATES_TYPE)),
        "_patternlake_sketch_exact": arrow_udf(_exact, from_arrow_type(PART_TYPE)),
        "_patternlake_sketch_refusal": arrow_udf(_refusal, "string"),
        # Spark evaluates what LATERAL inline() takes twice, unless it may differ.
        "_patternlake_sketch_answer": arrow_udf(_answer, from_arrow_type(ANSWER_TYPE)).asNondeterministic(),
        "_patternlake_sketch_rows": arrow_udf(_rows, from_arrow_type(pa.list_(ROW_TYPE))).asNondeterministic(),
        "_patternlake_sketch_exists": arrow_udf(_exists, from_arrow_type(EXISTS_TYPE)),
    }
    register_functions(spark, made)


def _question(arguments: pa.Array, sketch: pa.Array, known: pa.Array) -> pa.Array:
    rows = zip(arguments.to_pylist(), sketch.to_pylist(), known.to_pylist(), strict=True)
    return pa.array([ask(*row) for row in rows], QUESTION_TYPE)


def _top(text: pa.Array, rows: pa.Array) -> pa.Array:
    return _by_text(text, lambda question, at: top_hits(question, at(rows)), TOP_TYPE)


def _nodes(text: pa.Array, segments: pa.Array, rows: pa.Array, keys: pa.Array) -> pa.Array:
    return _by_text(
        text, lambda question, at: node_hits(question, at(segments).to_numpy(), at(rows), at(keys)), HITS_TYPE
    )


def _candidates(text: pa.Array, hits: pa.Array) -> pa.Array:
    made = [candidates(question, hits.slice(row, 1)) for row, question in enumerate(text.to_pylist())]
    return pa.array(made, CANDIDATES_TYPE)


def _exact(
    text: pa.Array,
    position: pa.Array,
    time: pa.Array,
    step: pa.Array,
    key: pa.Array,
    name: pa.Array,
    probability: pa.Array,
    tokens: pa.Array,
    attributes: pa.Array,
) -> pa.StructScalar:
    columns = {
        "position": position,
        "time": time,
        "step": step,
        "key": key,
        "name": name,
        "probability": probability,
        "tokens": tokens,
        "attributes": attributes,
    }
    question, events = told_apart(text, columns)
    return exact_part(compile_question(question), events)


def _refusal(text: pa.Array, total: pa.Array) -> pa.Array:
    told = [refusal(*row) for row in zip(text.to_pylist(), total.to_pylist(), strict=True)]
    return pa.array(told, pa.string())


def _answer(text: pa.Array, error: pa.Array, hits: pa.Array) -> pa.Array:
    made = [
        answer(question, told, hits.slice(row, 1))
        for row, (question, told) in enumerate(zip(text.to_pylist(), error.to_pylist(), strict=True))
    ]
    return pa.concat_arrays(made)


def _rows(chunks: pa.Array) -> pa.Array:
    return rows_of(chunks.to_pylist(), ROW_TYPE)


def _exists(text: pa.Array, error: pa.Array, hits: pa.Array) -> pa.Array:
    made = [
        exists(question, told, hits.slice(row, 1))
        for row, (question, told) in enumerate(zip(text.to_pylist(), error.to_pylist(), strict=True))
    ]
    return pa.array(made, EXISTS_TYPE)


def _by_text(
    text: pa.Array, function: Callable[[Question, Callable[[pa.Array], pa.Array]], pa.Array], kind: pa.DataType
) -> pa.Array:
    """Apply a function to the rows of each question; NULL where there is no question."""
    texts = text.dictionary_encode()
    codes = texts.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    parts, rows = [], []
    for code, question in enumerate(texts.dictionary.to_pylist()):
        mine = (codes == code).nonzero()[0]
        parts.append(function(compile_question(question), lambda array, mine=mine: array.take(pa.array(mine))))  # type: ignore[misc]
        rows.append(mine)
    none = (codes < 0).nonzero()[0]
    parts.append(pa.nulls(len(none), kind))
    rows.append(none)
    return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(rows))))

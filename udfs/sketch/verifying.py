"""One part of an exact answer: the events of some keys, or of the whole stream, matched one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from patternlake.udfs.language.columns import Column, typed_column
from patternlake.udfs.sketch.answering import encoded
from patternlake.udfs.sketch.exact import Events, match_events, presence
from patternlake.udfs.sketch.question import Question


def exact_part(
    question: Question,
    position: pa.Array,
    time: pa.Array,
    key: pa.Array,
    name: pa.Array,
    tokens: pa.Array,
    attributes: pa.Array,
) -> bytes:
    """Match the events of one part.

    Parameters
    ----------
    question
        The question.
    position, time, key, name, tokens, attributes
        Columns of `events`, n rows in any order.

    Returns
    -------
    What `answering.encoded` makes of the matches.
    """
    keys: list[str | None] = [question.key]
    positions = position.to_numpy(zero_copy_only=False).astype(np.int64)
    offsets: NDArray[np.int64] | None = None
    if question.every_key:
        dictionary = key.dictionary_encode()
        codes = dictionary.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        known = dictionary.dictionary.to_pylist()
        keys = [None, *known] if (codes < 0).any() else known
        codes = codes + 1 if (codes < 0).any() else codes
        order = np.lexsort((positions, codes))
        offsets = np.searchsorted(codes[order], np.arange(len(keys) + 1))
    else:
        order = np.argsort(positions)
        offsets = np.array([0, len(order)], np.int64) if question.one_key else None
    taken = pa.array(order)
    time, key, name, tokens, attributes = (column.take(taken) for column in (time, key, name, tokens, attributes))
    events = Events(
        positions=positions[order],
        times=pc.cast(time, pa.int64()).to_numpy(zero_copy_only=False),
        present=presence(question.pattern.names, _token_columns(question, name, tokens)),
        columns=_columns(question, key, name, attributes),
        offsets=offsets,
    )
    matches = match_events(
        question.pattern,
        events,
        policy=question.policy,
        after_match=question.after_match,
        max_matches=question.max_matches,
        truncate=question.truncate,
        window=question.window,
    )
    return encoded(question, matches, keys)


def _token_columns(question: Question, name: pa.Array, tokens: pa.Array) -> list[NDArray[np.object_]]:
    if tokens.null_count == len(tokens):
        return [_objects(name)]
    flat = _objects(pc.list_flatten(tokens)).reshape(len(tokens), -1)
    return [flat[:, column] for column in range(question.expressions)]


def _objects(values: pa.Array) -> NDArray[np.object_]:
    return np.asarray(values.to_numpy(zero_copy_only=False), object)


def _columns(question: Question, key: pa.Array, name: pa.Array, attributes: pa.Array) -> dict[str, Column]:
    """Columns that DEFINE and WHERE of the question refer to."""
    wanted = {
        reference.column
        for predicate in [
            *question.pattern.define.values(),
            *([question.pattern.where] if question.pattern.where else []),
        ]
        for reference in predicate.references
    }
    columns: dict[str, Column] = {}
    for column, values in (("key", key), ("name", name)):
        if column in wanted:
            columns[column] = typed_column(values, "string")
    if wanted & question.types.keys():
        # Every event of a stream has the same attributes in the same order, so the map's items are a matrix.
        first = [item[0] for item in attributes[0].as_py()] if len(attributes) else []
        items = attributes.items if len(attributes) == 0 else pc.list_flatten(attributes.cast(pa.list_(_ITEM)))
        texts = items.field("value") if len(attributes) else pa.array([], pa.string())
        for column in wanted & question.types.keys():
            place = first.index(column) if column in first else None
            rows = pa.array(np.arange(len(attributes)) * len(first) + place) if place is not None else None
            values = texts.take(rows) if rows is not None else pa.nulls(len(attributes), pa.string())
            columns[column] = typed_column(values, question.types[column])
    return columns


_ITEM = pa.struct([("key", pa.string()), ("value", pa.string())])

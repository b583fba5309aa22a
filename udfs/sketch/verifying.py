"""One part of an exact answer: the events of some keys, or of the whole stream, matched one by one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from patternlake.udfs.errors import PatternLakeError
from patternlake.udfs.exact_parts import refused
from patternlake.udfs.language.event_columns import event_columns
from patternlake.udfs.sketch.answering import exact
from patternlake.udfs.sketch.exact import Events, match_events, presence
from patternlake.udfs.sketch.question import Question


def exact_part(question: Question, columns: Mapping[str, pa.Array]) -> pa.StructScalar:
    """Match the events of one part.

    Parameters
    ----------
    question
        The question.
    columns
        ``position``, ``time``, ``step``, ``key``, ``name``, ``probability``, ``tokens`` and ``attributes`` of
        `events`, n rows in any order; ``tokens`` is never NULL, but the name in a list where `events` has none.

    Returns
    -------
    What `answering.exact` makes of the matches, or `exact_parts.refused` of the error.
    """
    keys: list[str | None] = [question.key]
    positions = columns["position"].to_numpy(zero_copy_only=False).astype(np.int64)
    offsets: NDArray[np.int64] | None = None
    if question.every_key:
        codes, keys = _ranked(columns["key"])
        order = np.lexsort((positions, codes))
        offsets = np.searchsorted(codes[order], np.arange(len(keys) + 1))
    else:
        order = np.argsort(positions)
        offsets = np.array([0, len(order)], np.int64) if question.one_key else None
    taken = pa.array(order)
    rows = {name: column.take(taken) for name, column in columns.items()}
    try:
        events = Events(
            positions=positions[order],
            times=pc.cast(rows["time"], pa.int64()).to_numpy(zero_copy_only=False),
            present=presence(question.pattern.names, _token_columns(question, rows["tokens"])),
            columns=event_columns(rows, question.pattern.columns, question.types),
            offsets=offsets,
        )
        matches = match_events(
            question.pattern,
            events,
            policy=question.policy,
            after_match=question.after_match,
            max_matches=question.max_matches,
            # Only all parts together tell whether there are too many.
            truncate=True,
            window=question.window,
        )
    except PatternLakeError as failed:
        return refused(str(failed))
    return exact(question, matches, keys)


def _ranked(key: pa.Array) -> tuple[NDArray[np.int64], list[str | None]]:
    """int64[n] number of each event's key, and the keys in order, NULL first."""
    dictionary = key.dictionary_encode()
    codes = dictionary.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    known = dictionary.dictionary.to_pylist()
    order = sorted(range(len(known)), key=known.__getitem__)
    rank = np.empty(len(known) + 1, np.int64)
    nameless = bool((codes < 0).any())
    rank[order] = np.arange(len(known)) + nameless
    rank[-1] = 0
    return rank[codes], [*([None] if nameless else []), *(known[place] for place in order)]


def _token_columns(question: Question, tokens: pa.Array) -> list[NDArray[np.object_]]:
    flat = _objects(pc.list_flatten(tokens)).reshape(len(tokens), question.expressions)
    return [flat[:, column] for column in range(question.expressions)]


def _objects(values: pa.Array) -> NDArray[np.object_]:
    return np.asarray(values.to_numpy(zero_copy_only=False), object)

"""The last steps of a function over the sketch: hits and events become rows of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from patternlake.udfs.blocks import BLOCK_BITS, block_of
from patternlake.udfs.errors import PatternLakeError
from patternlake.udfs.exact_parts import chunks, part
from patternlake.udfs.sketch.candidates import candidate_ranges, needs_every_event
from patternlake.udfs.sketch.gathering import gathered
from patternlake.udfs.sketch.hits import Hits, Matches, too_many
from patternlake.udfs.sketch.matching import match_nodes_by_key
from patternlake.udfs.sketch.question import Question, compile_question

STEP_TYPE = pa.struct([("operand", pa.string()), ("from_position", pa.int64()), ("to_position", pa.int64())])
ROW_TYPE = pa.struct(
    [
        ("match_no", pa.int64()),
        ("key", pa.string()),
        ("first_position", pa.int64()),
        ("last_position", pa.int64()),
        ("first_time", pa.timestamp("us", "UTC")),
        ("last_time", pa.timestamp("us", "UTC")),
        ("steps", pa.list_(STEP_TYPE)),
        ("level", pa.int32()),
        ("exact", pa.bool_()),
        ("fp_bound", pa.float64()),
        ("truncated", pa.bool_()),
    ]
)
ANSWER_TYPE = pa.struct([("error", pa.string()), ("chunks", pa.list_(pa.binary()))])
"""Why there is no answer, or its rows in chunks (`exact_parts`)."""
CANDIDATES_TYPE = pa.struct(
    [
        ("any_name", pa.bool_()),
        ("names", pa.list_(pa.string())),
        ("blocks", pa.list_(pa.int32())),
    ]
)
EXISTS_TYPE = pa.struct([("error", pa.string()), ("found", pa.bool_())])

_FAR = 1 << 61
"""Microseconds from the epoch that no event is away; differences of two such still fit."""


def answer(text: str | None, error: str | None, hits: pa.ListArray) -> pa.Array:
    """One approximate answer: an array of one `ANSWER_TYPE`.

    Parameters
    ----------
    text, error
        The question, or why there is none.
    hits
        List array of one list of `gathering.HITS_TYPE`.
    """
    if text is None or error is not None:
        return _failure(error or "there is no question to answer")
    question = compile_question(text)
    try:
        found, offsets, keys = gathered(question, hits)
        matches = _matches(question, found, offsets, limit=question.max_matches)
    except PatternLakeError as failed:
        return _failure(str(failed))
    return pa.array([{"error": None, "chunks": chunks(_rows(question, matches, keys))}], ANSWER_TYPE)


def exact(question: Question, matches: Matches, keys: Sequence[str | None]) -> pa.StructScalar:
    """Part of an exact answer, a `exact_parts.PART_TYPE`: the matches of some keys, or all of them.

    Parameters
    ----------
    question
        The question.
    matches
        The first `Question.max_matches` of them at most.
    keys
        The keys that `Matches.key` counts.
    """
    told = None if question.every_key else _too_many(question, matches.total)
    return part(told, matches.total, _rows(question, matches, keys))


def refusal(text: str | None, total: int | None) -> str | None:
    """Why an exact answer of all parts is refused, if it is: more matches in all than the question allows."""
    return None if text is None or total is None else _too_many(compile_question(text), total)


def _too_many(question: Question, total: int) -> str | None:
    if total <= question.max_matches or question.truncate:
        return None
    # Under skip_till_any and WHERE a part counts only one beyond the limit.
    counted = question.pattern.where is None or question.policy != "skip_till_any"
    return str(too_many(total, question.max_matches, complete=counted))


def candidates(text: str | None, hits: pa.ListArray) -> dict[str, Any]:
    """What an exact answer has to read back; nothing without a question.

    Reading more than that does not change the answer (see `candidates.candidate_ranges`).

    Returns
    -------
    ``blocks`` of positions; ``names`` that an event must have one of, unless ``any_name``.
    """
    if text is None:
        return {"any_name": False, "names": [], "blocks": []}
    question = compile_question(text)
    names, last = list(question.pattern.names), block_of(question.events)
    whole = {"names": names, "blocks": list(range(last + 1))}
    if question.every_key:
        every = needs_every_event(question.pattern, question.policy, partitioned=True)
        return whole | {"any_name": every}
    found, offsets, _ = gathered(question, hits)
    found, _ = _with_dropped(question, found, offsets)
    wanted = candidate_ranges(
        question.pattern, found, policy=question.policy, partitioned=question.one_key, window=question.window
    )
    if wanted.ranges is None:
        return whole | {"any_name": wanted.every_event}
    return {"any_name": wanted.every_event, "names": names, "blocks": _touched(wanted.ranges)}


def exists(text: str | None, error: str | None, hits: pa.ListArray) -> dict[str, Any]:
    """Whether the pattern occurs: ``found`` is None where only aged, coarse or dropped ranges could hold it."""
    if text is None or error is not None:
        return {"error": error or "there is no question to answer"}
    question = compile_question(text)
    try:
        found, offsets, _ = gathered(question, hits)
        if len(_matches(question, found, offsets, limit=1)):
            return {"found": True}
        if not question.floors:
            return {"found": False}
        split, offsets = _split(*_with_dropped(question, found, offsets), len(question.pattern.slots))
        return {"found": None if len(_matches(question, split, offsets, limit=1)) else False}
    except PatternLakeError as failed:
        return {"error": str(failed)}


def _matches(question: Question, hits: Hits, offsets: NDArray[np.int64], limit: int) -> Matches:
    return match_nodes_by_key(
        question.pattern,
        hits,
        offsets,
        policy=question.policy,
        after_match=question.after_match,
        max_matches=limit,
        truncate=question.truncate or limit == 1,
    )


def _rows(question: Question, matches: Matches, keys: Sequence[str | None]) -> pa.StructArray:
    count, steps = matches.operand.shape
    labels = pa.array(question.pattern.labels, pa.string())
    step = pa.StructArray.from_arrays(
        [
            labels.take(pa.array(matches.operand.ravel())),
            pa.array(matches.step_lo.ravel()),
            pa.array(matches.step_hi.ravel()),
        ],
        fields=list(STEP_TYPE),
    )
    step_lists = pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32) * np.int32(steps)), step)
    shown = list(keys) if question.every_key else [question.key]
    key = pa.array(shown, pa.string()).take(pa.array(matches.key)) if count else pa.array([], pa.string())
    columns = [
        pa.array(np.arange(1, count + 1)),
        key,
        pa.array(matches.first_position),
        pa.array(matches.last_position),
        pa.array(matches.first_time).cast(ROW_TYPE.field("first_time").type),
        pa.array(matches.last_time).cast(ROW_TYPE.field("last_time").type),
        step_lists,
        pa.array(matches.level.astype(np.int32)),
        pa.array(np.full(count, question.verify)),
        pa.array(matches.fp_bound),
        pa.array(np.full(count, matches.truncated or (not question.verify and question.dropped is not None))),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(ROW_TYPE))


def _failure(message: str) -> pa.Array:
    return pa.array([{"error": message, "chunks": None}], ANSWER_TYPE)


def _touched(ranges: NDArray[np.int64]) -> list[int]:
    """The blocks that ranges of positions touch, ascending."""
    first, last = (ranges - 1).T >> BLOCK_BITS
    return sorted({block for low, high in zip(first, last, strict=True) for block in range(low, high + 1)})


def _with_dropped(question: Question, hits: Hits, offsets: NDArray[np.int64]) -> tuple[Hits, NDArray[np.int64]]:
    """The hits of each key, and before them one coarse node for what is dropped: it may have held anything at any time.

    Where every key is asked for, one more key has that node alone: a key that nothing else is known of.
    """
    if question.dropped is None:
        return hits, offsets
    low, high = question.dropped
    node = replace(
        hits,
        pos_lo=np.array([low]),
        pos_hi=np.array([high]),
        time_lo=np.array([-_FAR]),
        time_hi=np.array([_FAR]),
        level=np.ones(1, hits.level.dtype),
        present=np.ones((1, hits.present.shape[1]), np.bool_),
        fp=np.ones((1, hits.fp.shape[1])),
    )
    names = [field.name for field in fields(Hits)]
    both = Hits(**{name: np.concatenate([getattr(node, name), getattr(hits, name)]) for name in names})
    rows = np.insert(np.arange(1, len(hits) + 1), offsets[:-1], 0)
    offsets = offsets + np.arange(len(offsets))
    if question.every_key:
        rows, offsets = np.append(rows, 0), np.append(offsets, len(rows) + 1)
    return both.take(rows), offsets


def _split(hits: Hits, offsets: NDArray[np.int64], pieces: int) -> tuple[Hits, NDArray[np.int64]]:
    """Coarse nodes cut into so many that each could serve another operand: what finer nodes, if kept, could show."""
    copies = np.where(hits.level > 0, np.minimum(pieces, hits.pos_hi - hits.pos_lo + 1), 1)
    row = np.repeat(np.arange(len(hits)), copies)
    number = np.arange(len(row)) - np.repeat(np.cumsum(copies) - copies, copies)
    taken, share = hits.take(row), copies[row]
    width = taken.pos_hi - taken.pos_lo + 1
    split = replace(
        taken,
        pos_lo=taken.pos_lo + number * width // share,
        pos_hi=taken.pos_lo + (number + 1) * width // share - 1,
    )
    return split, np.concatenate([[0], np.cumsum(copies)])[offsets]

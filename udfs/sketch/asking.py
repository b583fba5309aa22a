"""The first step of a function over the sketch: from arguments and a publication to a checked question, or an error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from patternlake.udfs.asking import check_moment
from patternlake.udfs.errors import PatternLakeError
from patternlake.udfs.sketch.question import compile_question, question_text
from patternlake.udfs.sketch.segments import part_segments

QUESTION_TYPE = pa.struct(
    [
        ("error", pa.string()),
        ("text", pa.string()),
        ("number", pa.int32()),
        ("batch", pa.int64()),
        ("base", pa.int64()),
        ("ingest_batch", pa.int64()),
        ("ingest_base", pa.int64()),
        ("tiers", pa.list_(pa.string())),
        ("part_segments", pa.int64()),
        ("by_key", pa.bool_()),
        ("conditional", pa.bool_()),
    ]
)
"""A question, or the error, and the stream's number, batches, tiers and sizes that choose what is read.

``by_key``: each key is asked for itself; ``conditional``: DEFINE or WHERE judge the events' columns.
"""


def ask(arguments: Mapping[str, Any], publication: Mapping[str, Any], known: list[str]) -> dict[str, Any]:
    """Check a call, and say what is to be read for it.

    Parameters
    ----------
    arguments
        The SQL function's arguments by name; times in microseconds since the epoch.
    publication
        ``at``: the sketch's publication at `as_of`, or None; ``newest``: the latest one; ``first`` and ``horizon``:
        when the sketch was first published and the earliest moment that can be asked, microseconds, or None.
    known
        Streams that have a sketch.

    Returns
    -------
    The fields of `QUESTION_TYPE`.
    """
    try:
        at = publication["at"]
        what = f"the sketch of {arguments['stream']!r}"
        check_moment(what, arguments.get("as_of"), publication)
        text = question_text(arguments, at and {**at, "floors": _floors(publication)}, known)
        question = compile_question(text)
    except PatternLakeError as error:
        return {"error": str(error)}
    source, state = json.loads(at["source"]), json.loads(at["state"])
    sizing = state["plans"][0]["sizing"]
    return {
        "text": text,
        "batch": at["batch_id"],
        "number": at["object_id"],
        "base": at["base_batch"],
        "ingest_batch": source["ingest_batch"],
        "ingest_base": source["ingest_base"],
        "tiers": question.tiers(),
        "part_segments": part_segments(sizing["leaf_events"] * sizing["fanout"] ** (question.height - 1)),
        "by_key": question.every_key,
        "conditional": question.pattern.conditional,
    }


def _floors(publication: Mapping[str, Any]) -> list[Any]:
    """What ageing has removed by now: nodes that are gone are gone at every `as_of`."""
    at, newest = publication["at"], publication["newest"]
    state = newest["state"] if newest["base_batch"] == at["base_batch"] else at["state"]
    floors: list[Any] = json.loads(state).get("floors", [])
    return floors

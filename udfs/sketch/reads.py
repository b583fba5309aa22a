"""What is read for a call over the sketch: from arguments and a publication to a checked request, or an error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from patternlake.udfs.published import Published
from patternlake.udfs.requests import BatchRange
from patternlake.udfs.sketch.batch import part_segments
from patternlake.udfs.sketch.request import Compile, SketchRequest, SketchState, check_call, compile_own


@dataclass(frozen=True)
class SketchReads:
    """A checked call, and what is to be read for it.

    Attributes
    ----------
    request
        The call.
    nodes
        Where the sketch's rows are; its number is the stream's.
    events
        Where the events are that it knows.
    segments_together
        So many neighbouring segments share a bucket of the nodes below the tops.
    """

    request: SketchRequest
    nodes: BatchRange
    events: BatchRange
    segments_together: int


def check_request(
    arguments: Mapping[str, Any], publication: Published, known: Sequence[str], compile: Compile = compile_own
) -> SketchReads:
    """Check a call, and say what is to be read for it.

    Parameters
    ----------
    arguments
        The function's arguments by name; times in microseconds since the epoch.
    publication
        What `sketch` published of the stream.
    known
        Streams that have a sketch.
    compile
        As of `check_call`.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.
    """
    at, newest = publication.at, publication.newest_of_base
    publication.check_moment(f"the sketch of {arguments['stream']!r}", arguments.get("as_of"))
    if at is None or newest is None:
        check_call(arguments, None, known)
        raise AssertionError("without a sketch every call is refused")
    source, state = json.loads(at.source), json.loads(at.state)
    # Ageing takes nodes from all moments: what is gone of them stands in the latest batch that built on the same.
    gone = json.loads(newest.state).get("floors", [])
    request = check_call(arguments, SketchState(at.configuration, at.state, gone), known, compile)
    sizing = state["plans"][0]["sizing"]
    return SketchReads(
        request,
        at.rows,
        BatchRange(at.object_id, source["ingest_base"], source["ingest_batch"]),
        part_segments(sizing["leaf_events"] * sizing["fanout"] ** (request.height - 1)),
    )

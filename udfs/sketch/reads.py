"""What is read for a call over the sketch: from arguments and a publication to a checked request, or an error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from patternlake.udfs.arguments import check_moment
from patternlake.udfs.sketch.batch import part_segments
from patternlake.udfs.sketch.request import SketchRequest, parse_request, request_text


@dataclass(frozen=True)
class SketchReads:
    """A checked call, and what is to be read for it.

    Attributes
    ----------
    text
        Of the request, for `parse_request`.
    number
        Of the stream.
    base, batch
        Batches of the sketch's rows.
    ingest_base, ingest_batch
        Batches of the events that it knows.
    segments_together
        So many neighbouring segments share a bucket of the nodes below the tops.
    """

    text: str
    number: int
    base: int
    batch: int
    ingest_base: int
    ingest_batch: int
    segments_together: int

    @property
    def request(self) -> SketchRequest:
        """The checked and compiled request."""
        return parse_request(self.text)


def check_request(arguments: Mapping[str, Any], publication: Mapping[str, Any], known: list[str]) -> SketchReads:
    """Check a call, and say what is to be read for it.

    Parameters
    ----------
    arguments
        The function's arguments by name; times in microseconds since the epoch.
    publication
        ``at``: the sketch's publication at `as_of`, or None; ``newest``: the latest one; ``first`` and ``horizon``:
        when the sketch was first published and the earliest moment that can be asked, microseconds, or None.
    known
        Streams that have a sketch.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.
    """
    at = publication["at"]
    check_moment(f"the sketch of {arguments['stream']!r}", arguments.get("as_of"), publication)
    text = request_text(arguments, None if at is None else _sketch(at, publication["newest"]), known)
    source, state = json.loads(at["source"]), json.loads(at["state"])
    sizing = state["plans"][0]["sizing"]
    height = parse_request(text).height
    return SketchReads(
        text=text,
        number=at["object_id"],
        base=at["base_batch"],
        batch=at["batch_id"],
        ingest_base=source["ingest_base"],
        ingest_batch=source["ingest_batch"],
        segments_together=part_segments(sizing["leaf_events"] * sizing["fanout"] ** (height - 1)),
    )


def _sketch(at: Mapping[str, Any], newest: Mapping[str, Any]) -> dict[str, Any]:
    """What a request needs of a publication, and what ageing has removed by now: it is gone at any `as_of`."""
    state = newest["state"] if newest["base_batch"] == at["base_batch"] else at["state"]
    floors = json.loads(state).get("floors", [])
    return {"state": at["state"], "configuration": at["configuration"], "floors": floors}

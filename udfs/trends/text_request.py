"""The first step of `cet_count` and its like for a query that is given as a text: from arguments to a checked query.

The text stands for a configured query over what `ingest` has published of the stream: the same windows, watermark and
positions, so that the same rows come of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from patternlake.udfs.digits import show_number
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.pattern_names import names_taken
from patternlake.udfs.published import NameCount, Published, count_events, published_stream
from patternlake.udfs.requests import compile_once
from patternlake.udfs.trends.from_config import layout_of
from patternlake.udfs.trends.panes import Windows
from patternlake.udfs.trends.request import QueryState, TrendReads, reads_of
from patternlake.udfs.unseen_names import MOST_NAMES

MOST_EVENTS = 1_000_000
"""Events that a graph is built of for one call, unless a setting says otherwise."""

_BEGINNING = re.compile(r"\s*PATTERN\b\s*\S", re.IGNORECASE)


def is_text(query: str | None) -> bool:
    """Whether a query that is no name is meant as a text: one that begins with PATTERN."""
    return query is not None and _BEGINNING.match(query) is not None


def check_text(
    arguments: Mapping[str, Any],
    publication: Published,
    known: Sequence[str],
    counts: Sequence[NameCount],
    whole: bool,
) -> TrendReads:
    """Check a call, and say what is to be read for it.

    Parameters
    ----------
    arguments, whole
        As of `request.check_request`; ``query`` is a text.
    publication, known
        As of `published_stream`.
    counts
        Of the stream's names, `MOST_NAMES` at most.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.
    """
    if arguments.get("stream") is None:
        raise ArgumentError(
            "query is a text, and stream is NULL; give the name of the stream that it asks, stream => '…'"
        )
    at, stream = published_stream({**arguments, "pattern": arguments["query"]}, publication, known)
    configuration = {
        "query": arguments["query"],
        "params": dict(arguments.get("params") or {}),
        "stream_name": arguments["stream"],
        "stream": stream,
    }
    query = compile_once(layout_of, configuration).query
    windows, last = Windows.of(query), at.source_to
    # Of so many names, there may be others that are not counted; of a table none is.
    counted = counts if 0 < len(counts) < MOST_NAMES or not at.source_to else None
    names = names_taken((term.name, term.define) for term in query.terms)
    events = last if counted is None else count_events(counted, names)
    lowest: int | None = 0
    highest: int | None = 0
    if windows.counted:
        highest = max(last - 1, 0) // windows.pane
    elif windows.width:
        times = [end for row in counted or () for end in (row.first, row.last) if end is not None]
        lowest, highest = (min(times) // windows.pane, max(times) // windows.pane) if times else (None, None)
    state = QueryState(events * len(query.terms), lowest, highest)
    reads = reads_of(arguments, at, configuration, state, whole)
    return replace(reads, names=None if names is None else sorted(names), events=events)


def too_many_events(events: int, most: int, setting: str) -> ArgumentError:
    """The error for a text whose graph would be built of too many events."""
    return ArgumentError(
        f"the query is a text, so its graph is built for this call, of {show_number(events)} events, more than "
        f"{setting} = {most}; narrow the key or the times, raise the setting, or configure the query under `trends`, "
        "so that the job keeps its graph"
    )

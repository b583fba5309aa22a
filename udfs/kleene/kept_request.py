"""A call of `match_pattern` for a kept pattern: what was published of it, and what it asks of the events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from patternlake.udfs.arguments import given_or, unknown
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.kleene.from_config import arguments_of, pattern_of
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.state import Carried
from patternlake.udfs.published import Published, PublishedBatch

_OF_THE_CONFIGURATION = {
    "policy": "skip_till_any",
    "after_match": "next",
    "repetition": "maximal",
    "params": None,
}
"""Parameters that a kept pattern has in its configuration, with what stands for "not given"."""


def check_query(arguments: Mapping[str, Any], published: Mapping[str, Published]) -> PublishedBatch:
    """What was published of the pattern that a call names.

    Parameters
    ----------
    arguments
        The SQL function's arguments by name; times in microseconds since the epoch.
    published
        What `patterns` published, by kept pattern.

    Raises
    ------
    ArgumentError
        There is none of the name; or a stream, a pattern, or what the configuration says is given as well.
    """
    name = arguments["query"]
    for other in ("pattern", "stream"):
        if arguments.get(other) is not None:
            raise ArgumentError(
                f"query => {name!r} names a kept pattern, which has its own {other}; leave out {other} => "
                f"{arguments[other]!r}, or ask for a text without query"
            )
    known = [each for each, one in published.items() if one.at is not None]
    if name in published:
        published[name].check_moment(f"the pattern {name!r}", arguments.get("as_of"))
    at = published[name].at if name in published else None
    if at is None:
        raise unknown("kept pattern", name, "kept patterns", known, "configure one under `patterns` and run `patterns`")
    configuration = arguments_of(json.loads(at.configuration))
    for other, default in _OF_THE_CONFIGURATION.items():
        asked = given_or(arguments, other, default)
        if asked != default and asked != configuration[other]:
            raise ArgumentError(
                f"{other} => {asked!r}: the kept pattern {name!r} has {configuration[other]!r}; leave it out, or ask "
                "for the text of another pattern"
            )
    return at


def whole_call(arguments: Mapping[str, Any], at: PublishedBatch) -> dict[str, Any]:
    """The arguments of the call that asks for the text of a kept pattern, given what was published of it."""
    return {**arguments, **arguments_of(json.loads(at.configuration)), "query": None}


def pattern_at(at: PublishedBatch) -> KleenePattern:
    """The pattern that was published."""
    return pattern_of(json.loads(at.configuration))


def carried_at(at: PublishedBatch) -> Carried:
    """What a publication has left to go on from."""
    assert at.watermark is not None
    return Carried.of(json.loads(at.state), at.watermark, at.source_to)


def ingested_at(at: PublishedBatch) -> int:
    """The batch of `ingest` up to which the pattern's job has read."""
    return int(json.loads(at.source)["ingest_batch"])


def answers(
    arguments: Mapping[str, Any],
    at: PublishedBatch,
    pattern: KleenePattern,
    stream: PublishedBatch,
    earliest: int | None,
) -> bool:
    """Whether what is kept answers a call; else the events do, from the first on.

    Bounds of time, and a key without PARTITION BY, choose events before they are matched, so that the matches are
    others, and near misses are not kept. Nor does it where the stream was built anew since, had no events, or has taken
    events that come before what was final.

    Parameters
    ----------
    arguments, at, pattern
        The call, what was published of the pattern, and the pattern.
    stream
        What `ingest` published of its stream at the same moment.
    earliest
        Time of the earliest event that the stream has taken since; None: there is none.
    """
    bounded = any(arguments.get(name) is not None for name in ("from_time", "to_time"))
    apart = arguments.get("key") is not None and not pattern.partition
    same = json.loads(at.source)["ingest_base"] == stream.base_batch
    in_order = at.watermark is not None and (earliest is None or earliest >= at.watermark)
    return same and in_order and not bounded and not apart and not arguments.get("partial")

"""The first step of `match_groups`: from arguments and a publication to a checked request, or an error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from patternlake.udfs.arguments import check_bounds, check_key, given, stream_configuration
from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.groups.from_config import query_of, same_query, types_of, unfit
from patternlake.udfs.groups.kernels.groups import Groups

TASK_EVENTS = 50_000
"""Events that one portion has, about; the events of a key are never divided."""
MOST_PORTIONS = 1000
DEFAULT_BEST = 3
"""Matches of a group that `group_members` gives, unless told."""


@dataclass(frozen=True)
class GroupsRequest:
    """What the portions of an answer need to know.

    Attributes
    ----------
    groups
        The engine for the query; it holds the compiled pattern.
    types
        Spark type of each of the stream's attributes.
    from_step, to_step
        Bounds of t_end, or None.
    best
        Of `group_members`: how many matches of a group.
    """

    groups: Groups
    types: Mapping[str, str]
    from_step: int | None
    to_step: int | None
    best: int = 1

    def wanted(self, t_end: IntArray) -> BoolArray:
        """Which groups, by their last step, are asked for: bool[g]."""
        found = np.ones(len(t_end), np.bool_)
        if self.from_step is not None:
            found &= t_end >= self.from_step
        if self.to_step is not None:
            found &= t_end <= self.to_step
        return found


def check_request(
    arguments: Mapping[str, Any],
    publication: Mapping[str, Any],
    known: list[str],
    counts: Sequence[Mapping[str, Any]],
    configured: Sequence[Mapping[str, Any]],
    *,
    kept: bool = True,
) -> dict[str, Any]:
    """Check a call, and say what is to be read for it.

    Parameters
    ----------
    arguments
        The SQL function's arguments by name; times in microseconds since the epoch.
    publication
        ``at``: what `ingest` published of the stream at `as_of`, or None; ``first``, ``horizon``: microseconds or None.
    known
        Names of all streams.
    counts
        ``name`` and ``events`` of the stream's names.
    configured
        ``object``, ``object_id``, ``batch_id``, ``base_batch``, ``source`` and ``configuration`` (JSON texts) of what
        `groups` published at `as_of` for queries over the stream.
    kept
        Whether what the job keeps may be the answer.

    Returns
    -------
    ``query``, ``query_base`` and ``query_batch``: the query and batches whose rows of `group_matches` are the answer;
    or ``text`` (for `asked`), ``base`` and ``batch`` (the batches of events), ``partition`` (columns that tell
    partitions apart) and ``portions`` (into how many the work is dealt).

    Raises
    ------
    PatternLakeError
        What is wrong with the call.
    """
    configuration = stream_configuration(arguments, publication, known)
    check_bounds(arguments, ("from_step", "to_step"))
    wrong = unfit(arguments["stream"], configuration)
    if wrong is not None:
        raise ArgumentError(wrong)
    same = same_query(arguments, configured)
    params = {} if same is None else json.loads(same["configuration"])["params"]
    whole = {**arguments, "params": params}
    text = json.dumps({"arguments": whole, "configuration": configuration}, sort_keys=True)
    query = parse_request(text).groups.query
    check_key(arguments, configuration, partitioned=bool(query.partition))
    # The automaton may be too large: refused before anything is read.
    _ = parse_request(text).groups.automaton
    if kept and same is not None and _up_to_date(same, publication["at"]):
        return {
            "number": publication["at"]["object_id"],
            "query": same["object"],
            "query_number": same["object_id"],
            "query_base": same["base_batch"],
            "query_batch": same["batch_id"],
        }
    events = sum(int(row["events"]) for row in counts)
    return {
        "text": text,
        "number": publication["at"]["object_id"],
        "base": publication["at"]["base_batch"],
        "batch": publication["at"]["batch_id"],
        "partition": list(query.partition) or ["key"],
        "portions": max(1, min(MOST_PORTIONS, -(-events // TASK_EVENTS))),
    }


@lru_cache(maxsize=64)
def parse_request(text: str) -> GroupsRequest:
    """What the text of a request says."""
    parts = json.loads(text)
    arguments, configuration = parts["arguments"], parts["configuration"]
    query = query_of({**arguments, "stream": configuration})
    bounds = (arguments.get("from_step"), arguments.get("to_step"))
    return GroupsRequest(Groups(query), types_of(configuration), *bounds, given(arguments, "best", DEFAULT_BEST))


def _up_to_date(query: Mapping[str, Any], stream: Mapping[str, Any]) -> bool:
    """Whether a query's publication is of all events that a stream's publication shows."""
    source = json.loads(query["source"])
    return (source["ingest_base"], source["ingest_batch"]) == (stream["base_batch"], stream["batch_id"])

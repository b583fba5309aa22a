"""The first step of `match_groups`: from arguments and a publication to a checked request, or an error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from patternlake.udfs.arguments import check_bounds, check_key, given_or
from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.attributes import types_of_attributes
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.groups.events import GroupEvents
from patternlake.udfs.groups.from_config import batches_read, query_of, same_queries, unfit
from patternlake.udfs.groups.kernels.groups import GroupRows, Groups
from patternlake.udfs.partitions import count_portions
from patternlake.udfs.pattern_names import names_asked
from patternlake.udfs.published import NameCount, Published, PublishedBatch, count_events, published_stream
from patternlake.udfs.requests import BatchRange, compile_once

TASK_EVENTS = 50_000
"""Events that one portion has, about; the events of a key are never divided."""
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
    in_order
        Whether steps arrive in order in the query's partitions, as they do within a key of the stream.
    """

    groups: Groups
    types: Mapping[str, str]
    from_step: int | None
    to_step: int | None
    best: int = 1
    in_order: bool = True

    def answer(self, keys: IntArray, events: GroupEvents) -> GroupRows:
        """The groups of events; none is final where a step before those known may still come."""
        found = self.groups.answer(keys, events.steps, events.classes, events.probabilities)
        return found if self.in_order else replace(found, final=np.zeros(len(found), np.bool_))

    def wanted(self, t_end: IntArray) -> BoolArray:
        """Which groups, by their last step, are asked for: bool[g]."""
        found = np.ones(len(t_end), np.bool_)
        if self.from_step is not None:
            found &= t_end >= self.from_step
        if self.to_step is not None:
            found &= t_end <= self.to_step
        return found


@dataclass(frozen=True)
class GroupsReads:
    """A checked call, and what is to be read for it.

    Attributes
    ----------
    request
        What the portions need to know.
    events
        Where the stream's events are.
    partition
        Columns that tell partitions apart.
    portions
        Into how many the work is dealt.
    kept
        Where the query's rows of `group_matches` are, which answer `match_groups`; None: there are none of it.
    """

    request: GroupsRequest
    events: BatchRange
    partition: tuple[str, ...]
    portions: int
    kept: BatchRange | None = None

    @property
    def asked_names(self) -> tuple[str, ...]:
        """The event names that the pattern asks for."""
        return names_asked((symbol.name, symbol.define) for symbol in self.request.groups.query.alphabet.symbols)


def check_request(
    arguments: Mapping[str, Any],
    publication: Published,
    known: Sequence[str],
    counts: Sequence[NameCount],
    configured: Sequence[PublishedBatch],
) -> GroupsReads:
    """Check a call, and say what is to be read for it.

    Parameters
    ----------
    arguments, publication, known
        As of `published_stream`.
    counts
        Of the stream's names.
    configured
        What `groups` published at `as_of` for queries over the stream.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.
    """
    at, configuration = published_stream(arguments, publication, known)
    check_bounds(arguments, ("from_step", "to_step"))
    wrong = unfit(arguments["stream"], configuration)
    if wrong is not None:
        raise ArgumentError(wrong)
    same = same_queries(arguments, configured)
    request = _request_of_same(arguments, configuration, same)
    query = request.groups.query
    check_key(arguments, configuration, partitioned=bool(query.partition))
    # The automaton may be too large: refused before anything is read.
    _ = request.groups.automaton
    return GroupsReads(
        request,
        at.rows,
        tuple(query.partition) or ("key",),
        count_portions(count_events(counts), TASK_EVENTS),
        same[0].rows if same and batches_read(same[0]) == (at.base_batch, at.batch_id) else None,
    )


def _request_of_same(
    arguments: Mapping[str, Any], configuration: Mapping[str, Any], same: Sequence[PublishedBatch]
) -> GroupsRequest:
    """The request of a call, with the parameters of the configured queries that it asks for in other words.

    Raises
    ------
    ArgumentError
        A parameter of the pattern has another value in another of these queries; names both.
    """
    params = [json.loads(one.configuration)["params"] for one in same] or [{}]
    first, *others = (request_of({**arguments, "params": one}, configuration) for one in params)
    for number, other in enumerate(others, 1):
        # The same text, so symbols differ by the values of parameters that it mentions alone.
        if other.groups.query.alphabet.symbols != first.groups.query.alphabet.symbols:
            one, another = (f"{same[at].object!r} has params {params[at]}" for at in (0, number))
            raise ArgumentError(
                f"several configured queries have this pattern, with other parameters: {one}, {another}; write the "
                "values into the pattern"
            )
    return first


def request_of(arguments: Mapping[str, Any], configuration: Mapping[str, Any]) -> GroupsRequest:
    """Compile the request of a call over a stream with a configuration, its ``params`` among the arguments."""
    meant = ("pattern", "overlap", "threshold", "within", "params")
    groups = compile_once(_groups_of, {name: arguments.get(name) for name in meant}, configuration)
    bounds = (arguments.get("from_step"), arguments.get("to_step"))
    best, partition = given_or(arguments, "best", DEFAULT_BEST), groups.query.partition
    in_order = not partition or "key" in partition or configuration["key"] is None
    return GroupsRequest(groups, types_of_attributes(configuration), *bounds, best, in_order)


def _groups_of(query: Mapping[str, Any], configuration: Mapping[str, Any]) -> Groups:
    return Groups(query_of({**query, "stream": configuration}))

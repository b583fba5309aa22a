"""A query for groups as a configuration holds it, and which configured one a call of `match_groups` means."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from patternlake.udfs.groups.query import GroupQuery, compile_query, is_quoted
from patternlake.udfs.language.predicate.predicates import Scope
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.language.query.tree import Event, Query
from patternlake.udfs.published import PublishedBatch
from patternlake.udfs.requests import compile_once


def query_of(configuration: Mapping[str, Any]) -> GroupQuery:
    """Compile the query of a configuration.

    Parameters
    ----------
    configuration
        ``pattern``, ``overlap``, ``threshold``, ``within``, ``params``, and ``stream``: the stream's own
        configuration, with ``attributes`` and ``key``. What is missing or None has its default.

    Raises
    ------
    PatternLakeError
        What is wrong with the query, with its place.
    """
    return compile_query(
        parse(configuration["pattern"]),
        Scope.of_stream(configuration["stream"], configuration.get("params")),
        overlap=configuration.get("overlap"),
        threshold=configuration.get("threshold"),
        within=configuration.get("within"),
    )


def unfit(name: str, stream: Mapping[str, Any]) -> str | None:
    """What keeps a stream's configuration from having groups: it has no probabilities. None: nothing does."""
    missing = [part for part in ("step", "probability") if stream[part] is None]
    if not missing:
        return None
    return f"the stream {name!r} has no {' and no '.join(missing)}; configure `step` and `probability` for it"


def same_queries(arguments: Mapping[str, Any], configured: Iterable[PublishedBatch]) -> list[PublishedBatch]:
    """Find the configured queries that a call asks for in other words; of them those that have read the most.

    Parameters
    ----------
    arguments
        ``pattern``, ``overlap``, ``threshold`` and ``within`` of a call, a valid pattern.
    configured
        Publications of `groups`.

    Notes
    -----
    Parameters of predicates can't be given to the function: a pattern with some means the query that has them. What is
    no longer configured stays behind in its publications, so it is told by what it has not read.
    """
    asked = _meaning(arguments)
    same = [one for one in configured if compile_once(_meaning_of, one.configuration) == asked]
    newest = max(map(batches_read, same), default=None)
    return [one for one in same if batches_read(one) == newest]


def batches_read(query: PublishedBatch) -> tuple[int, int]:
    """First and last batch of its stream whose events a publication of `groups` is of."""
    source = json.loads(query.source)
    return source["ingest_base"], source["ingest_batch"]


_Meaning = tuple[Query, tuple[bool, ...], str, float, int | None]


def _meaning(given: Mapping[str, Any]) -> _Meaning:
    query = parse(given["pattern"])
    within = given.get("within")
    if within is None and query.within is not None:
        within = query.within.amount
    # Trees know no quotes, in which '_' is a name.
    quoted = tuple(is_quoted(query, node) for node in query.pattern.walk() if isinstance(node, Event))
    overlap, threshold = given.get("overlap") or "single", float(given.get("threshold") or 0)
    return replace(query, within=None), quoted, overlap, threshold, within


def _meaning_of(configuration: str) -> _Meaning:
    return _meaning(json.loads(configuration))

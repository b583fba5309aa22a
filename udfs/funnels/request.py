"""The first step of `match_funnel` and `match_funnel_rows`: from arguments and a publication to a checked request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from patternlake.udfs.arguments import check_bounds, check_key, given_or, group_column
from patternlake.udfs.attributes import types_of_attributes
from patternlake.udfs.errors import ArgumentError, shorten
from patternlake.udfs.funnels.kernels.chains import MODES
from patternlake.udfs.funnels.query import FunnelQuery, compile_query
from patternlake.udfs.language.predicate.scopes import Scope
from patternlake.udfs.language.query.over_streams import parse_over
from patternlake.udfs.partitions import count_portions
from patternlake.udfs.published import (
    SETTLED,
    NameCount,
    Published,
    count_events,
    known_until,
    published_stream,
)
from patternlake.udfs.requests import PORTION_EVENTS, PartitionReads, compile_once

DEFAULT_MODE = "any_order_between"
DEFAULT_NEXT = 3


@dataclass(frozen=True)
class FunnelRequest:
    """What the portions of an answer need to know.

    Attributes
    ----------
    query
        The compiled pattern.
    types
        Spark type of each of the stream's attributes.
    mode
        One of `MODES`.
    by
        The column whose value, of the first step's event, groups partitions; None: they are one group.
    next_events
        How many of the names that came next are told, of each step.
    watermark
        Of the publication, microseconds, or the end of what is read where that is earlier; None: nothing is settled.
    until
        The last moment known of the stream, or the bound of the question where that is earlier; None: none is, as of a
        table, which is not read for it.
    """

    query: FunnelQuery
    types: Mapping[str, str]
    mode: str = DEFAULT_MODE
    by: str | None = None
    next_events: int = DEFAULT_NEXT
    watermark: int | None = None
    until: int | None = None


def check_request(
    arguments: Mapping[str, Any],
    publication: Published,
    known: Sequence[str],
    counts: Sequence[NameCount],
    last_time: int | None,
) -> PartitionReads[FunnelRequest]:
    """Check a call, and say what is to be read for it.

    Parameters
    ----------
    arguments, publication, known
        As of `published_stream`.
    counts
        Of the stream's names.
    last_time
        Of the stream's events, microseconds; None: not known.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.
    """
    at, configuration = published_stream(arguments, publication, known)
    check_bounds(arguments, ("from_time", "to_time"))
    mode, most = given_or(arguments, "mode", DEFAULT_MODE), given_or(arguments, "next", DEFAULT_NEXT)
    if mode not in MODES:
        raise ArgumentError(f"mode must be one of {', '.join(MODES)}, not {shorten(mode)}")
    if most < 0:
        raise ArgumentError(f"next must be 0 or more, not {most}; it is how many of the names that came next are told")
    parameters = dict(arguments.get("params") or {})
    query = compile_once(_compile, arguments["pattern"], configuration, parameters, arguments.get("within"))
    check_key(arguments, configuration, partitioned=query.partition != ("key",))
    ends = [end for end in (last_time, at.watermark) if end is not None and end < SETTLED]
    to_time = arguments.get("to_time")
    until = min((end for end in (max(ends, default=None), to_time) if end is not None), default=None)
    request = FunnelRequest(
        query=query,
        types=types_of_attributes(configuration),
        mode=mode,
        by=group_column(arguments.get("by"), configuration),
        next_events=most,
        watermark=known_until(at.watermark, to_time),
        until=until,
    )
    events = count_events(counts) if counts else at.source_to
    return PartitionReads(request, at.rows, count_portions(events, PORTION_EVENTS))


def _compile(text: str, stream: Mapping[str, Any], parameters: Mapping[str, Any], within: str | None) -> FunnelQuery:
    return compile_query(parse_over(text, stream), Scope.of_stream(stream, parameters), within=within)

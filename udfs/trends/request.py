"""The first step of `cet_count` and `cet_trends`: from arguments and a publication to a checked request."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from patternlake.udfs.arguments import check_bounds, check_key, given_or, unknown
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.published import Published, PublishedBatch
from patternlake.udfs.requests import BatchRange, compile_once
from patternlake.udfs.trends.from_config import layout_of
from patternlake.udfs.trends.panes import Windows
from patternlake.udfs.trends.vertex_rows import Layout

TASK_VERTICES = 200_000
"""Vertices that one part of an answer has, about; a window of one partition is never divided."""
MOST_PARTS = 1000

_ALL = 2**62


@dataclass(frozen=True)
class TrendsRequest:
    """What the parts of an answer need to know.

    Attributes
    ----------
    layout
        The query, and how its vertices are written.
    key
        Value of ``key`` that was asked for, or None.
    watermark
        Of the publication, microseconds, or None.
    first, last
        Numbers of the first and the last window that lie inside the asked times.
    block
        Windows of one block.
    max_trends, truncate, from_trend, sample
        As of `cet_trends`.
    seed
        Of what is drawn at random: the same for equal calls, as long as nothing is published.
    """

    layout: Layout
    key: str | None
    watermark: int | None
    first: int
    last: int
    block: int
    max_trends: int
    truncate: bool
    from_trend: int = 1
    sample: int | None = None
    seed: str = ""


@dataclass(frozen=True)
class QueryState:
    """How many vertices a query has, about, and in which panes: None where these are not known."""

    vertices: int
    lowest_pane: int | None
    highest_pane: int | None


@dataclass(frozen=True)
class TrendReads:
    """A checked call, and what is to be read for it.

    Attributes
    ----------
    request
        What the parts need to know.
    stream, rows
        Number of the stream, and where the query's vertices are; of a text, the events.
    low_pane, high_pane
        Which panes are read.
    windows
        Of the query.
    parts
        Into how many parts the work is dealt.
    state
        Of the query.
    last_position
        Of the last event that was read; with the watermark it tells which windows are final.
    names, events
        Of a text: of the events that can take part, None: any; and how many these are, of all keys and times.
    """

    request: TrendsRequest
    stream: int
    rows: BatchRange
    low_pane: int
    high_pane: int
    windows: Windows
    parts: int
    state: QueryState
    last_position: int
    names: Sequence[str] | None = None
    events: int = 0


def check_request(
    arguments: Mapping[str, Any], publication: Published, known: Sequence[str], whole: bool
) -> TrendReads:
    """Check a call, and say what is to be read for it.

    Parameters
    ----------
    arguments
        The SQL function's arguments by name; times in microseconds since the epoch.
    publication
        What `trends` published of the query.
    known
        Names of all trend queries.
    whole
        Whether the work is not to be dealt out.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.
    """
    name = arguments.get("query")
    if name is None:
        raise ArgumentError("query is NULL; give the name of a trend query")
    publication.check_moment(f"the trend query {name!r}", arguments.get("as_of"))
    at = publication.at
    if at is None and arguments.get("stream") is not None:
        raise ArgumentError(
            f"query => {name!r} is no configured trend query; where it is meant as a text, begin it with PATTERN"
        )
    if at is None:
        raise unknown("trend query", name, "trend queries", known, "configure `trends`, and run the job")
    for own in ("stream", "params"):
        if arguments.get(own) is not None:
            raise ArgumentError(
                f"{own} => {arguments[own]!r}: the trend query {name!r} has its own in the configuration; leave {own} "
                "out, or give the query as a text"
            )
    state = json.loads(at.state)
    vertices = QueryState(int(state["vertices"]), state["lowest_pane"], state["highest_pane"])
    return reads_of(arguments, at, json.loads(at.configuration), vertices, whole)


def reads_of(
    arguments: Mapping[str, Any],
    at: PublishedBatch,
    configuration: Mapping[str, Any],
    state: QueryState,
    whole: bool,
) -> TrendReads:
    """What is to be read for a call whose query is known.

    Parameters
    ----------
    arguments, whole
        As of `check_request`.
    at
        What was published of the query, or, of a text, of the stream that it asks.
    configuration
        Of the query, as of `layout_of`, with ``stream_name``.
    state
        Of the query.

    Raises
    ------
    PatternLakeError
        As `check_request`.
    """
    check_bounds(arguments, ("from_time", "to_time"))
    max_trends = given_or(arguments, "max_trends", 1_000_000)
    if max_trends < 1:
        raise ArgumentError(f"max_trends must be at least 1, not {max_trends}")
    from_trend, sample = given_or(arguments, "from_trend", 1), arguments.get("sample")
    _check_listed(arguments, max_trends, from_trend, sample)
    layout = compile_once(layout_of, configuration)
    # A call of a configured query does not name the stream itself.
    named = {**arguments, "stream": configuration["stream_name"]}
    check_key(named, configuration["stream"], partitioned=bool(layout.query.partition))
    windows = Windows.of(layout.query)
    low, high = arguments.get("from_time"), arguments.get("to_time")
    if not windows.width and (low is not None or high is not None):
        told = "from_time" if low is not None else "to_time"
        raise ArgumentError(f"{told} with a query without WITHIN: it has one window, without bounds; leave {told} out")
    first, last = _windows_inside(windows, low, high)
    parts = 1 if whole else max(1, min(MOST_PARTS, -(-state.vertices // TASK_VERTICES)))
    lowest, highest = state.lowest_pane, state.highest_pane
    panes = 1 if lowest is None or highest is None else highest - lowest + 1
    of = [configuration["query"], configuration["params"], arguments.get("key"), first, last, sample]
    request = TrendsRequest(
        layout=layout,
        key=arguments.get("key"),
        watermark=at.watermark,
        first=first,
        last=last,
        block=max(1, -(-panes // windows.step) // (4 * parts)),
        max_trends=max_trends,
        truncate=given_or(arguments, "truncate", False),
        from_trend=from_trend,
        sample=sample,
        seed=json.dumps([*of, at.source_to, at.watermark], sort_keys=True),
    )
    return TrendReads(
        request=request,
        stream=at.stream_id,
        rows=at.rows,
        low_pane=max(first * windows.step, -_ALL) if windows.width else 0,
        high_pane=min(last * windows.step + windows.length - 1, _ALL) if windows.width else 0,
        windows=windows,
        parts=parts,
        state=state,
        last_position=at.source_to,
    )


def _check_listed(arguments: Mapping[str, Any], max_trends: int, from_trend: int, sample: int | None) -> None:
    """Refuse what is said of the trends that are listed and cannot be."""
    if from_trend < 1:
        raise ArgumentError(f"from_trend must be at least 1, the number of the first trend, not {from_trend}")
    if sample is None:
        return
    if sample < 1:
        raise ArgumentError(f"sample must be at least 1, not {sample}; leave it out for all trends")
    if sample > max_trends:
        raise ArgumentError(f"sample => {sample} is more than max_trends = {max_trends}; raise max_trends")
    for other, plain in (("from_trend", 1), ("truncate", False)):
        if given_or(arguments, other, plain) != plain:
            raise ArgumentError(f"{other} stands beside sample, which draws from all trends; leave one of them out")


def _windows_inside(windows: Windows, low: int | None, high: int | None) -> tuple[int, int]:
    """Numbers of the windows [a, b) with a >= low and no moment after high; windows of events are judged later."""
    if not windows.width or windows.counted:
        return -_ALL // max(windows.slide, 1), _ALL // max(windows.slide, 1)
    first = -_ALL // windows.slide if low is None else -(-low // windows.slide)
    last = _ALL // windows.slide if high is None else (high + 1 - windows.width) // windows.slide
    return first, last

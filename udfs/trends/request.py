"""The first step of `cet_count` and `cet_trends`: from arguments and a publication to a checked request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from patternlake.udfs.arguments import check_bounds, check_moment, given, unknown
from patternlake.udfs.errors import ArgumentError
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


def check_request(
    arguments: Mapping[str, Any], publication: Mapping[str, Any], known: list[str], whole: bool
) -> dict[str, Any]:
    """Check a call, and say what is to be read for it.

    Parameters
    ----------
    arguments
        The SQL function's arguments by name; times in microseconds since the epoch.
    publication
        ``at``: the query's publication at `as_of`, or None; ``first``, ``horizon``: microseconds, or None.
    known
        Names of all trend queries.
    whole
        Whether the work is not to be dealt out.

    Returns
    -------
    ``text``: for `asked`; ``batch``, ``base``, ``low_pane``, ``high_pane``: which vertices are read; ``by_partition``:
    whether the key asked for is the partition's; ``counted``: windows count events; ``pane``: width of a pane;
    ``step``, ``length``: a window begins at every step-th pane and has length panes; ``block``: windows of one
    block; ``parts``: into how many parts the work is dealt; ``vertices``, ``lowest_pane``, ``highest_pane``: how many
    there are in all, and in which panes; ``watermark``, ``last_position``: which windows are final.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.
    """
    name = arguments.get("query")
    if name is None:
        raise ArgumentError("query is NULL; give the name of a trend query")
    check_moment(f"the trend query {name!r}", arguments.get("as_of"), publication)
    at = publication["at"]
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
    return reads_of(arguments, at, whole)


def reads_of(arguments: Mapping[str, Any], at: Mapping[str, Any], whole: bool) -> dict[str, Any]:
    """What is to be read for a call whose query is known, and stands in a publication or in what is like one.

    Parameters
    ----------
    arguments, whole
        As of `check_request`.
    at
        ``configuration``, as of `layout_of`, and ``state``, both as JSON; ``watermark``, ``batch_id``, ``base_batch``,
        ``object_id``, ``source_to``. The state has ``vertices``, how many there are, about, and ``lowest_pane`` and
        ``highest_pane``, None where these are not known.

    Returns
    -------
    As of `check_request`.

    Raises
    ------
    PatternLakeError
        As `check_request`.
    """
    check_bounds(arguments, ("from_time", "to_time"))
    max_trends = given(arguments, "max_trends", 1_000_000)
    if max_trends < 1:
        raise ArgumentError(f"max_trends must be at least 1, not {max_trends}")
    from_trend, sample = given(arguments, "from_trend", 1), arguments.get("sample")
    _check_listed(arguments, max_trends, from_trend, sample)
    configuration, state = json.loads(at["configuration"]), json.loads(at["state"])
    layout = layout_of(configuration)
    query, windows = layout.query, Windows.of(layout.query)
    low, high = arguments.get("from_time"), arguments.get("to_time")
    if not windows.width and (low is not None or high is not None):
        told = "from_time" if low is not None else "to_time"
        raise ArgumentError(f"{told} with a query without WITHIN: it has one window, without bounds; leave {told} out")
    first, last = _windows_inside(windows, low, high)
    pane = max(windows.pane, 1)
    step, length = max(windows.slide // pane, 1), max(windows.width // pane, 1)
    vertices = int(state["vertices"])
    parts = 1 if whole else max(1, min(MOST_PARTS, -(-vertices // TASK_VERTICES)))
    lowest, highest = state["lowest_pane"], state["highest_pane"]
    panes = 1 if lowest is None else int(highest) - int(lowest) + 1
    block = max(1, -(-panes // step) // (4 * parts))
    text = {
        "configuration": configuration,
        "key": arguments.get("key"),
        "watermark": at["watermark"],
        "first": first,
        "last": last,
        "block": block,
        "max_trends": max_trends,
        "truncate": given(arguments, "truncate", False),
        "from_trend": from_trend,
        "sample": sample,
    }
    of = [configuration["query"], configuration["params"], arguments.get("key"), first, last, sample]
    text["seed"] = json.dumps([*of, at["source_to"], at["watermark"]], sort_keys=True)
    return {
        "text": json.dumps(text, sort_keys=True),
        "batch": at["batch_id"],
        "number": at["object_id"],
        "base": at["base_batch"],
        "low_pane": max(first * step, -_ALL) if windows.width else 0,
        "high_pane": min(last * step + length - 1, _ALL) if windows.width else 0,
        "by_partition": bool(query.partition),
        "counted": windows.counted,
        "pane": windows.pane,
        "step": step,
        "length": length,
        "block": block,
        "parts": parts,
        "vertices": vertices,
        "lowest_pane": lowest,
        "highest_pane": highest,
        "watermark": at["watermark"],
        "last_position": at["source_to"],
    }


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
        if given(arguments, other, plain) != plain:
            raise ArgumentError(f"{other} stands beside sample, which draws from all trends; leave one of them out")


def _windows_inside(windows: Windows, low: int | None, high: int | None) -> tuple[int, int]:
    """Numbers of the windows [a, b) with a >= low and no moment after high; windows of events are judged later."""
    if not windows.width or windows.counted:
        return -_ALL // max(windows.slide, 1), _ALL // max(windows.slide, 1)
    first = -_ALL // windows.slide if low is None else -(-low // windows.slide)
    last = _ALL // windows.slide if high is None else (high + 1 - windows.width) // windows.slide
    return first, last


@lru_cache(maxsize=64)
def parse_request(text: str) -> TrendsRequest:
    """What the text of a request says."""
    parts = json.loads(text)
    return TrendsRequest(
        layout=layout_of(parts["configuration"]),
        key=parts["key"],
        watermark=parts["watermark"],
        first=parts["first"],
        last=parts["last"],
        block=parts["block"],
        max_trends=parts["max_trends"],
        truncate=parts["truncate"],
        from_trend=parts["from_trend"],
        sample=parts["sample"],
        seed=parts["seed"],
    )

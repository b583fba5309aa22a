"""Matches as bars over time, a lane for each key."""

from __future__ import annotations

from heapq import heappush, heapreplace
from typing import TYPE_CHECKING

import pandas as pd

from patternlake.sql_ext import drawing
from patternlake.udfs.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_MATCHES = 5000
MOST_LANES = 100
_HEIGHT = 0.8
"""Of a lane, the rest is the gap to the next."""
_OPEN = 0.35
"""Opacity of a match that later events may still change."""


def timeline(frame: drawing.Frame, *, ax: Axes | None = None) -> Axes:
    """Draw matches as bars from their first to their last event, in a lane for each key.

    Matches of one key that overlap stand above each other in its lane; one whose events are all of one moment is a
    diamond. A match that is not final is pale, one with a probability is the paler the less probable it is.

    Parameters
    ----------
    frame
        An answer of match_seq, match_pattern, match_subscription or cet_trends, with ``key``, ``first_time`` and
        ``last_time``; or one of match_groups, with ``key``, ``t_start`` and ``t_end``, which are steps. At most 5,000
        rows of 100 keys.
    ax
        To draw on; None: new ones.

    Returns
    -------
    matplotlib.axes.Axes
        Its lanes are at 0, 1, 2, … from the top, in the order of their first matches, and named by their keys.

    Raises
    ------
    ArgumentError
        A column is missing, or there are no rows or too many.
    StateError
        matplotlib is not installed.
    """
    steps = "t_start" in frame.columns
    begin, end = ("t_start", "t_end") if steps else ("first_time", "last_time")
    found = drawing.rows(frame, "timeline", ("key", begin, end), MOST_MATCHES)
    found = found.sort_values([begin, end], kind="stable")
    found = found.assign(lane=["all" if key is None else str(key) for key in found["key"]])
    lanes = {key: number for number, key in enumerate(dict.fromkeys(found["lane"]))}
    if len(lanes) > MOST_LANES:
        raise ArgumentError(
            f"plot.timeline: the matches are of {len(lanes):,} keys, and {MOST_LANES} lanes fit; choose some with WHERE"
        )
    ax = drawing.axes(ax, height=min(20.0, 1.5 + 0.35 * len(lanes)))
    for key, number in lanes.items():
        _lane(ax, found[found["lane"] == key], number, begin, end)
    ax.set_yticks(range(len(lanes)), list(lanes))
    ax.set_ylim(len(lanes) - 0.5, -0.5)
    ax.grid(axis="x", lw=0.5, alpha=0.5)
    ax.set_axisbelow(True)
    zone = drawing.zone(frame)
    ax.set_xlabel("step" if steps else "time" if zone is None else f"time ({zone})")
    drawing.bare(ax)
    return ax


def _lane(ax: Axes, matches: pd.DataFrame, number: int, begin: str, end: str) -> None:
    """Draw the matches of one key, which are in the order of their begin."""
    rows, count = _stacked(list(matches[begin]), list(matches[end]))
    height = _HEIGHT / count
    opacity = _opacity(matches)
    colour = drawing.COLOURS[number % len(drawing.COLOURS)]
    for row, (_, match), alpha in zip(rows, matches.iterrows(), opacity, strict=True):
        middle = number - _HEIGHT / 2 + (row + 0.5) * height
        if match[begin] == match[end]:
            ax.plot(match[begin], middle, "D", color=colour, alpha=alpha, ms=5)
        else:
            length = match[end] - match[begin]
            ax.barh(middle, length, left=match[begin], height=height * 0.9, color=colour, alpha=alpha, lw=0)


def _opacity(matches: pd.DataFrame) -> list[float]:
    if "probability" in matches:
        return [0.15 + 0.85 * float(each) for each in matches["probability"]]
    if "final" in matches:
        return [1.0 if final else _OPEN for final in matches["final"]]
    return [1.0] * len(matches)


def _stacked(begins: list[object], ends: list[object]) -> tuple[list[int], int]:
    """For each interval, ordered by begin, the lowest row that is free; and how many rows there are."""
    rows: list[int] = []
    free: list[tuple[object, int]] = []
    for begin, end in zip(begins, ends, strict=True):
        if free and free[0][0] < begin:  # type: ignore[operator]
            row = free[0][1]
            heapreplace(free, (end, row))
        else:
            row = len(free)
            heappush(free, (end, row))
        rows.append(row)
    return rows, len(free)

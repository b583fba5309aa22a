"""The graph of a window: its events, and the steps that its trends take between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pandas as pd

import patternlake.sql_ext.plots.drawing as drawing
from patternlake.udfs.errors import ArgumentError, shorten
from patternlake.udfs.shown_text import plural

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

MOST_TRENDS = 2000
MOST_EVENTS = 2000
MOST_LABELS = 40
"""Of more events, labels would cover each other."""

Point = tuple[Any, Any]


@drawing.as_written
def trends(
    frame: drawing.Frame,
    events: drawing.Frame | None = None,
    *,
    y: str | None = None,
    label: str | None = "name",
    elbows: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw the trends of one window as a graph: a point for each event, a line for each step, the longest trend bold.

    Parameters
    ----------
    frame
        An answer of cet_trends for one window of one key, with ``positions``; at most 2,000 rows.
    events
        The events, with ``position`` and ``time``, such as rows of the view `events` of this stream; those that are in
        no trend are left out. None: points are placed by their positions alone.
    y
        The column of `events` that a point's height is; None: the length of the longest chain up to the event.
    label
        The column of `events` that points are named by; None: no names. Without `events`, the position is the name.
    elbows
        Whether a step goes upright from the earlier event and then level to the later one, instead of straight.
    ax
        To draw on; None: new ones.

    Returns
    -------
    matplotlib.axes.Axes
        Its lines are the steps, one each, then those of the longest trend; points are one collection.

    Raises
    ------
    ArgumentError
        A column is missing, there are no rows or too many, the rows are of several windows, or an event of a trend is
        not among the events.
    StateError
        matplotlib is not installed.
    """
    found = drawing.rows(frame, "trends", ("positions",), MOST_TRENDS)
    _refuse_many_windows(found)
    chains = sorted((tuple(map(int, chain)) for chain in found["positions"]), key=lambda chain: (-len(chain), chain))
    steps = sorted({step for chain in chains for step in pairwise(chain)})
    positions = sorted({position for chain in chains for position in chain})
    heights = _depths(chains)
    if events is None:
        points: dict[int, Point] = {position: (position, heights[position]) for position in positions}
        names = {position: str(position) for position in positions}
    else:
        points, names = _place(events, positions, heights, y, label)
    ax = drawing.axes(ax)
    xs, ys = zip(*(points[position] for position in positions), strict=True)
    for step in steps:
        ax.plot(*_line(points, step, elbows), color=drawing.QUIET, lw=1, alpha=0.7, zorder=2)
    for step in pairwise(chains[0]):
        ax.plot(*_line(points, step, elbows), color=drawing.MARK, lw=3, solid_capstyle="round", zorder=3)
    edges = [drawing.MARK if position in chains[0] else "white" for position in positions]
    ax.scatter(xs, ys, s=70, color=drawing.COLOURS[0], edgecolors=edges, linewidths=1.6, zorder=4)
    if label is not None and len(positions) <= MOST_LABELS:
        from matplotlib.patheffects import withStroke

        for position in positions:
            ax.annotate(
                names[position], points[position], xytext=(7, 5), textcoords="offset points", fontsize=9,
                color=drawing.INK, weight="bold" if position in chains[0] else "normal", zorder=5,
                path_effects=[withStroke(linewidth=3, foreground="white")],
            )  # fmt: skip
    zone = None if events is None else drawing.zone(events)
    along = "position" if events is None else "time" if zone is None else f"time ({zone})"
    ax.set_ylabel(y or "events of the longest chain up to here")
    timed = isinstance(xs[0], datetime)
    if timed:
        drawing.time_along(ax, along)
    else:
        ax.set_xlabel(along)
    longest = plural(len(chains[0]), "event")
    drawing.entitle(ax, f"{plural(len(chains), 'trend')}, the longest of {longest}")
    drawing.explain(ax, _signs(), timed=timed)
    drawing.bare(ax)
    return ax


def _signs() -> list[Artist]:
    """What points and lines mean."""
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=drawing.COLOURS[0], ls="", marker="o", ms=8, label="event"),
        Line2D([], [], color=drawing.QUIET, lw=1, label="step of a trend"),
        Line2D([], [], color=drawing.MARK, lw=3, label="the longest trend"),
    ]


def _refuse_many_windows(found: pd.DataFrame) -> None:
    columns = [column for column in ("key", "window_start", "window_end") if column in found]
    windows = found[columns].drop_duplicates()
    if columns and len(windows) > 1:
        shown = [", ".join(f"{name} {value}" for name, value in row.items()) for _, row in windows.head(2).iterrows()]
        raise ArgumentError(
            f"plot.trends: the trends are of {len(windows):,} windows ({'; '.join(shown)}, …), and a picture shows "
            "one; choose it with key =>, from_time => and to_time => of cet_trends, or with WHERE"
        )


def _depths(chains: Iterable[Sequence[int]]) -> dict[int, int]:
    """How many events the longest chain up to each one has."""
    depths: dict[int, int] = {}
    for chain in chains:
        for number, position in enumerate(chain, start=1):
            depths[position] = max(number, depths.get(position, 0))
    return depths


def _place(
    events: drawing.Frame, positions: Sequence[int], heights: Mapping[int, int], y: str | None, label: str | None
) -> tuple[dict[int, Point], dict[int, str]]:
    """Where each event's point is, and its name."""
    needed = ["position", "time", *([] if y is None else [y]), *([] if label is None else [label])]
    if "position" in events.columns:
        wanted = events["position"].isin(list(positions))
        events = events[wanted] if isinstance(events, pd.DataFrame) else events.where(wanted)
    there = drawing.rows(events, "trends", tuple(needed), MOST_EVENTS).set_index("position")
    if not there.index.is_unique:
        twice = there.index[there.index.duplicated()][0]
        raise ArgumentError(
            f"plot.trends: the position {twice} stands twice among the events; give those of one stream, and of one "
            "partition of a table"
        )
    missing = [position for position in positions if position not in there.index]
    if missing:
        raise ArgumentError(f"plot.trends: the event at position {missing[0]} of a trend is not among the events")
    places = {}
    for position in positions:
        row = there.loc[position]
        places[position] = (row["time"], heights[position] if y is None else _height(row[y], y))
    labels = {} if label is None else {position: there.loc[position][label] for position in positions}
    return places, {at: drawing.shorten_name(drawing.show_name(labels.get(at, ""))) for at in positions}


def _height(value: Any, column: str) -> float:
    try:
        return math.nan if value is None else float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"plot.trends: y is {column!r}, of which {shorten(value)} is no number") from None


def _line(points: Mapping[int, Point], step: tuple[int, int], elbows: bool) -> tuple[list[Any], list[Any]]:
    (x1, y1), (x2, y2) = points[step[0]], points[step[1]]
    return ([x1, x1, x2], [y1, y2, y2]) if elbows else ([x1, x2], [y1, y2])

"""Matches as bars over time, a lane for each key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappush, heapreplace
from typing import TYPE_CHECKING, Any

import pandas as pd

import patternlake.sql_ext.plots.drawing as drawing
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.shown_text import plural

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.patches import Rectangle

MOST_MATCHES = 5000
MOST_LANES = 100
_HEIGHT = 0.8
"""Of a lane, the rest is the gap to the next."""
_OPEN = 0.35
"""Opacity of a match that later events may still change."""
_NARROWEST = 3.3
"""Pixels of a bar, at least: 3, and what the layout may yet take from the axes."""


@drawing.as_written
def timeline(frame: drawing.Frame, *, ax: Axes | None = None) -> Axes:
    """Draw matches as bars from their first to their last event, in a lane for each key.

    Matches of one key that overlap stand above each other in its lane; one whose events are all of one moment is a
    diamond. A bar that would be narrower than 3 pixels is drawn 3 pixels wide, around its middle. A match that is not
    final is pale, one with a probability is the paler the less probable it is.

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
        Its lanes are at 0, 1, 2, … from the top, in the order of their first matches, and named by their keys: by
        ``NULL`` where there is none.

    Raises
    ------
    ArgumentError
        A column is missing, or there are no rows or too many.
    StateError
        matplotlib is not installed.
    """
    steps = "t_start" in drawing.list_columns(frame, "timeline")
    begin, end = ("t_start", "t_end") if steps else ("first_time", "last_time")
    found = drawing.rows(frame, "timeline", ("key", begin, end), MOST_MATCHES)
    found = found.sort_values([begin, end], kind="stable")
    found = found.assign(lane=[drawing.show_name(key) for key in found["key"]])
    lanes = {key: number for number, key in enumerate(dict.fromkeys(found["lane"]))}
    if len(lanes) > MOST_LANES:
        raise ArgumentError(
            f"plot.timeline: the matches are of {len(lanes):,} keys, and {MOST_LANES} lanes fit; choose some with WHERE"
        )
    ax = drawing.axes(ax, height=min(20.0, 1.5 + 0.35 * len(lanes)))
    thing = "group" if steps else "match"
    drawing.entitle(ax, f"{plural(len(found), thing)} of {plural(len(lanes), 'key')}")
    drawing.explain(ax, _signs(found, thing, begin, end), timed=not steps)
    zone = drawing.zone(frame)
    along = "step" if steps else "time" if zone is None else f"time ({zone})"
    ax.set_xlabel(along)
    ax.set_ylabel("key")
    drawing.name_rows(ax, [drawing.shorten_name(key) for key in lanes])
    # Bars at the edges are seen as a whole.
    ax.use_sticky_edges = False
    drawn = _draw(ax, found, lanes, begin, end)
    if steps:
        drawing.count_along(ax)
    else:
        drawing.time_along(ax, along)
    _widen(ax, drawn)
    ax.grid(axis="x", lw=0.5, alpha=0.5)
    ax.set_axisbelow(True)
    drawing.bare(ax)
    return ax


def _draw(ax: Axes, found: pd.DataFrame, lanes: Mapping[str, int], begin: str, end: str) -> list[Rectangle]:
    """Draw the matches, lane by lane, which are in the order of their begin; the bars."""
    bars: list[tuple[Any, ...]] = []
    opacities = []
    for key, matches in found.groupby("lane", sort=False):
        number = lanes[str(key)]
        stacked, count = _stack(list(matches[begin]), list(matches[end]))
        height = _HEIGHT / count
        colour = drawing.COLOURS[number % len(drawing.COLOURS)]
        ends = zip(matches[begin], matches[end], stacked, _opacity(matches), strict=True)
        for first, last, row, alpha in ends:
            middle = number - _HEIGHT / 2 + (row + 0.5) * height
            if first == last:
                ax.plot(first, middle, "D", color=colour, alpha=alpha, ms=5)
            else:
                bars.append((middle, last - first, height * 0.9, first, colour))
                opacities.append(alpha)
    if not bars:
        return []
    middles, lengths, heights, firsts, colours = (list(column) for column in zip(*bars, strict=True))
    drawn = list(ax.barh(middles, lengths, heights, firsts, color=colours, lw=0))
    for bar, alpha in zip(drawn, opacities, strict=True):
        bar.set_alpha(alpha)
    return drawn


def _signs(found: pd.DataFrame, thing: str, begin: str, end: str) -> list[Artist]:
    """What bars and diamonds mean."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    def bar(label: str, alpha: float = 1.0) -> Artist:
        return Patch(color=drawing.QUIET, alpha=alpha, lw=0, label=label)

    if "probability" in found:
        signs = [bar(f"{thing} of probability {one:g}", _likely(one)) for one in (1.0, 0.5, 0.1)]
    elif "final" in found and not found["final"].all():
        signs = [bar(f"final {thing}"), bar(f"{thing} that later events may change", _OPEN)]
    else:
        signs = [bar(f"{thing}, from its first to its last {'step' if thing == 'group' else 'event'}")]
    if (found[begin] == found[end]).any():
        at = "one step" if thing == "group" else "one moment"
        signs.append(Line2D([], [], color=drawing.QUIET, ls="", marker="D", ms=5, label=f"{thing} of {at}"))
    return signs


def _widen(ax: Axes, drawn: Sequence[Rectangle]) -> None:
    """Draw no bar so narrow that nobody sees it."""
    left, right = ax.get_xlim()
    least = _NARROWEST * (right - left) / ax.get_window_extent().width
    for bar in drawn:
        if bar.get_width() < least:
            bar.set_x(bar.get_x() - (least - bar.get_width()) / 2)
            bar.set_width(least)


def _likely(probability: float) -> float:
    """Opacity of a match of a probability."""
    return 0.15 + 0.85 * probability


def _opacity(matches: pd.DataFrame) -> list[float]:
    if "probability" in matches:
        return [_likely(float(each)) for each in matches["probability"]]
    if "final" in matches:
        return [1.0 if final else _OPEN for final in matches["final"]]
    return [1.0] * len(matches)


def _stack(begins: list[object], ends: list[object]) -> tuple[list[int], int]:
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

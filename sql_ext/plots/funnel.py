"""How many get how far, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patternlake.sql_ext import drawing
from patternlake.udfs.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_STEPS = 50


def funnel(frame: drawing.Frame, *, step: str = "step", count: str = "count", ax: Axes | None = None) -> Axes:
    """Draw a funnel: a bar for each step, as long as what got there, with its share of the first and of the one before.

    Parameters
    ----------
    frame
        One row for each step, in their order: give the query an ORDER BY. At most 50 rows.
    step, count
        The columns with the steps' names and with how many (users, cases, matches) got there.
    ax
        To draw on; None: new ones.

    Returns
    -------
    matplotlib.axes.Axes
        Its bars are at 0, 1, 2, … from the top.

    Raises
    ------
    ArgumentError
        A column is missing, there are no rows or too many, or a count is no number of 0 or more.
    StateError
        matplotlib is not installed.
    """
    found = drawing.rows(frame, "funnel", (step, count), MOST_STEPS)
    counts = [_count(each, count) for each in found[count]]
    ax = drawing.axes(ax, height=1.0 + 0.6 * len(counts))
    places = range(len(counts))
    ax.barh(places, counts, height=0.75, color=drawing.COLOURS[0], lw=0)
    longest = max(counts) or 1
    for place, reached in zip(places, counts, strict=True):
        text = f"{reached:,}"
        if place:
            text += (
                f"   {_share(reached, counts[0])} of the first, {_share(reached, counts[place - 1])} of the one before"
            )
        ax.text(reached + longest * 0.01, place, text, va="center", ha="left", fontsize=9, color=drawing.INK)
    ax.set_yticks(places, [str(each) for each in found[step]])
    ax.set_ylim(len(counts) - 0.5, -0.5)
    # Room for the texts behind the bars.
    ax.set_xlim(0, longest * 1.6)
    ax.set_xlabel(count)
    drawing.bare(ax)
    return ax


def _count(value: object, column: str) -> int:
    if isinstance(value, bool) or (not isinstance(value, int) and not hasattr(value, "__index__")):
        raise ArgumentError(f"plot.funnel: {column} is {value!r}; a whole number of 0 or more would be right")
    number = int(value)  # type: ignore[call-overload]
    if number < 0:
        raise ArgumentError(f"plot.funnel: {column} is {number}; a whole number of 0 or more would be right")
    return number


def _share(part: int, whole: int) -> str:
    return "–" if not whole else f"{100 * part / whole:.3g} %"

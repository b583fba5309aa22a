"""How many get how far, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

import patternlake.sql_ext.plots.drawing as drawing
from patternlake.udfs.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_STEPS = 64
_OPERAND, _REACHED = "operand", "reached"
_NEXT_NAME = 18
"""Characters of the name of a next event, of which several stand in a line."""
_GAP = 16.0
"""Points between two columns of text."""


@drawing.as_written
def funnel(frame: drawing.Frame, *, step: str = "step", count: str = "count", ax: Axes | None = None) -> Axes:
    """Draw a funnel: a bar for each step, as long as what got there, with its shares, times and drop-outs beside it.

    Parameters
    ----------
    frame
        An answer of match_funnel, of one group; or one row for each step, in their order (give the query an ORDER BY).
        At most 64 rows. Of an answer of match_funnel the picture tells how long each step takes, and what those did
        next who dropped out.
    step, count
        The columns with the steps' names and with how many (users, cases, matches) got there, where the frame is no
        answer of match_funnel.
    ax
        To draw on; None: new ones, wide enough for all texts. Texts stand to the right of the axes.

    Returns
    -------
    matplotlib.axes.Axes
        Its bars are at 0, 1, 2, … from the top: those that reached each step, and over them those that went on.

    Raises
    ------
    ArgumentError
        A column is missing, there are no rows or too many, they are of several groups, or a count is no number of 0 or
        more.
    StateError
        matplotlib is not installed.
    """
    present = drawing.list_columns(frame, "funnel")
    whole = count not in present and _REACHED in present
    step, count = (_OPERAND, _REACHED) if whole else (step, count)
    needed = ("step", _OPERAND, _REACHED, "dropped", "seconds_p50", "seconds_p90", "next_events") if whole else ()
    found = drawing.rows(frame, "funnel", needed or (step, count), MOST_STEPS)
    group = drawing.one_group(found, "funnel") if whole else ""
    found = found.sort_values("step", kind="stable") if whole else found
    texts = [drawing.shorten_name(drawing.show_name(name)) for name in found[step]]
    names = [f"{place}. {text}" for place, text in enumerate(texts, start=1)]
    counts = [_count(each, count) for each in found[count]]
    unit = "partitions" if whole else count
    columns = [*_shares(counts, unit), *(_read_columns(found, counts) if whole else ())]
    widths = [max(drawing.text_width(text) for text in (head, *texts)) for head, texts in columns]
    beside = sum(widths) + _GAP * len(widths)
    labels = max(map(drawing.text_width, names))
    ax = drawing.axes(ax, width=5.0 + (beside + labels) / 72, height=1.6 + 0.42 * len(counts))
    _draw(ax, names, counts, list(found["dropped"]) if whole else None)
    _write_columns(ax, columns, widths)
    ax.set_xlabel(unit)
    first, last = counts[0], counts[-1]
    drawing.entitle(ax, f"{last:,} of {first:,} get to the last step: {drawing.share(last, first)}{group}", pad=20)
    drawing.bare(ax)
    return ax


def _draw(ax: Axes, names: Sequence[str], counts: Sequence[int], dropped: Sequence[int] | None) -> None:
    from matplotlib.patches import Patch

    places = range(len(counts))
    after = [*counts[1:], counts[-1]]
    gone = [max(0, one - other) for one, other in zip(counts, after, strict=True)] if dropped is None else dropped
    on = [reached - out for reached, out in zip(counts, gone, strict=True)]
    ax.barh(places, counts, height=0.7, color=drawing.PALE, lw=0)
    ax.barh(places, on, height=0.7, color=drawing.COLOURS[0], lw=0)
    ax.set_xlim(0, max(counts) or 1)
    drawing.count_along(ax, 4)
    drawing.name_rows(ax, names)
    drawing.explain(
        ax,
        [
            Patch(color=drawing.COLOURS[0], label="went on, or reached the last step"),
            Patch(color=drawing.PALE, label="dropped out here"),
        ],
    )


Columns = Iterator[tuple[str, list[str]]]
"""The head of a column of text, and its text for each step."""


def _shares(counts: Sequence[int], unit: str) -> Columns:
    before = [0, *counts[:-1]]
    yield unit, [f"{reached:,}" for reached in counts]
    yield "of first", ["", *(drawing.share(reached, counts[0]) for reached in counts[1:])]
    pairs = zip(counts[1:], before[1:], strict=True)
    yield "of previous", ["", *(drawing.share(reached, previous) for reached, previous in pairs)]


def _read_columns(found: pd.DataFrame, counts: Sequence[int]) -> Columns:
    """What an answer of match_funnel tells beyond counts."""
    yield "median time", [_time(seconds) for seconds in found["seconds_p50"]]
    yield "90 % within", [_time(seconds) for seconds in found["seconds_p90"]]
    yield "dropped out", [f"{dropped:,}" for dropped in found["dropped"]]
    rows = zip(found["dropped"], found["next_events"], strict=True)
    yield "and did next", [_next(int(dropped), events) for dropped, events in rows]


def _time(seconds: Any) -> str:
    """A time from the step before; of the first step, and of one that nobody reached, there is none."""
    return "" if pd.isna(seconds) else drawing.span(float(seconds))


def _next(dropped: int, events: Any) -> str:
    """What came right after the last step of those that dropped out, the most frequent first."""
    told, parts = 0, []
    for event in () if events is None else events:
        name, partitions = event["name"], int(event["partitions"])
        name = "nothing" if name is None else drawing.shorten_name(str(name), _NEXT_NAME)
        parts.append(f"{name} {partitions:,}")
        told += partitions
    if told < dropped:
        parts.append(f"other {dropped - told:,}")
    return ", ".join(parts)


def _write_columns(ax: Axes, columns: Sequence[tuple[str, list[str]]], widths: Sequence[float]) -> None:
    """Write columns of text to the right of the axes, under their heads."""
    left = _GAP
    for (head, texts), width in zip(columns, widths, strict=True):
        # Numbers are compared by their ends, and so are at the right of their column; a list of names is read.
        is_list = head == "and did next"
        at, side = (left, "left") if is_list else (left + width, "right")
        ax.annotate(
            head, (1, 1), xytext=(at, 4), xycoords="axes fraction", textcoords="offset points", ha=side, va="bottom",
            fontsize=9, color=drawing.QUIET, annotation_clip=False,
        )  # fmt: skip
        for place, text in enumerate(texts):
            ax.annotate(
                text, (1, place), xytext=(at, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                ha=side, va="center", fontsize=9, color=drawing.INK, annotation_clip=False,
            )  # fmt: skip
        left += width + _GAP


def _count(value: object, column: str) -> int:
    if isinstance(value, bool) or (not isinstance(value, int) and not hasattr(value, "__index__")):
        raise ArgumentError(f"plot.funnel: {column} is {value!r}; a whole number of 0 or more would be right")
    number = int(value)  # type: ignore[call-overload]
    if number < 0:
        raise ArgumentError(f"plot.funnel: {column} is {number}; a whole number of 0 or more would be right")
    return number

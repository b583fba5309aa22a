"""What all pictures share: rows of a frame that fit in one, axes to draw on, titles, legends and names."""

from __future__ import annotations

import math
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias

import pandas as pd

from patternlake.udfs.errors import ArgumentError, StateError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from pyspark.sql import DataFrame

_Given = ParamSpec("_Given")
Frame: TypeAlias = "DataFrame | pd.DataFrame"
"""A frame of Spark, or one of pandas with the same columns."""

COLOURS = ("#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#e6ab02")
"""Told apart by people who tell few colours apart (ColorBrewer's Dark2)."""
MARK, INK, QUIET, PALE = "#c0392b", "#222222", "#7f8c8d", "#d5d8dc"
LONGEST_NAME = 28
"""Characters of a name that a picture has room for."""
_TEXT = 9
"""Points of the size of texts."""
_COMMON = 14.0
"""Points of the line below times that says what all of them have in common."""
_SIGN = 50.0
"""Points that an entry of a legend takes beside its text."""
_FORMULAS = "text.parse_math"
_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


_DRAWN = {
    "timeline": "answers of match_seq, match_pattern, match_subscription, cet_trends and match_groups",
    "trends": "answers of cet_trends",
    "funnel": "answers of match_funnel",
    "paths": "answers of match_paths",
    "forecasts": "answers of predict_match, and verdicts of evaluate",
}


def as_written(draw: Callable[_Given, Axes]) -> Callable[_Given, Axes]:
    """Let a picture show texts as they are: matplotlib takes what stands between two ``$`` for a formula."""

    @wraps(draw)
    def drawn(*args: _Given.args, **named: _Given.kwargs) -> Axes:
        try:
            import matplotlib
        except ImportError:
            return draw(*args, **named)  # which says so
        # Not by rc_context: it would undo what a notebook sets when the first picture is drawn.
        settings: Any = matplotlib.rcParams
        before, settings[_FORMULAS] = settings[_FORMULAS], False
        try:
            return draw(*args, **named)
        finally:
            settings[_FORMULAS] = before

    return drawn


def list_columns(frame: Frame, picture: str) -> list[str]:
    """Names of the columns of a frame; what is no frame, such as the list that collect() gives, is refused."""
    if not hasattr(frame, "columns"):
        raise ArgumentError(
            f"plot.{picture}: {type(frame).__name__} is no frame; give the DataFrame of Spark or pandas that holds the "
            "answer, before show() or collect()"
        )
    return [str(column) for column in frame.columns]


def rows(frame: Frame, picture: str, needed: tuple[str, ...], most: int) -> pd.DataFrame:
    """All rows of a frame, if they fit in a picture.

    Parameters
    ----------
    frame
        Of Spark or of pandas.
    picture
        Name of the function, for messages.
    needed
        Columns that have to be there.
    most
        So many rows still make a picture.

    Returns
    -------
    pandas.DataFrame
        Moments in the time zone of the frame's session, without zone.

    Raises
    ------
    ArgumentError
        It is no frame, a column is missing, or there are no rows or too many.
    StateError
        matplotlib is not installed: told before anything is read.
    """
    _pyplot()
    columns = list_columns(frame, picture)
    missing = [column for column in needed if column not in columns]
    if missing:
        there = ", ".join(columns)
        raise ArgumentError(
            f"plot.{picture}: no column {missing[0]!r} in the frame, which has {there}; it draws {_DRAWN[picture]}"
        )
    found = frame.head(most + 1) if isinstance(frame, pd.DataFrame) else frame.limit(most + 1).toPandas()
    if not len(found):
        raise ArgumentError(f"plot.{picture}: the frame has no rows; there is nothing to draw")
    if len(found) > most:
        raise ArgumentError(
            f"plot.{picture}: the frame has more than {most:,} rows, which no picture shows; choose some with WHERE, "
            "or the first with ORDER BY … LIMIT"
        )
    return found


def zone(frame: Frame) -> str | None:
    """The time zone that moments of `rows` are in; None where the frame does not tell."""
    return None if isinstance(frame, pd.DataFrame) else frame.sparkSession.conf.get("spark.sql.session.timeZone")


def axes(given: Axes | None, width: float = 9.0, height: float = 4.5) -> Axes:
    """The axes to draw on: new ones of pyplot's where none are given."""
    return _pyplot().subplots(figsize=(width, height), layout="constrained")[1] if given is None else given


def bare(ax: Axes) -> None:
    """Leave out the frame's lines at the top and at the right."""
    ax.spines[["top", "right"]].set_visible(False)


def entitle(ax: Axes, title: str, pad: float | None = None) -> None:
    """Give axes a title, so many points above them, unless they have one."""
    if not any(ax.get_title(place) for place in ("left", "center", "right")):
        ax.set_title(title, loc="left", fontsize=11, color=INK, pad=pad, parse_math=False)


def count_along(ax: Axes, most: int | None = None) -> None:
    """Let the horizontal axis count: whole numbers, few enough to stand beside each other, or so many intervals."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    ax.xaxis.set_major_locator(MaxNLocator(most or _most_ticks(ax), integer=True))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def time_along(ax: Axes, label: str) -> None:
    """Let the horizontal axis show times: as short as they can be, few enough to stand beside each other."""
    from matplotlib import dates

    # Without types of its own.
    made: Any = dates
    locator = made.AutoDateLocator(minticks=2, maxticks=_most_ticks(ax))
    # Of these units, the locator's own intervals are for more ticks than narrow axes have room for; and between 1 and 5
    # minutes it has none, so that eight minutes got one tick.
    for unit, intervals in (
        (made.MONTHLY, (12,)), (made.DAILY, (31,)), (made.HOURLY, (24,)), (made.MINUTELY, (2, 60)),
        (made.SECONDLY, (2, 60)),
    ):  # fmt: skip
        locator.intervald[unit] = sorted({*locator.intervald[unit], *intervals})
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(made.ConciseDateFormatter(locator))
    # What all times have in common stands between them and the label.
    ax.set_xlabel(label, labelpad=_COMMON + 2)


def _most_ticks(ax: Axes) -> int:
    # With fewer, no interval may fit that dates have.
    return max(3, int(ax.get_window_extent().width / ax.figure.dpi / 1.1))


def explain(ax: Axes, handles: Sequence[Artist], *, timed: bool = False) -> None:
    """Put a legend below axes, where it covers nothing: in as many columns as are no wider than they are.

    `timed` as where the horizontal axis is made by `time_along`.
    """
    from matplotlib.transforms import ScaledTranslation

    width = ax.get_window_extent().width * 72 / ax.figure.dpi
    widest = max((text_width(str(handle.get_label())) for handle in handles), default=0.0) + _SIGN
    columns = max(1, min(4, int(width / widest)))
    below = ScaledTranslation(0, -(36 + _COMMON * timed) / 72, ax.figure.dpi_scale_trans)
    ax.legend(
        handles=list(handles), loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=ax.transAxes + below,
        ncols=columns, frameon=False, fontsize=_TEXT, borderaxespad=0, columnspacing=1.5,
    )  # fmt: skip


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Name the rows at 0, 1, 2, … from the top; where they are too close for all names, every second, third, …

    Titles, labels and legends are there by now: what they leave of the figure is the height of the axes.
    """
    ax.set_yticks(range(len(names)), names, parse_math=False)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.figure.canvas.figure.draw_without_rendering()
    height = ax.get_window_extent().height * 72 / ax.figure.dpi
    every = max(1, math.ceil(7.5 * len(names) / height))
    chosen = range(0, len(names), every)
    size = min(10.0, 0.8 * every * height / len(names))
    ax.set_yticks(chosen, [names[place] for place in chosen], fontsize=size, parse_math=False)


def show_name(value: object) -> str:
    """A value as the name of something; NULL as SQL calls it, whatever pandas makes of it."""
    return "NULL" if value is None or value is pd.NaT or value != value else str(value)


def shorten_name(name: str, longest: int = LONGEST_NAME) -> str:
    """A name that fits, with … in place of its middle: names that begin alike differ at their ends."""
    if len(name) <= longest:
        return name
    end = (longest - 1) // 2
    return f"{name[: longest - 1 - end]}…{name[len(name) - end :]}"


def span(seconds: float) -> str:
    """A span of time, in the unit that suits it."""
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), _UNITS[-1])
    return f"{seconds / size:.3g} {unit}"


def text_width(text: str) -> float:
    """Points that a text takes."""
    from matplotlib.textpath import TextPath

    return float(TextPath((0, 0), text, size=_TEXT).get_extents().width) if text.strip() else 0.0


def share(part: float, whole: float) -> str:
    """A share in per cent; – of nothing."""
    return "–" if not whole else f"{100 * part / whole:.3g} %"


def one_group(found: pd.DataFrame, picture: str) -> str:
    """The group that rows are of, for a title; empty where there is none.

    Raises
    ------
    ArgumentError
        They are of several.
    """
    groups = list(dict.fromkeys(map(show_name, found["group"]))) if "group" in found else []
    if len(groups) > 1:
        told = ", ".join(groups[:3]) + (", …" if len(groups) > 3 else "")
        raise ArgumentError(
            f"plot.{picture}: the rows are of {len(groups):,} groups ({told}), and a picture shows one; choose it with "
            "WHERE"
        )
    return "" if not groups or groups == ["NULL"] else f" ({groups[0]})"


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise StateError("plots need matplotlib, which is not installed: pip install matplotlib") from None
    return pyplot

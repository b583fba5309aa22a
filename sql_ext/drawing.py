"""What all pictures share: rows of a frame that fit in one, and axes to draw on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from patternlake.udfs.errors import ArgumentError, StateError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pyspark.sql import DataFrame

Frame: TypeAlias = "DataFrame | pd.DataFrame"
"""A frame of Spark, or one of pandas with the same columns."""

COLOURS = ("#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#e6ab02")
"""Told apart by people who tell few colours apart (ColorBrewer's Dark2)."""
MARK, INK, QUIET = "#c0392b", "#222222", "#7f8c8d"


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
        A column is missing, or there are no rows or too many.
    StateError
        matplotlib is not installed: told before anything is read.
    """
    _pyplot()
    missing = [column for column in needed if column not in frame.columns]
    if missing:
        there = ", ".join(map(str, frame.columns))
        raise ArgumentError(f"plot.{picture}: no column {missing[0]!r} in the frame, which has {there}")
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


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise StateError("plots need matplotlib, which is not installed: pip install 'patternlake[plot]'") from None
    return pyplot

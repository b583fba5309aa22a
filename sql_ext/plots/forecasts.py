"""Forecasts: how probable each is, or how good they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

import patternlake.sql_ext.plots.drawing as drawing
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.shown_text import plural

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

MOST_FORECASTS = 60
MOST_VERDICTS = 5000
MEASURES = ("precision", "recall")


@drawing.as_written
def forecasts(
    frame: drawing.Frame,
    *,
    measure: str = "precision",
    dashed: bool = False,
    threshold: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw forecasts of predict_match, or rows of `forecast_evaluation` that say how good forecasts were.

    Parameters
    ----------
    frame
        An answer of predict_match, with ``key``, ``state`` and ``probability``: a bar for each, the most probable at
        the top; at most 60 rows. With ``bindings``, states are called by what is done: ``a, b done``. Or rows of
        `forecast_evaluation`, with ``lookahead``, ``low`` and the measure: a line over the thresholds for each
        lookahead; rows of another ``kind`` than ``threshold`` are left out, and rows of several subscriptions refused.
    measure
        Of an evaluation: ``precision`` or ``recall``.
    dashed
        Of an evaluation: whether its lines are dashed and its points hollow, beside those of another one.
    threshold
        Of predict_match: where a line marks what counts as likely; None: no line.
    ax
        To draw on; None: new ones.

    Returns
    -------
    matplotlib.axes.Axes
        Bars are at 0, 1, 2, … from the top; thresholds at 0, 1, 2, … from the left.

    Raises
    ------
    ArgumentError
        A column is missing, there are no rows or too many, or the measure is another.
    StateError
        matplotlib is not installed.
    """
    if measure not in MEASURES:
        raise ArgumentError(f"plot.forecasts: measure is {measure!r}; one of {', '.join(MEASURES)} would be right")
    if "low" in drawing.list_columns(frame, "forecasts"):
        return _evaluation(frame, measure, dashed, ax)
    return _likely(frame, threshold, ax)


def _likely(frame: drawing.Frame, threshold: float | None, ax: Axes | None) -> Axes:
    found = drawing.rows(frame, "forecasts", ("key", "state", "probability"), MOST_FORECASTS)
    found = found.sort_values("probability", ascending=False, kind="stable")
    from matplotlib.patches import Patch

    ax = drawing.axes(ax, height=1.6 + 0.3 * len(found))
    places = range(len(found))
    ax.barh(places, found["probability"], height=0.75, color=drawing.COLOURS[0], lw=0)
    for place, (probability, state) in enumerate(zip(found["probability"], _states(found), strict=True)):
        told = f"{probability:.3g}   {state}"
        ax.text(
            probability + 0.01, place, told, va="center", fontsize=9, color=drawing.INK, zorder=5,
            bbox={"facecolor": "white", "lw": 0, "pad": 1},
        )  # fmt: skip
    ax.set_xlim(0, 1)
    ax.set_xlabel("probability of being completed")
    ax.set_ylabel("key")
    signs: list[Artist] = [Patch(color=drawing.COLOURS[0], label="a partial match, and what it has by now")]
    if threshold is not None:
        label = f"threshold {threshold:g}"
        signs.append(ax.axvline(threshold, color=drawing.MARK, lw=1, ls="--", label=label))
    drawing.entitle(ax, f"Forecasts of {plural(len(found), 'partial match')}")
    drawing.explain(ax, signs)
    drawing.name_rows(ax, [drawing.shorten_name(drawing.show_name(key)) for key in found["key"]])
    drawing.bare(ax)
    return ax


def _states(found: pd.DataFrame) -> list[str]:
    """What each forecast has: the operands that are done, or the name of its state where the rows don't tell."""
    if "bindings" not in found:
        return list(found["state"])
    done = [[name for name, positions in bindings.items() if len(positions)] for bindings in found["bindings"]]
    return [drawing.shorten_name(", ".join(names), 40) + " done" if names else "nothing done" for names in done]


def _evaluation(frame: drawing.Frame, measure: str, dashed: bool, ax: Axes | None) -> Axes:
    found = drawing.rows(frame, "forecasts", ("lookahead", "low", measure), MOST_VERDICTS)
    if "kind" in found:
        found = found[found["kind"] == "threshold"]
    if not len(found):
        raise ArgumentError("plot.forecasts: of the rows none is of the kind 'threshold', of which a picture is drawn")
    if "subscription" in found and found["subscription"].nunique() > 1:
        names = ", ".join(sorted(found["subscription"].unique()))
        raise ArgumentError(f"plot.forecasts: the rows are of several subscriptions ({names}); choose one with WHERE")
    if "forecasts" in found:
        # Where nothing was forecast, nothing is to be measured.
        found = found.assign(**{measure: found[measure].where(found["forecasts"] > 0)})
    ax = drawing.axes(ax)
    thresholds = sorted(found["low"].unique())
    for number, lookahead in enumerate(sorted(found["lookahead"].unique())):
        colour = drawing.COLOURS[number % len(drawing.COLOURS)]
        line = found[(found["lookahead"] == lookahead) & found[measure].notna()].sort_values("low")
        if line.empty:
            continue
        # Thinner ones on top, so that lines that coincide are seen.
        width = max(4.5 - number, 1.0)
        ax.plot(
            [thresholds.index(low) for low in line["low"]], pd.to_numeric(line[measure]), "--" if dashed else "-",
            color=colour, lw=width, ms=2 + 1.5 * width, marker="s" if dashed else "o",
            mfc="white" if dashed else colour, label=f"within {lookahead} event{'' if lookahead == 1 else 's'}",
        )  # fmt: skip
    ax.set_xlim(-0.3, len(thresholds) - 0.7)
    ax.set_xticks(range(len(thresholds)), [f"{threshold:g}" for threshold in thresholds])
    # Precision may be small as a whole; recall begins at all. Points at the top are seen as a whole.
    highest = 1.0 if measure == "recall" else float(ax.dataLim.y1)
    ax.set_ylim(0, 1.05 * (highest if highest > 0 else 1.0))
    ax.set_xlabel("forecasts above this probability")
    ax.set_ylabel(measure)
    ax.grid(axis="y", lw=0.5, alpha=0.5)
    what = "of the forecasts that came true" if measure == "precision" else "of the matches that were forecast"
    drawing.entitle(ax, f"{measure.capitalize()}: the share {what}")
    drawing.explain(ax, ax.lines)
    drawing.bare(ax)
    return ax

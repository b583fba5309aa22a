"""Draws how good forecasts were: precision and recall by threshold, a line for each lookahead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from machines import MachineQuestion, Verdict
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import patternlake

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pyspark.sql import SparkSession

COLOURS = ("#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#e6ab02")
QUIET = "#7f8c8d"


def draw_forecasts(
    spark: SparkSession, questions: Sequence[MachineQuestion], full: Mapping[str, Sequence[Verdict]], path: Path
) -> None:
    """Draw the evaluation of some subscriptions into a PNG file.

    Parameters
    ----------
    spark
        The session.
    questions
        One column of the picture each.
    full
        What a model with all history makes of a subscription, by name; is drawn dashed.
    path
        The file.
    """
    figure = Figure(figsize=(14, 8), dpi=130)
    grid = figure.subplots(2, len(questions), squeeze=False)
    figure.subplots_adjust(left=0.06, right=0.98, top=0.84, bottom=0.14, hspace=0.18, wspace=0.16)
    lookaheads: list[int] = []
    for question, column in zip(questions, grid.T, strict=True):
        verdicts = question.judged(spark)
        lookaheads = sorted({verdict.lookahead for verdict in verdicts})
        for name, axes in zip(("precision", "recall"), column, strict=True):
            lines(axes, name, verdicts)
            lines(axes, name, full.get(question.subscription, ()), dashed=True)
            axes.tick_params(axis="x", labelsize=8)
            axes.set(xlabel="", ylabel="")
            axes.set_title("", loc="left")
            if axes.get_legend() is not None:
                axes.get_legend().remove()
        column[0].set_title(question.title, loc="left", fontsize=12)
        column[1].set_xlabel("forecasts above this probability")
    for axes, name in zip(grid[:, 0], ("precision", "recall"), strict=True):
        axes.set_ylabel(name)
    figure.text(0.06, 0.94, "How good the forecasts of the second half of the year were", fontsize=16, weight="bold")
    figure.text(0.06, 0.905, "The first half taught them. Where a line ends, nothing was forecast any more.",
                fontsize=11, color=QUIET)  # fmt: skip
    signs = [
        Line2D([], [], color=colour, marker="o", ms=4, label=f"within {lookahead} step{'s' if lookahead > 1 else ''}")
        for colour, lookahead in zip(COLOURS, lookaheads, strict=False)
    ]
    signs.append(
        Line2D([], [], color=QUIET, ls="--", marker="s", ms=4, mfc="white", label="with all five-day histories")
    )
    figure.legend(handles=signs, loc="lower center", ncols=len(signs), fontsize=10, frameon=False)
    figure.savefig(path)


def lines(axes: Axes, name: str, verdicts: Iterable[Verdict], *, dashed: bool = False) -> None:
    """Draw precision or recall over the thresholds, a line for each lookahead."""
    given = pd.DataFrame([asdict(verdict) for verdict in verdicts])
    if len(given):
        patternlake.plot.forecasts(given.rename(columns={"threshold": "low"}), measure=name, dashed=dashed, ax=axes)

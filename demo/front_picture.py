"""Draws the sky of some days: how probable each kind was, hour by hour, and the fronts that were found."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter
from sky import CALL

import patternlake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLOURS = {"calm": "#aed6f1", "breeze": "#d5d8dc", "wind": "#f0b27a", "rain": "#2e86c1", "fog": "#b2a2c7"}
MARK = "#c0392b"
AROUND = 36
"""Hours that are shown before and after the most probable front."""

NEW_YORK = ZoneInfo("America/New_York")

SKY = """
SELECT step, name, sum(probability) AS share FROM patternlake.events
WHERE stream = 'sky' AND step BETWEEN {low} AND {high} GROUP BY step, name
"""


def clock(step: int) -> datetime:
    """When an hour begins by New York's clock, as the table of fronts tells it, too."""
    return (datetime(2013, 1, 1, tzinfo=timezone.utc) + timedelta(hours=step)).astimezone(NEW_YORK)


def draw_front(spark: SparkSession, path: Path) -> None:
    """Draw the hours around the most probable group into a PNG file."""
    best = spark.sql(f"SELECT * FROM {CALL} ORDER BY probability DESC, t_start LIMIT 1").collect()[0]
    low, high = best["t_start"] - AROUND, best["t_end"] + AROUND
    shares = {(row["step"], row["name"]): row["share"] for row in spark.sql(SKY.format(low=low, high=high)).collect()}
    found = spark.sql(f"SELECT * FROM {CALL} WHERE t_end >= {low} AND t_start <= {high} ORDER BY t_start").toPandas()
    # A step is an hour: the group's last one ends where the next one begins.
    groups = found.assign(t_end=found["t_end"] + 1)
    day = clock(best["t_start"])
    figure = Figure(figsize=(13, 6), dpi=130)
    axes = figure.add_axes((0.07, 0.17, 0.9, 0.57))
    lane = figure.add_axes((0.07, 0.745, 0.9, 0.05), sharex=axes)
    steps = list(range(low, high + 1))
    below = [0.0] * len(steps)
    for name, colour in COLOURS.items():
        heights = [shares.get((step, name), 0.0) for step in steps]
        axes.bar(steps, heights, bottom=below, width=1.0, align="edge", color=colour, label=name, lw=0)
        below = [one + other for one, other in zip(below, heights, strict=True)]
    patternlake.plot.timeline(groups, ax=lane)
    lane.axis("off")
    lane.set_title("", loc="left")
    lane.get_legend().remove()
    for group in groups.itertuples():
        lane.annotate(
            f"{group.probability:.2f}", xy=((group.t_start + group.t_end) / 2, -0.5), xytext=(0, 3),
            textcoords="offset points", ha="center", fontsize=11, weight="bold", color=MARK, annotation_clip=False,
        )  # fmt: skip
        for edge in (group.t_start, group.t_end):
            axes.axvline(edge, color=MARK, lw=1.2, zorder=4)
    axes.set_xlim(low, high + 1)
    axes.set_ylim(0, 1)
    axes.set_ylabel("share of the three airports")
    axes.xaxis.set_major_locator(FixedLocator([step for step in steps if clock(step).hour % 6 == 0]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{clock(int(step)):%H:%M}"))
    axes.set_xlabel("hour, New York's clock")
    axes.spines[["top", "right"]].set_visible(False)
    figure.text(0.07, 0.93, f"A front over New York, {day:%-d %B %Y}", fontsize=16, weight="bold")
    figure.text(
        0.07, 0.885, "Above: groups of matches of (calm | breeze), wind+, rain within 12 hours, with the "
        "probability that one of them happened.", fontsize=11, color=MARK,
    )  # fmt: skip
    figure.legend(loc="lower center", ncols=len(COLOURS), fontsize=10, frameon=False)
    figure.savefig(path)

"""Draws the graph of one window of a trend query, as the tables keep it, with the window's longest trend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MultipleLocator, NullLocator
from questions import LOCAL

import patternlake

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox
    from pyspark.sql import Row, SparkSession

TREND = "snowballs"
FLIGHTS = 10
"""Flights of a window whose labels still have room in one picture."""

WINDOW = f"""
WITH counted AS (
  SELECT key, window_start, window_end, longest, max(longest) OVER () AS record FROM cet_count('{TREND}')
)
SELECT c.key, any_value(v.pane) AS pane, CAST(c.window_start AS STRING) AS begins, CAST(c.window_end AS STRING) AS ends,
  date_format({LOCAL.format("c.window_start")}, 'd MMMM yyyy') AS day,
  CAST(date_trunc('DAY', {LOCAL.format("c.window_start")}) AS STRING) AS midnight
FROM counted c JOIN patternlake_internal.trend_vertices v
  ON v.partition = c.key AND v.time >= c.window_start AND v.time < c.window_end
WHERE c.longest = c.record AND v.trend = '{TREND}' AND v.kind = 'event'
GROUP BY c.key, c.window_start, c.window_end
ORDER BY count(*) > {FLIGHTS}, abs(count(*) - {FLIGHTS}), c.window_start, c.key LIMIT 1
"""
"""Of the windows with the longest trends, the fullest one that can still be drawn."""

VERTICES = f"""
SELECT v.position, CAST(v.left[0] AS DOUBLE) AS delay, v.along[0] AS airport,
  (unix_seconds({LOCAL.format("v.time")}) - unix_seconds(TIMESTAMP '{{midnight}}')) / 3600.0D AS hour,
  concat(e.carrier, e.flight) AS flight
FROM patternlake_internal.trend_vertices v JOIN patternlake.flights e ON e.position = v.position
WHERE v.trend = '{TREND}' AND v.kind = 'event' AND v.partition = '{{key}}' AND v.pane = {{pane}}
ORDER BY v.time, v.position
"""
RANGES = f"""
SELECT number, CAST(low AS DOUBLE) AS low, CAST(high AS DOUBLE) AS high, holds_low, holds_high
FROM patternlake_internal.trend_vertices
WHERE trend = '{TREND}' AND kind = 'attribute' AND partition = '{{key}}' AND pane = {{pane}}
ORDER BY number
"""
EDGES = f"""
SELECT kind, position, first, last FROM patternlake_internal.trend_edges
WHERE trend = '{TREND}' AND partition = '{{key}}' AND pane = {{pane}}
"""
TRENDS = f"""
SELECT positions
FROM cet_trends('{TREND}', key => '{{key}}', from_time => TIMESTAMP '{{begins}}', to_time => TIMESTAMP '{{ends}}')
ORDER BY length DESC, positions
"""

COLOURS = {"EWR": "#1f618d", "JFK": "#1e8449", "LGA": "#a04000"}
SIGNS = {"EWR": "o", "JFK": "s", "LGA": "^"}
LONGEST, INK, QUIET = "#c0392b", "#222222", "#7f8c8d"
STEP = {"color": INK, "ls": (0, (4, 2)), "lw": 1.4, "alpha": 0.9}
BAND = ("#f4f6f7", "#e5e8e8")


@dataclass(frozen=True)
class Graph:
    """One window's graph as the tables have it, and its trends, the longest one first."""

    window: Row
    vertices: dict[int, Row]
    ranges: dict[int, Row]
    edges: Sequence[Row]
    trends: Sequence[Sequence[int]]

    @classmethod
    def read(cls, spark: SparkSession) -> Graph:
        """The graph of the window that `WINDOW` chooses."""
        window = spark.sql(WINDOW).collect()[0]

        def rows(query: str) -> list[Row]:
            return spark.sql(query.format(**window.asDict())).collect()

        return cls(
            window=window,
            vertices={row["position"]: row for row in rows(VERTICES)},
            ranges={row["number"]: row for row in rows(RANGES)},
            edges=rows(EDGES),
            trends=[row["positions"] for row in rows(TRENDS)],
        )

    def span(self, number: int, floor: float, ceiling: float) -> tuple[float, float]:
        """The ends of a range on the axis; open ones are at its ends."""
        row = self.ranges[number]
        return (floor if row["low"] is None else row["low"]), (ceiling if row["high"] is None else row["high"])


def draw(spark: SparkSession, path: Path) -> None:
    """Draw the graph and its longest trend into a PNG file."""
    graph = Graph.read(spark)
    figure = Figure(figsize=(13, 8.6), dpi=130)
    axes = figure.add_axes((0.125, 0.17, 0.815, 0.69))
    delays = [row["delay"] for row in graph.vertices.values()]
    hours = [row["hour"] for row in graph.vertices.values()]
    cuts = [row["low"] for row in graph.ranges.values() if row["low"] is not None]
    floor, ceiling = min(delays) / 1.25, max(delays + cuts) * 1.35
    axes.set_yscale("log", base=2)
    axes.set_ylim(floor, ceiling)
    axes.set_xlim(min(hours) - 0.25, max(hours) + 0.7)
    draw_ranges(axes, graph, floor, ceiling)
    draw_edges(axes, graph, floor, ceiling)
    draw_trends(axes, graph)
    draw_flights(axes, graph)
    dress(figure, axes, graph)
    figure.savefig(path)


def draw_ranges(axes: Axes, graph: Graph, floor: float, ceiling: float) -> None:
    """Attribute vertices: each range of delays is a band across the picture, with its name at the left."""
    spans = {number: graph.span(number, floor, ceiling) for number in graph.ranges}
    middles = {number: axes.transData.transform((0, (low * high) ** 0.5))[1] for number, (low, high) in spans.items()}
    places = spread([axes.transAxes.inverted().transform((0, middle))[1] for middle in middles.values()], 0.031)
    for (number, (low, high)), place in zip(spans.items(), places, strict=True):
        row = graph.ranges[number]
        axes.axhspan(low, high, color=BAND[number % 2], lw=0, zorder=0)
        begin = "(–∞" if row["low"] is None else f"{'[' if row['holds_low'] else '('}{row['low']:g}"
        end = "∞)" if row["high"] is None else f"{row['high']:g}{']' if row['holds_high'] else ')'}"
        axes.annotate(
            f"{begin}, {end}", xy=(0, (low * high) ** 0.5), xycoords=axes.get_yaxis_transform(), xytext=(-0.028, place),
            textcoords="axes fraction", ha="right", va="center", fontsize=8.5, color=INK, annotation_clip=False,
            bbox={"boxstyle": "round,pad=0.22", "fc": BAND[number % 2], "ec": QUIET, "lw": 0.7},
            arrowprops={"arrowstyle": "-", "color": QUIET, "lw": 0.7, "shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip


def spread(places: Sequence[float], least: float) -> list[float]:
    """Rising places, moved as little as keeps each at least so far from the next."""
    groups: list[list[float]] = []
    for place in places:
        groups.append([place, 1.0])
        # A group is its middle and its size; groups that touch become one around their common middle.
        while len(groups) > 1 and groups[-1][0] - groups[-2][0] < (groups[-1][1] + groups[-2][1]) / 2 * least:
            (middle, size), (before, others) = groups.pop(), groups.pop()
            groups.append([(middle * size + before * others) / (size + others), size + others])
    return [middle + (index - (size - 1) / 2) * least for middle, size in groups for index in range(int(size))]


def draw_edges(axes: Axes, graph: Graph, floor: float, ceiling: float) -> None:
    """From-edges run along their range to the flight; to-edges rise from the flight through all ranges of their run."""
    left = axes.get_xlim()[0]
    for edge in graph.edges:
        vertex = graph.vertices[edge["position"]]
        hour, delay, colour = vertex["hour"], vertex["delay"], COLOURS[vertex["airport"]]
        if edge["kind"] == "from":
            axes.plot([left, hour], [delay, delay], color=colour, lw=0.8, alpha=0.55, zorder=2)
            continue
        begin = graph.span(edge["first"], floor, ceiling)[0]
        end = graph.span(edge["last"], floor, ceiling)[1]
        axes.plot([hour, hour], [delay, begin], color=colour, lw=0.9, ls=(0, (1, 2)), alpha=0.8, zorder=2)
        axes.plot([hour, hour], [begin, end], color=colour, lw=1.1, alpha=0.7, zorder=2)


def draw_trends(axes: Axes, graph: Graph) -> None:
    """The steps of all trends, each up its flight's to-edge and along the later one's from-edge; the longest bold."""
    trends = pd.DataFrame({"positions": graph.trends})
    flights = pd.DataFrame(
        [{"position": place, "time": row["hour"], "delay": row["delay"]} for place, row in graph.vertices.items()]
    )
    others = len(axes.lines)
    patternlake.plot.trends(trends, flights, y="delay", label=None, elbows=True, ax=axes)
    axes.set_title("", loc="left")
    axes.get_legend().remove()
    steps = {step for trend in graph.trends for step in pairwise(trend)}
    for line in axes.lines[others : others + len(steps)]:
        line.set(**STEP)
    # Flights have signs of their own.
    axes.collections[-1].remove()


def draw_flights(axes: Axes, graph: Graph) -> None:
    """Event vertices: what left when, and how late."""
    longest = graph.trends[0]
    taken = [line.get_window_extent() for line in axes.lines if line.get_color() == LONGEST]
    labels = []
    for position, vertex in sorted(graph.vertices.items(), key=lambda item: item[0] not in longest):
        edge, weight = (LONGEST, "bold") if position in longest else ("white", "normal")
        colour, sign = COLOURS[vertex["airport"]], SIGNS[vertex["airport"]]
        at = (vertex["hour"], vertex["delay"])
        marker = axes.plot(*at, marker=sign, ms=10, color=colour, mec=edge, mew=1.8, zorder=5)[0]
        taken.append(marker.get_window_extent())
        label = axes.annotate(
            f"{vertex['flight']}  +{vertex['delay']:.0f}", xy=at, xytext=(8, -4), textcoords="offset points",
            fontsize=9, color=INK, weight=weight, zorder=6,
            bbox={"boxstyle": "round,pad=0.12", "fc": "white", "ec": "none", "alpha": 0.75},
        )  # fmt: skip
        labels.append(label)
    for label in labels:
        taken.append(place(label, axes, taken))


def place(label: Annotation, axes: Axes, taken: Sequence[Bbox]) -> Bbox:
    """Move a label to the first place around its flight where it covers nothing."""
    box = label.get_window_extent()
    for below, above in ((-4, 4), (-16, 16), (-28, 28)):
        for right, up in ((True, False), (True, True), (False, True), (False, False)):
            label.xyann = (8 if right else -8, above if up else below)
            label.set(ha="left" if right else "right", va="bottom" if up else "top")
            box = label.get_window_extent()
            inside = axes.bbox.x0 < box.x0 and box.x1 < axes.bbox.x1 and axes.bbox.y0 < box.y0 < box.y1 < axes.bbox.y1
            if inside and not box.count_overlaps(taken):
                return box
    return box


def dress(figure: Figure, axes: Axes, graph: Graph) -> None:
    """Titles, axes and the key to the signs."""
    trend = [graph.vertices[position] for position in graph.trends[0]]
    axes.yaxis.tick_right()
    axes.yaxis.set_label_position("right")
    axes.set_yticks([5 * 2**power for power in range(12) if 5 * 2**power <= axes.get_ylim()[1]])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylabel("minutes late, each mark twice the one below")
    axes.xaxis.set_major_locator(MultipleLocator(1))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda hour, _: f"{hour % 24:.0f}:00"))
    axes.set_xlabel("departure, New York time")
    axes.spines["left"].set_visible(False)
    axes.spines["right"].set_visible(True)
    figure.text(
        0.02, 0.955, f"Delays that double: flights to {graph.window['key']} on {graph.window['day']}", fontsize=16,
        weight="bold", color=INK,
    )  # fmt: skip
    chain = " → ".join(f"{row['flight']} +{row['delay']:.0f}" for row in trend)
    figure.text(
        0.02, 0.915, f"The longest of {len(graph.trends)} trends in this window, from {trend[0]['airport']}: {chain}",
        fontsize=11.5, color=LONGEST,
    )  # fmt: skip
    figure.text(0.02, 0.876, "ranges of delay", fontsize=9.5, color=INK, style="italic")
    hint = "Where a level line meets the solid upright of an earlier flight, the doubling holds."
    figure.text(0.125, 0.876, hint, fontsize=9.5, color=INK, style="italic")
    figure.legend(handles=signs(graph), loc="lower center", ncols=3, fontsize=9, frameon=False)


def signs(graph: Graph) -> list[Artist]:
    """What each sign of the picture stands for."""

    def line(label: str, **style: Any) -> Line2D:
        return Line2D([], [], **{"color": QUIET, "label": label, **style})

    airports = sorted({row["airport"] for row in graph.vertices.values()})
    return [
        *(line(f"flight from {name}", marker=SIGNS[name], ms=9, ls="", color=COLOURS[name]) for name in airports),
        line("a step: same airport, less than 2 hours later", **STEP),
        Patch(fc=BAND[1], ec=QUIET, label="attribute vertex: a range of delays"),
        line("from-edge: range → flight with that delay", lw=0.9),
        line("to-edge: flight → ranges from twice its delay on", lw=1.6),
        line("the longest trend", lw=3, color=LONGEST),
    ]

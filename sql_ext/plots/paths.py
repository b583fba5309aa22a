"""The ways that match_paths finds, as a Sankey diagram: names at places, and bands from each to the next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import patternlake.sql_ext.plots.drawing as drawing
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.paths.request import DEFAULT_AFTER, DEFAULT_BEFORE
from patternlake.udfs.paths.result import OTHER
from patternlake.udfs.shown_text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PATHS = 40
MOST_PLACES = 20
_FLOW = 12.0
"""Height of all occurrences together; that of a line of text is 1."""
_GAP = 0.35
"""Between two nodes."""
_LINE = 0.19
"""Inches of a line of text."""
_NODE = 0.06
"""Width of a node; from one place to the next it is 1."""

Node = tuple[int, str]
"""A place and a name: the same name at two places is two nodes."""


@dataclass
class Ways:
    """The paths as a graph.

    Attributes
    ----------
    through
        How many occurrences go through each node.
    bands
        How many go from one node to one at the next place.
    """

    through: dict[Node, int] = field(default_factory=lambda: defaultdict(int))
    bands: dict[tuple[Node, Node], int] = field(default_factory=lambda: defaultdict(int))


@dataclass(frozen=True)
class Box:
    """Where a node is drawn: its upper edge, its height, and what it has of the column for its name."""

    top: float
    height: float
    room: float

    @property
    def middle(self) -> float:
        """Where its name stands."""
        return self.top + self.height / 2


@drawing.as_written
def paths(
    frame: drawing.Frame,
    *,
    around: str | None = None,
    before: int = DEFAULT_BEFORE,
    after: int = DEFAULT_AFTER,
    ax: Axes | None = None,
) -> Axes:
    """Draw paths as a Sankey diagram: a node for each name at each place, a band for each step from one to the next.

    Parameters
    ----------
    frame
        An answer of match_paths, of one group: at most 40 paths of 20 names. `max_paths` of match_paths chooses the
        most frequent.
    around, before, after
        As given to match_paths. With `around`, paths stand so that this event is in one column; where a path has it
        more than once, the last one counts that has at most `before` names before it and `after` behind it. Without,
        all paths begin in the first column.
    ax
        To draw on; None: new ones.

    Returns
    -------
    matplotlib.axes.Axes
        Columns are at the numbers of their places: 0 is that of `around`, or the first. Nodes are its rectangles, bands
        its paths; texts are the names with their occurrences.

    Raises
    ------
    ArgumentError
        A column is missing, there are no rows or too many, they are of several groups, a path is too long, or `around`
        is not in one.
    StateError
        matplotlib is not installed.
    """
    found = drawing.rows(frame, "paths", ("path", "occurrences", "share"), MOST_PATHS)
    group = drawing.one_group(found, "paths")
    given = [[drawing.show_name(name) for name in path] for path in found["path"]]
    counts = [int(count) for count in found["occurrences"]]
    ways = _ways(given, counts, around, before, after)
    boxes = _place(ways)
    places = sorted({place for place, _ in boxes})
    height = max(box.top + box.room for box in boxes.values())
    column = max(1.3, max(drawing.text_width(_label(node, ways)) for node in boxes) / 72 + 0.35)
    ax = drawing.axes(ax, width=max(6.0, 0.6 + column * len(places)), height=1.6 + _LINE * height)
    _draw(ax, ways, boxes, around)
    # The names of the last column stand to the right of its nodes.
    ax.set_xlim(places[0] - 0.1, places[-1] + 1)
    ax.set_ylim(height, -_GAP)
    ax.set_yticks([])
    ax.set_xticks(places, [_place_name(place, around) for place in places], ha="left", parse_math=False)
    ax.set_xlabel("place in the path" if around is None else "names before and after the event")
    shown = plural(sum(counts), "occurrence")
    of_all = f"{100 * float(found['share'].sum()):.3g} % of all"
    what = "Paths" if around is None else f"Paths around {drawing.shorten_name(around)}"
    drawing.entitle(ax, f"{what}: {plural(len(found), 'path')}, {shown}, {of_all}{group}")
    drawing.bare(ax)
    ax.spines["left"].set_visible(False)
    return ax


def _ways(paths: Sequence[Sequence[str]], counts: Sequence[int], around: str | None, before: int, after: int) -> Ways:
    ways = Ways()
    for path, count in zip(paths, counts, strict=True):
        first = 0 if around is None else -_middle(path, around, before, after)
        if len(path) > MOST_PLACES:
            raise ArgumentError(
                f"plot.paths: a path has {len(path):,} names, and {MOST_PLACES} fit; ask match_paths for shorter ones "
                "with around =>, before => and after =>, or with within =>"
            )
        nodes = [(place, name) for place, name in enumerate(path, start=first)]
        for node in nodes:
            ways.through[node] += count
        for pair in pairwise(nodes):
            ways.bands[pair] += count
    return ways


def _middle(path: Sequence[str], around: str, before: int, after: int) -> int:
    """The place in a path of the event that it leads to and from."""
    fitting = [
        place
        for place, name in enumerate(path)
        if name == around and place <= before and len(path) - 1 - place <= after
    ]
    if not fitting:
        raise ArgumentError(
            f"plot.paths: the path {', '.join(path)} has no {around!r} with at most {before} names before it and "
            f"{after} behind it; give around, before and after as to match_paths"
        )
    return fitting[-1]


def _place(ways: Ways) -> dict[Node, Box]:
    """Stack the nodes of each place, those that are near in the column before near each other."""
    places = sorted({place for place, _ in ways.through})
    columns = {place: [node for node in ways.through if node[0] == place] for place in places}
    scale = _FLOW / max(sum(ways.through[node] for node in column) for column in columns.values())
    boxes: dict[Node, Box] = {}
    for place in places:
        came = _came_from(ways, place, boxes)
        # What is beyond the alphabet stands at the bottom; what nothing leads to, below what something does.
        order = sorted(
            columns[place],
            key=lambda node: (node[1] == OTHER, came.get(node, float("inf")), -ways.through[node], node[1]),
        )
        top = 0.0
        for node in order:
            height = ways.through[node] * scale
            room = max(height, 1.0)
            boxes[node] = Box(top + (room - height) / 2, height, room)
            top += room + _GAP
    return boxes


def _came_from(ways: Ways, place: int, boxes: Mapping[Node, Box]) -> dict[Node, float]:
    """How high the nodes lie on average that lead to each node of a place."""
    weights: defaultdict[Node, float] = defaultdict(float)
    totals: defaultdict[Node, int] = defaultdict(int)
    for (left, right), count in ways.bands.items():
        if right[0] == place:
            weights[right] += count * boxes[left].middle
            totals[right] += count
    return {node: weights[node] / total for node, total in totals.items()}


def _draw(ax: Axes, ways: Ways, boxes: Mapping[Node, Box], around: str | None) -> None:
    from matplotlib.patches import Patch, PathPatch, Rectangle
    from matplotlib.path import Path

    names = sorted({name for _, name in boxes if name != OTHER})
    colours = {name: drawing.COLOURS[place % len(drawing.COLOURS)] for place, name in enumerate(names)}
    colours[OTHER] = drawing.QUIET
    is_middle = {node: around is not None and node == (0, around) for node in boxes}
    scale = {node: box.height / ways.through[node] for node, box in boxes.items()}
    left_used: defaultdict[Node, float] = defaultdict(float)
    right_used: defaultdict[Node, float] = defaultdict(float)
    for (left, right), count in sorted(ways.bands.items(), key=lambda each: [boxes[node].top for node in each[0]]):
        width = count * scale[left]
        begin, end = boxes[left].top + left_used[left], boxes[right].top + right_used[right]
        left_used[left] += width
        right_used[right] += width
        x1, x2 = left[0] + _NODE, right[0]
        half = (x1 + x2) / 2
        corners = [
            (x1, begin), (half, begin), (half, end), (x2, end),
            (x2, end + width), (half, end + width), (half, begin + width), (x1, begin + width), (x1, begin),
        ]  # fmt: skip
        codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
        ax.add_patch(PathPatch(Path(corners, codes), facecolor=colours[left[1]], alpha=0.35, lw=0))
    for node, box in boxes.items():
        colour = drawing.MARK if is_middle[node] else colours[node[1]]
        ax.add_patch(Rectangle((node[0], box.top), _NODE, box.height, facecolor=colour, lw=0, zorder=3))
        ax.text(
            node[0] + _NODE + 0.02, box.middle, _label(node, ways), va="center", ha="left", fontsize=9, zorder=4,
            color=drawing.MARK if is_middle[node] else drawing.QUIET if node[1] == OTHER else drawing.INK,
            weight="bold" if is_middle[node] else "normal",
            bbox={"facecolor": "white", "alpha": 0.6, "lw": 0, "pad": 0.6},
        )  # fmt: skip
    handles = [
        Patch(
            color=drawing.COLOURS[0],
            alpha=0.35,
            label="a step: as wide as its occurrences, in the colour of its first name",
        ),
        Patch(facecolor=drawing.COLOURS[0], label="a name at its place, with its occurrences"),
    ]
    if around is not None:
        handles.append(Patch(color=drawing.MARK, label="the event that paths lead to and from"))
    if any(name == OTHER for _, name in boxes):
        handles.append(Patch(color=drawing.QUIET, label=f"{OTHER}: names beyond the most frequent"))
    drawing.explain(ax, handles)


def _label(node: Node, ways: Ways) -> str:
    return f"{drawing.shorten_name(node[1], 22)}  {ways.through[node]:,}"


def _place_name(place: int, around: str | None) -> str:
    if around is None:
        return str(place + 1)
    if not place:
        return drawing.shorten_name(around, 22)
    return f"{abs(place)} {'before' if place < 0 else 'after'}"

"""How wrong a whole answer of the sketch can be: false rows to expect, and the chance of any.

Source: thesis 4.4.1 (4.2, 4.3: the chance that any of q filters errs), with the counted density of each filter in the
place of an estimated one, and SPEC section 2.

A row is false if it rests on a false claim: a node whose filter has a name that the node does not hold. Before it is
asked, each node of the answer errs for a name with (ones/m)^k; so of one name x false claims are to be expected at
most, the sum of these, wherever the name really is. How many rows a false claim spoils is seen in the answer: of each
name, those claims are taken for false that most rows rest on, x + 2√x of them. (They are about Poisson's; where a name
has few claims, the x that there are on average would be too few of them on average.) Of a name that the stream never
had every claim is false. Whether one that the stream has is in the part that is asked for is not known: there is one
more false claim then, for an only one may be it.

The bounds of single rows don't add up to this. A row's bound is that of the few filters that it rests on; how many
others could have made a row is not in it.

A departure: the filters above the answer's nodes, which deny most false claims before they are made, don't count. A
filter and the one above it err together more often than apart, for they share hashes, and the bound has to hold.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from patternlake.udfs.limits import by_partition
from patternlake.udfs.sketch.gathering import gathered
from patternlake.udfs.sketch.kernels.hits import Hits
from patternlake.udfs.sketch.kernels.matching import node_rows, search
from patternlake.udfs.sketch.kernels.probe import false_positive_rate
from patternlake.udfs.sketch.query import IntArray, SketchPattern
from patternlake.udfs.sketch.request import SketchRequest
from patternlake.udfs.sketch.windows import Window

ROWS = pa.schema(
    [
        ("rows", pa.int64()),
        ("expected_false", pa.float64()),
        ("any_false_bound", pa.float64()),
        ("exact", pa.bool_()),
        ("truncated", pa.bool_()),
    ]
)
CLAIMS = pa.schema([("segment", pa.int64()), ("expected", pa.float64()), ("none", pa.float64())])
"""Of some of a segment's nodes and any one name: the false claims to expect at most, and the logarithm of the chance
that there is none."""


@dataclass(frozen=True)
class Resting:
    """What the rows of an answer rest on.

    Attributes
    ----------
    rows
        How many rows there are.
    by_claim
        For each name of the pattern that rows can rest on, int64[c]: of each of its c claims that a row rests on, how
        many rows do.
    truncated
        Whether rows were left out.
    """

    rows: int
    by_claim: tuple[IntArray, ...]
    truncated: bool


def false_claims(request: SketchRequest, rows: pa.Table) -> pa.Table:
    """The false claims to expect of the nodes that answer a question.

    Parameters
    ----------
    request
        The request.
    rows
        Of the table `sketch_nodes`: ``segment``, ``level``, ``m``, ``k``, ``ones``, ``topmost``, ``pos_lo``,
        ``pos_hi``, ``time_lo``, ``time_hi``.

    Returns
    -------
    Rows of `CLAIMS`, one for each row that has nodes of the answer.
    """
    found: list[tuple[int, float, float]] = []
    lists = {name: rows[name].combine_chunks() for name in (*_LISTS, "topmost")}
    plain = {name: rows[name].to_pylist() for name in ("segment", "level", "m", "k")}
    for number in range(rows.num_rows):
        segment, level, m, k = (plain[name][number] for name in ("segment", "level", "m", "k"))
        wanted = max(request.level, request.floor(segment))
        if level > wanted or (level < wanted and not request.uniform):
            continue
        of_row = {name: column[number].values.to_numpy(zero_copy_only=False) for name, column in lists.items()}
        inside = request.window.of_intervals(*(of_row[name] for name in _LISTS[1:]))
        if level < wanted:
            inside &= of_row["topmost"]
        one = false_positive_rate(of_row["ones"][inside], m, k)
        with np.errstate(divide="ignore"):
            none = np.log1p(-one) * request.expressions
        if len(one):
            found.append((segment, float(-np.expm1(none).sum()), float(none.sum())))
    columns = list(zip(*found, strict=True)) if found else [(), (), ()]
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, CLAIMS, strict=True)], schema=CLAIMS
    )


_LISTS = ("ones", "pos_lo", "pos_hi", "time_lo", "time_hi")


def answer_error(
    request: SketchRequest, hits: pa.Array, claims: pa.Table, keys: dict[int, int] | None, unseen: Collection[str]
) -> pa.Table:
    """The error of one approximate answer.

    Parameters
    ----------
    request
        The request.
    hits
        Array of `gathering.HITS_TYPE`.
    claims
        Rows of `CLAIMS`, of every node that the question is put to.
    keys
        Where every key is asked for: how many of them each segment is asked for.
    unseen
        Names that the stream never had.

    Returns
    -------
    One row of `ROWS`.

    Raises
    ------
    ArgumentError
        A partition, or the answer where there is none, has more rows than asked for.
    """
    segments = claims["segment"].to_pylist()
    asked = np.array([1 if keys is None else keys.get(segment, 0) for segment in segments], np.float64)
    expected = float(claims["expected"].to_numpy() @ asked)
    # A filter that is full denies nothing: −∞ for each of no keys is nothing.
    none = float(sum(each * times for each, times in zip(claims["none"].to_pylist(), asked, strict=True) if times))
    resting = rests_on(request, hits)
    part = request.one_key or request.window != Window()
    false = [most_false(expected, in_part=part, unseen=name in unseen) for name in names_of(request.pattern)]
    spoilt, chance = bounds(resting, false, none)
    truncated = resting.truncated or request.dropped is not None
    values = [resting.rows, spoilt, chance, False, truncated]
    return pa.Table.from_arrays(
        [pa.array([value], field.type) for value, field in zip(values, ROWS, strict=True)], schema=ROWS
    )


def most_false(expected: float, *, in_part: bool, unseen: bool) -> float:
    """How many claims of a name are taken for false.

    Parameters
    ----------
    expected
        False claims to expect of one name.
    in_part
        Only a part of the stream is asked, in which the name may not be.
    unseen
        The stream never had the name.
    """
    if unseen:
        return math.inf
    return expected + 2.0 * math.sqrt(expected) + (1.0 if in_part and expected else 0.0)


def bounds(resting: Resting, false: Sequence[float], none: float) -> tuple[float, float]:
    """False rows to expect, and the chance of any, both at most; none where there are no rows.

    Parameters
    ----------
    resting
        What the answer's rows rest on.
    false
        For each of its names, how many claims are taken for false.
    none
        Of any one name: the logarithm of the chance that no claim is false.
    """
    spoilt = sum(_greatest(counts, most) for counts, most in zip(resting.by_claim, false, strict=True))
    certain = any(len(counts) and most == math.inf for counts, most in zip(resting.by_claim, false, strict=True))
    chance = 1.0 if certain else -math.expm1(none * len(resting.by_claim))
    return float(min(spoilt, resting.rows)), float(min(chance, 1.0)) if resting.rows else 0.0


def _greatest(counts: IntArray, number: float) -> float:
    """The sum of the greatest so many of some counts; of a part of one, that part."""
    if number >= len(counts):
        return float(counts.sum())
    falling = np.sort(counts)[::-1]
    whole = int(number)
    return float(falling[:whole].sum() + (number - whole) * falling[whole])


def rests_on(request: SketchRequest, hits: pa.Array) -> Resting:
    """What the rows of one approximate answer rest on; parameters and errors as of `answer_error`."""
    found, offsets, keys = gathered(request, hits)

    def run(first: int, last: int) -> tuple[int, list[IntArray], bool]:
        mine = found.take(np.arange(offsets[first], offsets[last]))
        cut = request.truncate and last - first <= 1
        rows = node_rows(request.pattern, mine, offsets[first : last + 1] - offsets[first])
        layout = request.pattern.layout(request.policy)
        total, _, steps = search(rows, layout, request.policy, request.after_match, request.max_matches, cut)
        return len(steps), rows_by_claim(request.pattern, mine, steps), len(steps) < total

    parts = list(by_partition(0, len(keys), run))
    names = range(len(names_of(request.pattern)))
    by_claim = tuple(np.concatenate([part[1][name] for part in parts]) for name in names)
    return Resting(sum(part[0] for part in parts), by_claim, any(part[2] for part in parts))


def rows_by_claim(pattern: SketchPattern, hits: Hits, steps: IntArray) -> list[IntArray]:
    """For each name that rows can rest on, how many rows rest on each of its claims.

    Parameters
    ----------
    pattern
        The pattern.
    hits
        The nodes.
    steps
        int64[r, slots]: the node of each step of each row.
    """
    found = []
    for name, slots in names_of(pattern).items():
        claims: NDArray[np.bool_] = hits.present[:, pattern.names.index(name)]
        row, slot = np.nonzero(claims[steps[:, slots]])
        pairs = np.unique(np.stack([row, steps[:, slots][row, slot]], axis=1), axis=0)
        _, counts = np.unique(pairs[:, 1], return_counts=True)
        found.append(counts.astype(np.int64))
    return found


def names_of(pattern: SketchPattern) -> dict[str, Sequence[int]]:
    """The names that rows can rest on, each with the slots that may be it; what is denied makes no row."""
    found: dict[str, list[int]] = {}
    for place, slot in enumerate(pattern.slots):
        for choice in slot.alternatives:
            places = found.setdefault(choice.name, [])
            if place not in places:
                places.append(place)
    return dict(found)

"""How wrong a whole answer of the sketch can be: false rows to expect, and the chance of any.

Source: thesis 4.3, 4.4.1, with the counted density of each filter in the place of an estimated one; SPEC section 2.

A row is false if it rests on a false claim: a node whose filter has a name that the node does not hold. Which nodes
may have made one, and how often they do, `possible_claims` says. A node errs for a name whatever else the answer
holds, so (Mecke's formula) the false rows are on average the sum, over all nodes that might have claimed a name and
did not, of the odds that they claim it, times the rows that would then rest on them. Those rows are counted: some of
these nodes, drawn by their odds, claim the name, and the pattern is matched again.

That sum is right on average over seeds, also where an answer without the claim has no row. An answer's own false rows
are no more than its rows, so where there may be no true claim of a name at all (`could_be_all_false`) all that rest on
a claim of it are taken for false. Of a name that the stream never had they are.

The bounds of single rows don't add up to this. A row's bound is that of the few filters that it rests on; how many
others could have made a row is not in it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.limits import by_partition
from patternlake.udfs.sketch.gathering import gather_hits
from patternlake.udfs.sketch.kernels.hits import Hits
from patternlake.udfs.sketch.kernels.matching import node_rows, search
from patternlake.udfs.sketch.one_more_claim import effect_of_one_more
from patternlake.udfs.sketch.possible_claims import fit_to_names
from patternlake.udfs.sketch.query import SketchPattern
from patternlake.udfs.sketch.request import SketchRequest
from patternlake.udfs.sketch.windows import Window

ROWS = pa.schema(
    [
        ("rows", pa.int64()),
        ("expected_false", pa.float64()),
        ("any_false_bound", pa.float64()),
        ("truncated", pa.bool_()),
    ]
)
_PLAUSIBLE = 0.01
"""Claims that chance makes this often may all be false."""
_SPREAD = 2.0
"""How far the number of false claims of a name may be from the expected one x: its variance is x + x² / `_SPREAD`.

A name errs more often in one sketch than in another, and in nodes side by side together."""
_CERTAIN = 0.99
"""A chance of so much and more is given as 1."""
_NEVER = 1e-3
"""That claims are all false is not reckoned with where chance makes so many less often."""
_NO_LESS = 1.75
"""What the sum is taken times: on average over a few hundred seeds no fewer rows are false either."""
_SURER = 2.0
"""The same of the chance that there is any: of the answer at hand it is known from a few nodes only."""


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


def answer_error(request: SketchRequest, hits: pa.Array, claims: pa.Table, unseen: Collection[str]) -> pa.Table:
    """The error of one approximate answer.

    Parameters
    ----------
    request
        The request.
    hits
        Array of `gathering.HITS_TYPE`, of all segments whose tops may hold a name.
    claims
        Rows of `possible_claims.CLAIMS`, of all segments.
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
    found, offsets, keys = gather_hits(request, hits)
    resting = rests_on(request, found, offsets)
    claims = fit_to_names(claims)
    number, expected = (claims[name].to_numpy() for name in ("name", "expected"))
    false_rows = likely = 0.0
    for name, counts in zip(names_of(request.pattern), resting.by_claim, strict=True):
        if len(counts) == 0:
            continue
        place = request.pattern.names.index(name)
        chosen = number == place
        most = float(expected[chosen].sum())
        share, rows = (
            effect_of_one_more(request, found, offsets, keys, place, claims.filter(pa.array(chosen)))
            if most
            else (0, 0)
        )
        # Of the whole stream a name that it had has a true claim, on which a row may rest or not.
        elsewhere = int(found.present[:, place].sum()) > len(counts)
        absent = request.one_key or request.window != Window() or elsewhere
        if name in unseen or (absent and could_be_all_false(len(counts), most * share)):
            false_rows, likely = false_rows + float(counts.sum()), math.inf
        else:
            false_rows, likely = false_rows + _NO_LESS * most * rows, likely + most * share
    spoilt = min(false_rows, float(resting.rows))
    # Any false row needs a false claim, and there is none more often than there are on average.
    chance = min(-math.expm1(-_SURER * likely), 1.0 if likely == math.inf else _SURER * spoilt)
    chance = 1.0 if chance >= _CERTAIN else chance
    truncated = resting.truncated or request.dropped is not None
    values = [resting.rows, spoilt, chance if resting.rows else 0.0, truncated]
    return pa.Table.from_arrays(
        [pa.array([value], field.type) for value, field in zip(values, ROWS, strict=True)], schema=ROWS
    )


def could_be_all_false(claims: int, expected: float) -> bool:
    """Whether chance makes as many claims as there are, where `expected` are on average and no true one is needed.

    Examples
    --------
    >>> could_be_all_false(1, 0.01), could_be_all_false(2, 0.01), could_be_all_false(18, 0.5)
    (True, False, False)
    """
    # Poisson's distribution, of a mean that is itself drawn (gamma): the negative binomial one.
    # One claim fewer, as what counts is how many they are on average, and n P(n) is about x P(n - 1).
    share = expected / (expected + _SPREAD)
    term = (1.0 - share) ** _SPREAD
    fewer = 0.0
    for count in range(claims - 1):
        fewer += term
        term *= share * (_SPREAD + count) / (count + 1)
    return 1.0 - fewer > _PLAUSIBLE and 1.0 - fewer - term >= _NEVER


def rests_on(request: SketchRequest, found: Hits, offsets: IntArray) -> Resting:
    """What the rows of one approximate answer rest on, given the nodes of each key; errors as of `answer_error`."""

    def run(first: int, last: int) -> tuple[int, list[IntArray], bool]:
        mine = found.take(np.arange(offsets[first], offsets[last]))
        cut = request.truncate and last - first <= 1
        rows = node_rows(request.pattern, mine, offsets[first : last + 1] - offsets[first])
        layout = request.pattern.layout(request.policy)
        total, _, steps = search(rows, layout, request.policy, request.after_match, request.max_matches, cut)
        return len(steps), rows_by_claim(request.pattern, mine, steps), len(steps) < total

    parts = list(by_partition(0, len(offsets) - 1, run))
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

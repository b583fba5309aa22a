"""Which primitives take which events, and the codes of the values that joins compare."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.events import Events
from patternlake.udfs.language.predicate.columns import Column, distinct_codes
from patternlake.udfs.machines.kernels.workspace import NONE
from patternlake.udfs.machines.query import Primitive


def matching_primitives(primitives: Sequence[Primitive], events: Events) -> tuple[IntArray, IntArray]:
    """The primitives that take each of n events, joins apart.

    Parameters
    ----------
    primitives
        P of them.
    events
        The events, with the columns that predicates read.

    Returns
    -------
    int64[n + 1], int64[k]
        Where the primitives of each event begin among those of all, and these.

    Raises
    ------
    ArgumentError
        A column that a predicate reads is missing.
    """
    names = events.names
    place = {name: number for number, name in enumerate(events.vocabulary)}
    by_name: list[list[int]] = [[] for _ in events.vocabulary]
    taken, found = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for number, primitive in enumerate(primitives):
        if primitive.define is not None:
            taken.append(np.flatnonzero(events.truth(primitive.define)))
            found.append(np.full(len(taken[-1]), number, np.int64))
        elif primitive.takes in place:
            by_name[place[primitive.takes]].append(number)
    counts = np.array([*map(len, by_name), 0], np.int64)
    starts = np.cumsum(counts) - counts
    often = counts[names]
    named = np.repeat(np.arange(len(names)), often)
    within = np.arange(len(named)) - np.repeat(np.cumsum(often) - often, often)
    flat = np.array([number for some in by_name for number in some], np.int64)
    taken.append(named)
    found.append(flat[np.repeat(starts[names], often) + within] if len(named) else np.empty(0, np.int64))
    of = np.concatenate(taken)
    order = np.argsort(of, kind="stable")
    at = np.searchsorted(of[order], np.arange(len(names) + 1)).astype(np.int64)
    return at, np.concatenate(found)[order]


class Codes:
    """Numbers for the values of joined columns; equal values of any columns have one number, as long as this lives."""

    def __init__(self) -> None:
        self.code: dict[str, int] = {}
        self.texts: list[str] = []

    def of(self, column: Column) -> IntArray:
        """int64[n]: codes of the values of a column, -1 for NULL."""
        values = column.values
        if column.type == "double":
            # Equal as Spark compares: both zeros are one, and so are all NaNs.
            values = np.where(np.isnan(values), np.nan, values + 0.0)
        places, distinct = distinct_codes(values)
        numbers = np.array([self.number(str(value)) for value in distinct.tolist()], np.int64)
        return np.where(np.broadcast_to(column.known, places.shape), numbers[places], NONE)

    def number(self, text: str) -> int:
        """The code of a value's text."""
        if text not in self.code:
            self.code[text] = len(self.texts)
            self.texts.append(text)
        return self.code[text]

"""Fewer candidates to judge: equalities and comparisons with what is bound already.

A condition that a slot's column equals a column of an earlier slot is looked up instead of tried; for one that compares
them, starts that no later event can satisfy are given up at once. The conditions are still judged afterwards, so what
is done here may let too much through, never too little.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.events import Events
from patternlake.udfs.language.predicate.columns import Column, distinct_codes
from patternlake.udfs.language.predicate.expressions import Call, Expression, Field
from patternlake.udfs.language.predicate.predicates import Reference, value_of
from patternlake.udfs.sketch.conditions import Condition
from patternlake.udfs.sketch.kernels.partials import ragged
from patternlake.udfs.sort_keys import order_keys

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_ORDERED = ("bigint", "double", "timestamp", "date")


class Candidates:
    """The events that a slot accepts, and the conditions that narrow them.

    Parameters
    ----------
    slot
        The slot; conditions may refer to it and to earlier ones.
    events
        int64[c]: the events that it accepts, ascending.
    conditions
        Those that are judged when it is filled.
    all_events
        All of them.
    """

    def __init__(self, slot: int, events: IntArray, conditions: Iterable[Condition], all_events: Events) -> None:
        self.slot, self.all_events = slot, all_events
        self.events = events
        self.sorted = events
        self.order = events
        self.partner: tuple[int, IntArray] | None = None
        self.limits: list[_Limit] = []
        for condition in conditions:
            for own, sign, other in _sides(condition, slot):
                if sign == "=" and self.partner is None and isinstance(other, Field):
                    self.look_up(all_events.column(own.column), condition.slot_of[other.reference], other.reference)
                elif sign != "=" and all_events.column(own.column).type in _ORDERED:
                    self.limits.append(_Limit(condition, sign, other, all_events.column(own.column), events))

    def look_up(self, own: Column, slot: int, reference: Reference) -> None:
        """Sort the events by the value that must be equal to that of an earlier slot."""
        other = self.all_events.column(reference.column)
        if own.type != other.type:
            return
        n = len(own.values)
        codes, _ = distinct_codes(np.concatenate(order_keys(own, other, ordered=False)))
        keys = codes[self.events] * (n + 1) + self.events
        order = np.argsort(keys, kind="stable")
        self.sorted, self.order = self.events[order], keys[order]
        self.partner = slot, codes[n:] * (n + 1)

    def between(self, bound: IntArray, low: IntArray, high: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
        """All (row, event) with ``low[row] <= event < high[row]``, in order, in pieces."""
        if self.partner is not None:
            slot, base = self.partner
            shift = base[bound[:, slot]]
            low, high = low + shift, high + shift
        first, last = np.searchsorted(self.order, low), np.searchsorted(self.order, high)
        for row, place in ragged(first, last):
            yield row, self.sorted[place]

    def hopeless(self, bound: IntArray, low: IntArray) -> BoolArray:
        """The rows for which no event from `low` on meets some comparison: bool[r]."""
        result = np.zeros(len(bound), np.bool_)
        for limit in self.limits:
            result |= limit.hopeless(self.all_events, bound, np.searchsorted(self.events, low))
        return result


class _Limit:
    """A comparison of a slot's column with a value of earlier slots, and the column's extreme from each event on."""

    def __init__(self, condition: Condition, sign: str, other: Expression, own: Column, events: IntArray) -> None:
        self.condition, self.other = condition, other
        self.strict, self.greater = sign in "<>", sign[0] == ">"
        values = own.values[events].astype(np.float64)
        worst = -np.inf if self.greater else np.inf
        values = np.where(own.known[events], values, worst)
        # As Spark orders it, NaN is greater than every number: `maximum` keeps it, `fmin` passes over it.
        fold = np.maximum if self.greater else np.fmin
        self.extreme: NDArray[np.float64] = np.append(fold.accumulate(values[::-1])[::-1], worst)

    def hopeless(self, events: Events, bound: IntArray, place: IntArray) -> BoolArray:
        def resolve(reference: Reference) -> Column:
            return events.column(reference.column, bound[:, self.condition.slot_of[reference]])

        value = value_of(self.other, resolve)
        if value.type not in _ORDERED:
            return np.zeros(len(bound), np.bool_)
        against = np.broadcast_to(value.values, (len(bound),)).astype(np.float64)
        extreme = self.extreme[place]
        # Rounding to double may make unequal integers equal, never turn them round.
        passes = extreme >= against if self.greater else extreme <= against
        if self.strict and value.type == "double":
            passes = extreme > against if self.greater else extreme < against
        unsure = np.isnan(extreme) | np.isnan(against) | ~np.broadcast_to(value.known, (len(bound),))
        return ~(passes | unsure)


def _sides(condition: Condition, slot: int) -> Iterator[tuple[Reference, str, Expression]]:
    """A comparison of one column of `slot` with something of earlier slots, as (column, sign, something)."""
    root = condition.predicate.root
    if condition.taken or condition.negated is not None:
        return
    if not isinstance(root, Call) or root.operator not in _TURNED:
        return
    left, right = root.arguments
    for own, sign, other in ((left, root.operator, right), (right, _TURNED[root.operator], left)):
        if isinstance(own, Field) and condition.slot_of[own.reference] == slot:
            inside = [part.reference for part in other.walk() if isinstance(part, Field)]
            if inside and all(condition.slot_of[reference] < slot for reference in inside):
                yield own.reference, sign, other

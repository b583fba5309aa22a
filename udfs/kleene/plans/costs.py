"""What a node of a plan is expected to give and to cost.

Source: Behravesh et al., "Order of joins" and "Population of events in kleene": what decides is how many composites the
lower joins give, and that a repeated operand groups its events instead of multiplying rows. The paper gives no formula.
Here events of a class are taken to lie evenly: with n events, W of them in a window and shares p of the classes,
k plain operands in one order have ``n · p1 ⋯ pk · W^(k-1) / (k-1)!`` partial matches; conditions multiply by their
selectivities; a repeated operand keeps those rows in whose reach enough of its events are expected. Sixty operands of a
million events have more partial matches than a double can hold, so all is computed in logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.kleene.linearizations import Linearization
from patternlake.udfs.kleene.query import KleenePattern, Operand
from patternlake.udfs.language.predicate.expressions import Call
from patternlake.udfs.language.predicate.predicates import Predicate, names_admitted

Logs = NDArray[np.float64]
"""Natural logarithms; those of nothing are minus infinity."""

GUESSED = {"=": 0.1, "<>": 0.9, "<": 1 / 3, "<=": 1 / 3, ">": 1 / 3, ">=": 1 / 3}
"""Selectivity of a comparison that nothing is known about; 0.5 for any other condition."""

KLEENE_RIGHT = 1.01
"""What a repeated operand on the right of a join costs more than on the left (Algorithm 2 against Algorithm 1)."""


@dataclass(frozen=True)
class Statistics:
    """What is known of a stream.

    Attributes
    ----------
    counts
        Events per name; a DEFINE primitive may stand here too. A name that is missing has none.
    events
        All events; None: the sum of `counts`.
    keys
        Partitions that they lie in.
    duration
        Microseconds from the first event to the last; used for windows of time.
    selectivities
        Share of events, or pairs of events, for which a conjunct holds, or all conjuncts of a filter together: by its
        canonical text (`Predicate.sql`, ``[attr]`` as written).
    classes
        Events of operands, by their numbers, where they are known: then nothing is estimated for them.
    """

    counts: Mapping[str, float]
    events: float | None = None
    keys: float = 1
    duration: float = 0
    selectivities: Mapping[str, float] = field(default_factory=dict)
    classes: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in (*self.counts.items(), *self.selectivities.items(), ("keys", self.keys)):
            if not value >= 0 or math.isinf(value):
                raise ArgumentError(f"statistics: {name!r} is {value}; counts and selectivities are 0 or more")

    def scaled(self, share: float, *, by_key: bool) -> Statistics:
        """What is expected of a share of the events: of some keys, or of some time."""
        return replace(
            self,
            counts={name: count * share for name, count in self.counts.items()},
            events=self.total * share,
            keys=self.keys * share if by_key else self.keys,
            duration=self.duration if by_key else self.duration * share,
        )

    @property
    def total(self) -> float:
        """All events, at least one."""
        return max(1.0, sum(self.counts.values()) if self.events is None else self.events)


class Model:
    """Estimates for the nodes of one pattern."""

    def __init__(self, pattern: KleenePattern, statistics: Statistics) -> None:
        self.pattern = pattern
        self.statistics = statistics
        self.total = statistics.total
        per_key = self.total / max(1.0, statistics.keys)
        self.window = max(1.0, min(per_key, self._events_in_window(per_key)))
        self.classes = [
            float(statistics.classes.get(number, self._count(operand)))
            for number, operand in enumerate(pattern.operands)
        ]
        self.known_rows: dict[tuple[int, frozenset[int]], float] = {}
        self.needed = pattern.needed
        self.repeated = frozenset(number for number, operand in enumerate(pattern.operands) if operand.repeated)
        self.shares = [_log(size) - _log(self.total) for size in self.classes]
        self.unordered = [
            [stage for stage in line.stages if any(pair not in line.before for pair in pairwise(stage))]
            for line in pattern.linearizations
        ]
        self.selectivities = [
            (condition, self.selectivity(condition.predicate))
            for condition in pattern.conditions
            if condition.negated is None
        ]

    def _events_in_window(self, per_key: float) -> float:
        within = self.pattern.within
        if within is None:
            return per_key
        if within.counted:
            return float(within.amount)
        # Without a duration nothing tells how many events a window of time holds.
        known = self.statistics.duration
        return per_key * min(1.0, within.amount / known) if known > 0 else per_key

    def _count(self, operand: Operand) -> float:
        """Expected events of an operand, after its filter."""
        counts = self.statistics.counts
        if operand.define is None or operand.takes in counts:
            found = counts.get(operand.takes, 0.0)
        else:
            names = names_admitted(operand.define)
            found = self.total if names is None else sum(counts.get(name, 0.0) for name in names)
            found *= self.selectivity(operand.define) if names is None else 1.0
        if operand.filter is not None:
            whole = self.statistics.selectivities.get(operand.filter.sql())
            parts = operand.filter.conjuncts
            found *= math.prod(self.selectivity(part) for part in parts) if whole is None else whole
        return float(found)

    def selectivity(self, predicate: Predicate) -> float:
        """Share of events, or of combinations, for which a conjunct holds."""
        known = self.statistics.selectivities.get(predicate.sql())
        if known is not None:
            return float(known)
        root = predicate.root
        return GUESSED.get(root.operator, 0.5) if isinstance(root, Call) else 0.5

    def rows(self, line: int, operands: frozenset[int]) -> float:
        """Logarithm of the expected partial matches of some operands of a linearization, by its number; of repeated
        ones alone of their events.
        """
        if (line, operands) not in self.known_rows:
            self.known_rows[line, operands] = self._rows(line, operands)
        return self.known_rows[line, operands]

    def _rows(self, line: int, operands: frozenset[int]) -> float:
        plain = operands - self.repeated
        if not plain:
            return _log(sum(self.classes[number] for number in operands))
        size = len(plain)
        result = _log(self.total) + (size - 1) * _log(self.window) - math.lgamma(size)
        result += sum(map(self.shares.__getitem__, plain))
        linearization = self.pattern.linearizations[line]
        result += sum(_extensions(stage, plain, linearization) for stage in self.unordered[line])
        for name in self.pattern.along if size > 1 else ():
            result += (size - 1) * _log(self.statistics.selectivities.get(f"[{name}]", GUESSED["="]))
        for condition, share in self.selectivities:
            if plain.issuperset(condition.operands):
                result += _log(share)
        for number in operands - plain:
            result += _log(self._enough(number, operands, size))
        return result

    def _enough(self, number: int, operands: frozenset[int], plain: int) -> float:
        """Probability that a repeated operand finds enough events around a row."""
        expected = self.classes[number] / self.total * self.window / (plain + 1)
        for condition, share in self.selectivities:
            own = set(condition.operands)
            if condition.before is None and number in own and own <= operands:
                expected *= share
        few, term = 0.0, math.exp(-min(expected, 700.0))
        for count in range(min(self.needed[number], 1000)):
            few += term
            term *= expected / (count + 1)
        return max(0.0, 1.0 - few)

    def equalities(self, operands: Iterable[int]) -> Iterator[tuple[frozenset[int], float]]:
        """Operands of each equality among some operands, and the logarithm of its selectivity."""
        inside = frozenset(operands)
        for condition, share in self.selectivities:
            root = condition.predicate.root
            if isinstance(root, Call) and root.operator == "=" and inside.issuperset(condition.operands):
                yield frozenset(condition.operands), _log(share)

    def work(self, left: Side, right: Side, both: Logs, equal: Logs) -> Logs:
        """Logarithm of the expected work of joining two sides, neither of them empty: rows looked up, candidates looked
        at, rows given.

        Parameters
        ----------
        left, right
            The sides; of several joins at once where they hold arrays.
        both
            Logarithm of the rows of the join.
        equal
            Logarithm of the selectivity of all equalities between the sides.
        """
        rows = np.logaddexp(left.rows, right.rows)
        looked_at = left.rows + right.rows - _log(self.total) + _log(self.window) - np.log(np.maximum(1, left.plain))
        plain = np.logaddexp(np.logaddexp(rows + _log2_of_sum(rows, 2.0), looked_at + equal), both)
        found = np.where(
            right.plain == 0, left.rows + _log2_of_sum(right.rows, 1.0, 1.0) + math.log(KLEENE_RIGHT), plain
        )
        found = np.where(left.plain == 0, right.rows + _log2_of_sum(left.rows, 1.0, 1.0), found)
        return np.asarray(np.where((left.plain == 0) & (right.plain == 0), 0.0, found), np.float64)


@dataclass(frozen=True)
class Side:
    """A side of a join, or of several.

    Attributes
    ----------
    rows
        Logarithm of its rows.
    plain
        How many plain operands it has.
    """

    rows: Logs
    plain: NDArray[np.int64]


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _log2_of_sum(logs: Logs, more: float, beside: float = 0.0) -> Logs:
    """Logarithm of ``beside + log2(exp(logs) + more)``."""
    return np.asarray(np.log(beside + np.logaddexp(logs, math.log(more)) / math.log(2)), np.float64)


def _extensions(stage: Sequence[int], plain: frozenset[int], linearization: Linearization) -> float:
    """Logarithm of the number of orders that a linearization allows for some operands of a stage; of many an upper
    bound.
    """
    operands, before = [number for number in stage if number in plain], linearization.before
    if len(operands) > 10:
        unordered = not any((a, b) in before for a in operands for b in operands)
        return math.lgamma(len(operands) + 1) if unordered else 0.0
    ways = {frozenset[int](): 1}
    for _ in operands:
        longer: dict[frozenset[int], int] = {}
        for placed, count in ways.items():
            for number in operands:
                if number not in placed and all((b, number) not in before or b in placed for b in operands):
                    more = placed | {number}
                    longer[more] = longer.get(more, 0) + count
        ways = longer
    return math.log(sum(ways.values()))

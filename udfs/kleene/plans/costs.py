"""What a node of a plan is expected to give and to cost.

Source: Behravesh et al., "Order of joins" and "Population of events in kleene": what decides is how many composites the
lower joins give, and that a repeated operand groups its events instead of multiplying rows. The paper gives no formula.
Here events of a class are taken to lie evenly: with n events, W of them in a window and shares p of the classes,
k plain operands in one order have ``n · p1 ⋯ pk · W^(k-1) / (k-1)!`` partial matches; conditions multiply by their
selectivities; a repeated operand keeps those rows in whose reach enough of its events are expected.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.kleene.linearizations import Linearization
from patternlake.udfs.kleene.query import KleenePattern, Operand
from patternlake.udfs.language.predicate.expressions import Call
from patternlake.udfs.language.predicate.predicates import Predicate, names_admitted

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
        self.known_rows: dict[tuple[Linearization, frozenset[int]], float] = {}

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

    def rows(self, linearization: Linearization, operands: frozenset[int]) -> float:
        """Expected partial matches of some operands of a linearization; of repeated ones alone their events."""
        if (linearization, operands) not in self.known_rows:
            self.known_rows[linearization, operands] = self._rows(linearization, operands)
        return self.known_rows[linearization, operands]

    def _rows(self, linearization: Linearization, operands: frozenset[int]) -> float:
        taken = [self.pattern.operands[number] for number in sorted(operands)]
        if all(operand.repeated for operand in taken):
            return sum(self.classes[number] for number in operands)
        plain = [number for number in operands if not self.pattern.operands[number].repeated]
        size = len(plain)
        result = self.total * self.window ** (size - 1) / math.factorial(size - 1)
        for number in plain:
            result *= self.classes[number] / self.total
        result *= self._orders(linearization, frozenset(plain))
        for name in self.pattern.along:
            result *= self.statistics.selectivities.get(f"[{name}]", GUESSED["="]) ** (size - 1)
        for condition in self.pattern.conditions:
            if condition.negated is None and set(condition.operands) <= set(plain):
                result *= self.selectivity(condition.predicate)
        for number in operands - set(plain):
            result *= self._enough(number, operands, size)
        return result

    def _enough(self, number: int, operands: frozenset[int], plain: int) -> float:
        """Probability that a repeated operand finds enough events around a row."""
        expected = self.classes[number] / self.total * self.window / (plain + 1)
        for condition in self.pattern.conditions:
            own = set(condition.operands)
            if condition.negated is None and condition.before is None and number in own and own <= operands:
                expected *= self.selectivity(condition.predicate)
        few, term = 0.0, math.exp(-min(expected, 700.0))
        for count in range(min(self.pattern.needed[number], 1000)):
            few += term
            term *= expected / (count + 1)
        return max(0.0, 1.0 - few)

    def _orders(self, linearization: Linearization, plain: frozenset[int]) -> float:
        """In how many orders some plain operands may come."""
        result = 1.0
        for stage in linearization.stages:
            own = [number for number in stage if number in plain]
            result *= _extensions(tuple(own), linearization)
        return result

    def work(self, linearization: Linearization, left: frozenset[int], right: frozenset[int]) -> float:
        """Expected work of joining two sides: rows looked up, candidates looked at, rows given."""
        first, second = self.rows(linearization, left), self.rows(linearization, right)
        repeated = [all(self.pattern.operands[number].repeated for number in side) for side in (left, right)]
        if all(repeated):
            return 1.0
        if any(repeated):
            rows, others = (second, first) if repeated[0] else (first, second)
            work = rows * (1.0 + math.log2(others + 1.0))
            return work if repeated[0] else work * KLEENE_RIGHT
        plain = sum(not self.pattern.operands[number].repeated for number in left)
        looked_at = first * second / self.total * self.window / max(1, plain)
        for condition in self.pattern.conditions:
            own = set(condition.operands)
            equal = isinstance(condition.predicate.root, Call) and condition.predicate.root.operator == "="
            if equal and own <= left | right and own & left and own & right and condition.negated is None:
                looked_at *= self.selectivity(condition.predicate)
        both = first + second
        return both * math.log2(both + 2.0) + looked_at + self.rows(linearization, left | right)


def _extensions(operands: tuple[int, ...], linearization: Linearization) -> float:
    """How many orders of some operands a linearization allows; an upper bound for many of them."""
    if len(operands) > 10 and not any((a, b) in linearization.before for a in operands for b in operands):
        return float(math.factorial(len(operands)))
    if len(operands) > 10:
        return 1.0
    ways = {frozenset[int](): 1}
    for _ in operands:
        longer: dict[frozenset[int], int] = {}
        for placed, count in ways.items():
            for number in operands:
                if number not in placed and all(
                    (b, number) not in linearization.before or b in placed for b in operands
                ):
                    more = placed | {number}
                    longer[more] = longer.get(more, 0) + count
        ways = longer
    return float(sum(ways.values()))

"""Which tree to join along: dynamic programming over all trees that keep the order of the text.

Source: Behravesh et al., "Order of joins"; SPEC section 3 (plans). The cheapest tree of a run of operands is the
cheapest way to cut it in two, with the cheapest tree of either side; `costs.Model` says what each cut costs. Of equally
cheap trees that with repeated operands on the left of their joins wins.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.kleene.plans.costs import Logs, Model, Side, Statistics
from patternlake.udfs.kleene.plans.trees import NAMED, Join, Plan, named_plan, operands_in, plan_text, restricted
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.work import COLLECTED, MATCHES, Done, Key, Work, absence, aggregate

LARGEST = math.log(sys.float_info.max)


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the chosen tree.

    Attributes
    ----------
    plan
        The tree below and with it.
    depth
        0 for the root.
    rows
        Expected partial matches of all linearizations; of repeated operands alone their events.
    cost
        Expected work of the node and of all below it: rows and candidates looked at.
    """

    plan: Plan
    depth: int
    rows: float
    cost: float


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another tree.

    Attributes
    ----------
    name
        What it is called: ``left`` …, or ``cheapest``.
    plan, rows, cost
        As for `Node`.
    """

    name: str
    plan: Plan
    rows: float
    cost: float


@dataclass(frozen=True, slots=True)
class Planned:
    """A choice.

    Attributes
    ----------
    plan
        The chosen tree.
    name
        ``cheapest``, or ``forced``.
    nodes
        Its nodes, each before those below it.
    alternatives
        Other trees, the cheapest first.
    """

    plan: Plan
    name: str
    nodes: tuple[Node, ...]
    alternatives: tuple[Alternative, ...]

    @property
    def cost(self) -> float:
        """Expected work of the whole tree."""
        return self.nodes[0].cost

    @property
    def rows(self) -> float:
        """Expected partial matches at its root."""
        return self.nodes[0].rows


@dataclass(frozen=True, slots=True)
class PlanLine:
    """A line of `explain_choice`; `cost` and `rows` are None where it has none, `done` where nothing was measured."""

    text: str
    cost: float | None
    rows: float | None
    done: Done | None = None


def choose_plan(pattern: KleenePattern, statistics: Statistics, forced: Plan | None = None) -> Planned:
    """Choose a tree.

    Parameters
    ----------
    pattern
        The compiled pattern.
    statistics
        What is known of the stream.
    forced
        A tree that must be taken (`plans.forced_plan`); its costs are estimated all the same.

    Returns
    -------
    Planned
        With every other tree that has a name, and, beside a forced tree, the cheapest.
    """
    costs = _Costs(Model(pattern, statistics))
    cheapest = costs.cheapest(pattern.positive)
    chosen = cheapest if forced is None else forced
    others: dict[Plan, str] = {} if forced is None else {cheapest: "cheapest"}
    for name in NAMED:
        others.setdefault(named_plan(name, pattern.positive), name)
    alternatives = [
        (costs.cost(plan), Alternative(name, plan, show_logarithm(costs.rows(plan)), show_logarithm(costs.cost(plan))))
        for plan, name in others.items()
        if plan != chosen
    ]
    return Planned(
        plan=chosen,
        name="cheapest" if forced is None else "forced",
        nodes=tuple(costs.nodes(chosen, 0)),
        alternatives=tuple(other for _, other in sorted(alternatives, key=lambda one: one[0])),
    )


def explain_choice(pattern: KleenePattern, choice: Planned, work: Work | None = None) -> list[PlanLine]:
    """A choice as text: the tree, what is tested at which node, what comes after the joins, and the alternatives.

    Parameters
    ----------
    pattern, choice
        The pattern, and its plan.
    work
        What matching along it did; its lines say so then.

    Returns
    -------
    list of PlanLine
        In the order in which they are shown.
    """

    def done(*keys: Key) -> Done | None:
        return None if work is None else work.of(keys)

    head = f"plan {plan_text(pattern, choice.plan)} ({choice.name})"
    lines = [PlanLine(head, choice.cost, choice.rows, done(MATCHES))]
    for node in choice.nodes:
        indent = "  " * (node.depth + 1)
        text = f"{indent}{_node_text(pattern, node.plan)}"
        lines.append(PlanLine(text, node.cost, node.rows, done(*node_keys(pattern, node.plan))))
    repeated = [operand.text for operand in pattern.operands if operand.repeated and not operand.negated]
    if work is not None and repeated:
        text = f"  then {', '.join(repeated)}: what each takes"
        lines.append(PlanLine(text, None, None, done(COLLECTED)))
    for number, operand in enumerate(pattern.operands):
        if operand.negated:
            text = f"  then {operand.text}: none in its gap{_tests(pattern, operand.name)}"
            lines.append(PlanLine(text, None, None, done(absence(number))))
        elif operand.most is not None and operand.most > 1:
            lines.append(PlanLine(f"  last {operand.text}: its combinations", None, None))
    for number, condition in enumerate(pattern.aggregate_conditions):
        lines.append(PlanLine(f"  last {condition.text}: of whole matches", None, None, done(aggregate(number))))
    for other in choice.alternatives:
        text = f"alternative {plan_text(pattern, other.plan)} ({other.name})"
        lines.append(PlanLine(text, other.cost, other.rows))
    return lines


def node_keys(pattern: KleenePattern, plan: Plan) -> list[Key]:
    """What work calls a node, in each linearization that has an operand of it."""
    found: list[Key] = []
    for number, linearization in enumerate(pattern.linearizations):
        inside = restricted(plan, frozenset(linearization.operands))
        if inside is not None:
            found.append((number, *operands_in(inside)))
    return found


def _tests(pattern: KleenePattern, name: str) -> str:
    """The conditions over a negated operand."""
    texts = [
        condition.predicate.sql()
        for condition in pattern.conditions
        if condition.negated is not None and pattern.operands[condition.negated].name == name
    ]
    return f" with {' AND '.join(texts)}" if texts else ""


def _node_text(pattern: KleenePattern, plan: Plan) -> str:
    """A node with the predicates that it judges: the lowest that has all their operands."""
    inside = set(operands_in(plan))
    if isinstance(plan, int):
        operand = pattern.operands[plan]
        tests = [] if operand.filter is None else [part.sql() for part in operand.filter.conjuncts]
        tests += [c.predicate.sql() for c in pattern.conditions if c.negated is None and set(c.operands) == inside]
        takes = f" takes {operand.takes}" if operand.name != operand.takes else ""
        text = f"{operand.text}{takes}"
    else:
        left, right = set(operands_in(plan.left)), set(operands_in(plan.right))
        tests = [
            condition.predicate.sql()
            for condition in pattern.conditions
            if condition.negated is None
            and set(condition.operands) <= inside
            and not set(condition.operands) <= left
            and not set(condition.operands) <= right
        ]
        text = f"join {plan_text(pattern, plan)}"
    return f"{text} where {' AND '.join(tests)}" if tests else text


class _Costs:
    """Costs of trees, and the cheapest; in natural logarithms."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.lines = [frozenset(linearization.operands) for linearization in model.pattern.linearizations]
        self.plain = frozenset(model.pattern.positive) - model.repeated
        self.known: dict[Plan, float] = {}

    def rows(self, plan: Plan) -> float:
        """Expected rows of a node, over all linearizations."""
        operands = frozenset(operands_in(plan))
        parts = [(number, operands & line) for number, line in enumerate(self.lines)]
        return float(np.logaddexp.reduce([self.model.rows(number, inside) for number, inside in parts if inside]))

    def work(self, left: frozenset[int], right: frozenset[int]) -> float:
        """Expected work of one join, over all linearizations."""
        total = -math.inf
        for number, line in enumerate(self.lines):
            one, other = left & line, right & line
            if one and other:
                equal = sum(share for own, share in self.model.equalities(one | other) if own & one and own & other)
                both = np.array(self.model.rows(number, one | other))
                work = self.model.work(self._side(number, one), self._side(number, other), both, np.array(equal))
                total = np.logaddexp(total, float(work))
        return float(total)

    def _side(self, number: int, operands: frozenset[int]) -> Side:
        return Side(np.array(self.model.rows(number, operands)), np.array(len(operands & self.plain)))

    def cost(self, plan: Plan) -> float:
        """Expected work of a tree."""
        if isinstance(plan, int):
            return self._leaf(plan)
        if plan not in self.known:
            own = self.work(frozenset(operands_in(plan.left)), frozenset(operands_in(plan.right)))
            self.known[plan] = float(np.logaddexp(np.logaddexp(self.cost(plan.left), self.cost(plan.right)), own))
        return self.known[plan]

    def _leaf(self, operand: int) -> float:
        size = self.model.classes[operand]
        return math.log(size) if size > 0 else -math.inf

    def nodes(self, plan: Plan, depth: int) -> list[Node]:
        """The nodes of a tree, each before those below it."""
        own = Node(plan, depth, show_logarithm(self.rows(plan)), show_logarithm(self.cost(plan)))
        if isinstance(plan, int):
            return [own]
        return [own, *self.nodes(plan.left, depth + 1), *self.nodes(plan.right, depth + 1)]

    def cheapest(self, operands: tuple[int, ...]) -> Plan:
        """The cheapest tree over operands in this order; of equally cheap ones that with the first cut.

        Trees of one length are looked at together: row i of an array is the tree that begins at operand i, column j its
        cut behind j + 1 operands.
        """
        size = len(operands)
        lines = [_Line(self.model, number, line, operands, self.plain) for number, line in enumerate(self.lines)]
        best = np.full((size + 1, size + 1), -np.inf)
        cuts = np.zeros((size + 1, size + 1), np.int64)
        for at, operand in enumerate(operands):
            best[at, at + 1] = self._leaf(operand)
        for length in range(2, size + 1):
            begin = np.arange(size - length + 1)[:, None]
            cut, end = begin + np.arange(1, length), begin + length
            own = np.logaddexp.reduce([line.work(begin, cut, end) for line in lines])
            cost = np.logaddexp(np.logaddexp(best[begin, cut], best[cut, end]), own)
            least = cost.min(axis=1, keepdims=True)
            # What differs by less is equal, but for rounding.
            first = (cost <= least + 1e-12).argmax(axis=1)
            rows = begin[:, 0]
            best[rows, rows + length] = least[:, 0]
            cuts[rows, rows + length] = rows + 1 + first

        def tree(begin: int, end: int) -> Plan:
            if end - begin == 1:
                return operands[begin]
            cut = int(cuts[begin, end])
            return Join(tree(begin, cut), tree(cut, end))

        return tree(0, size)


class _Line:
    """The work of joins of neighbouring operands in one linearization, of many at once.

    Attributes
    ----------
    rows
        float64[n + 1, n + 1]: logarithm of the rows of operands i to j (exclusive) of the text, as far as the
        linearization has them.
    plain, there
        int64[n + 1]: how many of the first i operands are plain, and how many the linearization has.
    """

    def __init__(
        self, model: Model, number: int, line: frozenset[int], operands: tuple[int, ...], plain: frozenset[int]
    ) -> None:
        self.model = model
        size = len(operands)
        inside = np.array([operand in line for operand in operands])
        self.there = np.append(0, np.cumsum(inside))
        self.plain = np.append(0, np.cumsum([operand in line & plain for operand in operands]))
        self.rows = np.full((size + 1, size + 1), -np.inf)
        for begin in range(size):
            for end in range(begin + 1, size + 1):
                if self.there[end] > self.there[begin]:
                    self.rows[begin, end] = model.rows(number, line.intersection(operands[begin:end]))
        place = {operand: at for at, operand in enumerate(operands)}
        self.equal = [
            (min(map(place.__getitem__, own)), max(map(place.__getitem__, own)), share)
            for own, share in model.equalities(line)
        ]

    def work(self, begin: IntArray, cut: IntArray, end: IntArray) -> Logs:
        """Of joins of `begin` to `cut` with `cut` to `end`; nothing where the linearization has nothing on a side."""
        equal = np.zeros(cut.shape)
        for low, high, share in self.equal:
            equal = equal + np.where((begin <= low) & (low < cut) & (cut <= high) & (high < end), share, 0.0)
        left = Side(self.rows[begin, cut], self.plain[cut] - self.plain[begin])
        right = Side(self.rows[cut, end], self.plain[end] - self.plain[cut])
        found = self.model.work(left, right, self.rows[begin, end], equal)
        nothing = (self.there[cut] == self.there[begin]) | (self.there[end] == self.there[cut])
        return np.where(nothing, -np.inf, found)


def show_logarithm(log: float) -> float:
    """A cost, or rows, by their natural logarithm, without what is rounding; infinity where no double holds them."""
    return float(f"{math.exp(log):.12g}") if log < LARGEST else math.inf

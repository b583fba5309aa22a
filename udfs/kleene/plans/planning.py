"""Which tree to join along: dynamic programming over all trees that keep the order of the text.

Source: Behravesh et al., "Order of joins"; SPEC section 3 (plans). The cheapest tree of a run of operands is the
cheapest way to cut it in two, with the cheapest tree of either side; `costs.Model` says what each cut costs. Of equally
cheap trees that with repeated operands on the left of their joins wins.
"""

from __future__ import annotations

from dataclasses import dataclass

from patternlake.udfs.kleene.plans.costs import Model, Statistics
from patternlake.udfs.kleene.plans.trees import NAMED, Join, Plan, named_plan, operands_in, plan_text, restricted
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.work import COLLECTED, MATCHES, Done, Key, Work, absence, aggregate


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
    """A line of `explained`; `cost` and `rows` are None where the line has none, `done` where nothing was measured."""

    text: str
    cost: float | None
    rows: float | None
    done: Done | None = None


def planned(pattern: KleenePattern, statistics: Statistics, forced: Plan | None = None) -> Planned:
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
        Alternative(name, plan, costs.rows(plan), costs.cost(plan)) for plan, name in others.items() if plan != chosen
    ]
    return Planned(
        plan=chosen,
        name="cheapest" if forced is None else "forced",
        nodes=tuple(costs.nodes(chosen, 0)),
        alternatives=tuple(sorted(alternatives, key=lambda other: other.cost)),
    )


def explained(pattern: KleenePattern, choice: Planned, work: Work | None = None) -> list[PlanLine]:
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
        elif operand.counted:
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
    """Costs of trees, and the cheapest."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.linearizations = model.pattern.linearizations
        self.known: dict[tuple[frozenset[int], frozenset[int]], float] = {}

    def rows(self, plan: Plan) -> float:
        """Expected rows of a node, over all linearizations."""
        return self.rows_of(frozenset(operands_in(plan)))

    def rows_of(self, operands: frozenset[int]) -> float:
        parts = [(linearization, operands & set(linearization.operands)) for linearization in self.linearizations]
        return sum(self.model.rows(linearization, inside) for linearization, inside in parts if inside)

    def work(self, left: frozenset[int], right: frozenset[int]) -> float:
        """Expected work of one join, over all linearizations."""
        if (left, right) not in self.known:
            total = 0.0
            for linearization in self.linearizations:
                one, other = left & set(linearization.operands), right & set(linearization.operands)
                if one and other:
                    total += self.model.work(linearization, one, other)
            self.known[left, right] = total
        return self.known[left, right]

    def cost(self, plan: Plan) -> float:
        """Expected work of a tree."""
        if isinstance(plan, int):
            return self.model.classes[plan]
        own = self.work(frozenset(operands_in(plan.left)), frozenset(operands_in(plan.right)))
        return self.cost(plan.left) + self.cost(plan.right) + own

    def nodes(self, plan: Plan, depth: int) -> list[Node]:
        """The nodes of a tree, each before those below it."""
        own = Node(plan, depth, self.rows(plan), self.cost(plan))
        if isinstance(plan, int):
            return [own]
        return [own, *self.nodes(plan.left, depth + 1), *self.nodes(plan.right, depth + 1)]

    def cheapest(self, operands: tuple[int, ...]) -> Plan:
        """The cheapest tree over operands in this order."""
        size = len(operands)
        best: dict[tuple[int, int], tuple[float, Plan]] = {}
        for at, operand in enumerate(operands):
            best[at, at + 1] = (self.model.classes[operand], operand)
        for length in range(2, size + 1):
            for begin in range(size - length + 1):
                end = begin + length
                found: tuple[float, Plan] | None = None
                for cut in range(begin + 1, end):
                    (left_cost, left), (right_cost, right) = best[begin, cut], best[cut, end]
                    own = self.work(frozenset(operands[begin:cut]), frozenset(operands[cut:end]))
                    cost = left_cost + right_cost + own
                    if found is None or cost < found[0]:
                        found = (cost, Join(left, right))
                assert found is not None
                best[begin, end] = found
        return best[0, size][1]

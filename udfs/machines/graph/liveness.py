"""Whether a partial match can still be completed by some continuation, all conditions judged jointly.

Source: SPEC section 6 (`predict_match`); Muthusamy et al. 2010 judge conditions one at a time, when both their events
are there, so that a match that no continuation can complete is kept.

Time conditions, the order of operands and the window bound differences of times. Of the operands that are missing
nothing is known but that they come no earlier than now; so their times are eliminated: what is left are bounds between
times that are known, such as "now is at most 5 seconds after a" (a shortest path through missing operands is such a
bound, Floyd and Warshall). A choice (which alternative is taken, which of two siblings of ``&`` comes first, which side
of an OR or a ``<>`` holds) makes another **completion path**; a partial match lives as long as one of its completion
paths holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod

from patternlake.udfs.errors import UnsupportedOperatorError
from patternlake.udfs.language.predicate.time_gaps import UNBOUNDED
from patternlake.udfs.language.query.extents import MOST_MICROS
from patternlake.udfs.machines.graph.composite_states import START, CompositeState, complete, moves
from patternlake.udfs.machines.query import Chain, Item, Subscription
from patternlake.udfs.machines.time_conditions import TimeBound, TimeChoice, TimeCondition

MOST_ORDERS = 720
MOST_COMPLETION_PATHS = 4_096
"""Greatest number of choices of one state; conditions between operands that are missing multiply them."""
NOW, FIRST = -1, -2
"""Stand among operands for the last event that the partition took, and for the first event of the match."""


@dataclass(frozen=True, slots=True)
class CompletionPath:
    """One way in which a partial match may be completed.

    Attributes
    ----------
    bounds
        (x, y, c): the time of x is at most c microseconds after that of y; operands, `NOW` and `FIRST`.
    missing
        Number of operands that are missing.
    joined
        Join variables that must agree with each other and with columns of the partition: (variables, columns).
    """

    bounds: tuple[tuple[int, int, int], ...]
    missing: int
    joined: tuple[tuple[frozenset[str], frozenset[str]], ...]


def completion_paths(
    subscription: Subscription, composite_state: CompositeState, bound: frozenset[int]
) -> tuple[CompletionPath, ...]:
    """The completion paths of partial matches at a composite state.

    Parameters
    ----------
    subscription
        Compiled.
    composite_state
        Not complete.
    bound
        Operands that are bound, or may be: bounds of those that are not, as alternatives that were not taken, don't
        apply.

    Raises
    ------
    UnsupportedOperatorError
        There are more than `MOST_COMPLETION_PATHS` choices.
    """
    found: dict[CompletionPath, None] = {}
    tried = 0
    for missing, order in _sequences(subscription.master, composite_state) or _Ways(subscription).of_chain(
        subscription.master, composite_state
    ):
        joined = _join(subscription, missing)
        for times in _sign(subscription, missing, order, bound):
            tried += 1
            if tried > MOST_COMPLETION_PATHS:
                raise _too_many(subscription)
            bounds = _eliminate([*_order(subscription, missing, order), *times], missing)
            if bounds is not None:
                found[CompletionPath(bounds, len(missing), joined)] = None
    return _telling(found) if any(isinstance(one, TimeChoice) for one in subscription.bounds) else tuple(found)


def _telling(found: Iterable[CompletionPath]) -> tuple[CompletionPath, ...]:
    """Those without which others would not hold as long: of ``<>`` the side that has no end."""
    kept: list[CompletionPath] = []
    for one in found:
        if not any(_implies(one, other) for other in kept):
            kept = [*(other for other in kept if not _implies(other, one)), one]
    return tuple(kept)


def _implies(one: CompletionPath, other: CompletionPath) -> bool:
    """Whether a completion path holds wherever another does."""
    least = {(late, early): most for late, early, most in one.bounds}
    return (one.missing, one.joined) == (other.missing, other.joined) and all(
        least.get((late, early), most + 1) <= most for late, early, most in other.bounds
    )


_Way = tuple[tuple[int, ...], tuple[tuple[int, int], ...]]
"""Operands that are missing, and pairs of them of which the first comes before the second."""
_Edges = list[tuple[int, int, int]]
_Pairs = frozenset[tuple[int, int]]
_Choice = tuple[_Edges, list[tuple[int, int]]]
"""What a condition says, and which of two siblings it takes to be no later than which."""


def _sequences(chain: Chain, composite_state: CompositeState) -> list[_Way]:
    """All orders of what is missing, where ``,`` inside ``&`` forbids some; none where it doesn't, or of too many."""
    if not any(_is_interrupted(item) for item in chain.items):
        return []
    found: list[tuple[int, ...]] = []
    waiting: list[tuple[tuple[int, ...], CompositeState]] = [((), composite_state)]
    while waiting:
        order, at = waiting.pop()
        if complete(chain, at):
            found.append(order)
        waiting += [((*order, move.primitive), move.target) for move in moves(chain, at)]
        if len(found) + len(waiting) > MOST_ORDERS:
            return []
    return [(order, tuple(pairwise(order))) for order in sorted(found)]


def _is_interrupted(item: Item) -> bool:
    """Whether something stands beside a ``,`` in an ``&``."""
    if item.every and any(map(_contiguous, item.children)):
        return True
    return any(_is_interrupted(inner) for chain in item.children for inner in chain.items)


def _contiguous(chain: Chain) -> bool:
    """Whether a ``,`` stands anywhere in a chain."""
    return any(chain.next_to) or any(_contiguous(child) for item in chain.items for child in item.children)


class _Ways:
    """All choices of alternatives for what is missing, but those that no condition tells apart from a shorter one."""

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.telling = {operand for condition in subscription.bounds for operand in condition.operands}
        self.telling |= {operand for operand, primitive in enumerate(subscription.primitives) if primitive.joins}

    def of_chain(self, chain: Chain, composite_state: CompositeState) -> list[_Way]:
        """Those of a chain."""
        if complete(chain, composite_state):
            return [((), ())]
        parts = [
            self.of_item(item, composite_state if number == 0 else START)
            for number, item in enumerate(chain.items[composite_state.done :])
        ]
        found = []
        for chosen in self.combine(parts):
            missing: tuple[int, ...] = ()
            order: tuple[tuple[int, int], ...] = ()
            for more, inner in chosen:
                order += (*inner, *((before, behind) for before in missing for behind in more))
                missing += more
            found.append((missing, order))
        return found

    def of_item(self, item: Item, composite_state: CompositeState) -> list[_Way]:
        """The same for the item that a composite state stands before or in."""
        if item.primitive >= 0:
            return [((item.primitive,), ())]
        if not item.every:
            if composite_state.children:
                return self.of_chain(item.children[composite_state.alternative], composite_state.children[0])
            return self.choose_shortest(way for chain in item.children for way in self.of_chain(chain, START))
        composite_states = composite_state.children or (START,) * len(item.children)
        inner = [self.of_chain(chain, part) for chain, part in zip(item.children, composite_states, strict=True)]
        return [
            (
                tuple(one for missing, _ in chosen for one in missing),
                tuple(pair for _, order in chosen for pair in order),
            )
            for chosen in self.combine(inner)
        ]

    def combine(self, parts: Sequence[Sequence[_Way]]) -> Iterator[tuple[_Way, ...]]:
        if prod(map(len, parts)) > MOST_COMPLETION_PATHS:
            raise _too_many(self.subscription)
        return product(*parts)

    def choose_shortest(self, ways: Iterable[_Way]) -> list[_Way]:
        """Of ways with the same operands that conditions name, in the same order, the shortest: what else they ask is
        that something comes.
        """
        found: dict[_Way, _Way] = {}
        for way in ways:
            missing, order = way
            told = (
                tuple(operand for operand in missing if operand in self.telling),
                tuple(pair for pair in order if self.telling.issuperset(pair)),
            )
            if len(missing) < len(found.setdefault(told, way)[0]):
                found[told] = way
        return list(found.values())


def _too_many(subscription: Subscription) -> UnsupportedOperatorError:
    query = subscription.query
    span = query.pattern.span
    message = (
        f"alternatives and siblings that conditions compare leave more than {MOST_COMPLETION_PATHS:,} ways to end a "
        "match; compare fewer of them"
    )
    return UnsupportedOperatorError(message, query.text, span.start, span.end)


def _order(subscription: Subscription, missing: Sequence[int], order: Sequence[tuple[int, int]]) -> _Edges:
    """What holds of the times of missing operands whatever the conditions are."""
    edges = [(before, behind, 0) for before, behind in order]
    edges += [(NOW, operand, 0) for operand in missing]
    if subscription.within is not None and not subscription.within.counted:
        edges += [(operand, FIRST, subscription.within.amount - 1) for operand in missing]
        edges += [(FIRST, operand, 0) for operand in missing]
    return edges


def _sign(
    subscription: Subscription, missing: Sequence[int], order: Sequence[tuple[int, int]], bound: frozenset[int]
) -> Iterator[_Edges]:
    """The conditions that name a missing operand, for every choice of which of two siblings is the later.

    Where the choices before say it already, the other one is left out: it holds for equal times alone, for which
    both do.
    """
    known = bound.union(missing)
    choices = [
        _choices(condition)
        for condition in subscription.bounds
        if condition.operands <= known and not condition.operands <= bound
    ]
    yield from _extend([], frozenset(order), choices)


def _extend(edges: _Edges, ordered: _Pairs, choices: Sequence[Sequence[_Choice]]) -> Iterator[_Edges]:
    """What conditions say together; `ordered`: pairs of operands of which the first is no later than the second."""
    if not choices:
        yield edges
        return
    for said, signs in choices[0]:
        if not any((late, early) in ordered and (early, late) not in ordered for early, late in signs):
            yield from _extend([*edges, *said], _close_order(ordered, signs), choices[1:])


def _close_order(ordered: _Pairs, signs: Iterable[tuple[int, int]]) -> _Pairs:
    """Pairs with more of them, and what follows from both."""
    for early, late in signs:
        before = {one for one, other in ordered if other == early}
        behind = {other for one, other in ordered if one == late}
        ordered |= {*product({early, *before}, {late, *behind})}
    return ordered


def _choices(condition: TimeCondition) -> list[_Choice]:
    """What a condition says of times, for every choice that it leaves."""
    return [
        ([edge for edges, _ in signed for edge in edges], [sign for _, signs in signed for sign in signs])
        for choice in condition.choices
        for signed in product(*map(_sign_bound, choice))
    ]


def _sign_bound(part: TimeBound) -> list[_Choice]:
    forward = _limits(part.later, part.earlier, part)
    if not part.absolute:
        return [(forward, [])]
    return [
        ([*forward, (part.earlier, part.later, 0)], [(part.earlier, part.later)]),
        ([*_limits(part.earlier, part.later, part), (part.later, part.earlier, 0)], [(part.later, part.earlier)]),
    ]


def _limits(later: int, earlier: int, part: TimeBound) -> _Edges:
    edges = []
    if part.high < UNBOUNDED:
        edges.append((later, earlier, part.high))
    if part.low > -UNBOUNDED:
        edges.append((earlier, later, -part.low))
    return edges


def _eliminate(edges: _Edges, missing: Sequence[int]) -> tuple[tuple[int, int, int], ...] | None:
    """The bounds that are left between known times; None where no times at all keep the edges."""
    least: dict[tuple[int, int], int] = {}
    for one, other, most in edges:
        least[one, other] = min(most, least.get((one, other), most))
    for via in missing:
        into = [(one, most) for (one, other), most in least.items() if other == via]
        onward = [(other, most) for (one, other), most in least.items() if one == via]
        for one, first in into:
            for other, second in onward:
                if one == other and first + second >= 0:
                    continue
                if one == other and (one in missing or one in (NOW, FIRST)):
                    return None
                least[one, other] = min(first + second, least.get((one, other), first + second))
        least = {pair: most for pair, most in least.items() if via not in pair}
    # No moments are so far apart, and sums of longer bounds may have more than 64 bits.
    return tuple(
        sorted((one, other, max(most, -MOST_MICROS)) for (one, other), most in least.items() if most < MOST_MICROS)
    )


def _join(
    subscription: Subscription, missing: Sequence[int]
) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:  # fmt: skip
    """What joins of missing operands ask of variables: those of one column of one event agree."""
    groups: list[tuple[set[str], set[str]]] = []
    for operand in missing:
        joins = subscription.primitives[operand].joins
        for column in {column for _, column in joins}:
            variables = {variable for variable, joined in joins if joined == column}
            columns = {column} & {*subscription.partition}
            near = [group for group in groups if group[0] & variables]
            groups = [group for group in groups if not group[0] & variables]
            groups.append((variables.union(*(g[0] for g in near)), columns.union(*(g[1] for g in near))))
    telling = [group for group in groups if len(group[0]) + len(group[1]) > 1]
    return tuple(sorted(((frozenset(a), frozenset(b)) for a, b in telling), key=lambda group: sorted(group[0])))

"""The linearizations of a pattern: a union of orders of operands in which every repeated operand has its place.

Source: SPEC section 3 and Behravesh et al., "Kleene on concurrent join" (``A+ & B`` = ``(A+ ; B) ∪ (B ; A+)``, Fig. 2).
An alternative gives one linearization per choice. Under ``&`` plain operands stay unordered, for a join settles their
order; a repeated operand is one block, so it comes wholly before or wholly after each other operand, one linearization
per choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise, product
from typing import NoReturn

from patternlake.udfs.language.query import tree
from patternlake.udfs.language.query.tree import Node, Query

MOST_LINEARIZATIONS = 500
"""Greatest number of linearizations of one pattern."""

Pairs = frozenset[tuple[int, int]]
Adjacent = tuple[frozenset[int], frozenset[int]]


@dataclass(frozen=True, slots=True)
class Absent:
    """Events that must not follow one another: one event of each operand, in this order.

    Attributes
    ----------
    operands
        Numbers of the negated operands; one that needs n events stands n times.
    directly
        Places in `operands` of those that only an event directly behind that of the one before fills.
    """

    operands: tuple[int, ...]
    directly: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Gap:
    """What must not be between two sides of a sequence, before or behind everything, or anywhere beside it.

    Attributes
    ----------
    negated
        What must not be, any of it.
    left, right
        Numbers of all operands of the linearization before and behind it. Without a side, the window of the match, or a
        deadline, bounds it there.
    behind, ahead
        Whether only what is directly behind the left side, or directly before the right side, counts.
    """

    negated: tuple[Absent, ...]
    left: frozenset[int] = frozenset()
    right: frozenset[int] = frozenset()
    behind: bool = False
    ahead: bool = False


@dataclass(frozen=True, slots=True)
class Linearization:
    """One order of operands.

    Attributes
    ----------
    operands
        Numbers of its operands (from 0, in text order), in an order that `before` allows.
    before
        Pairs (a, b): every event of a comes before every event of b. Transitive; holds a pair for each two operands one
        of which is repeated.
    gaps
        Where negated operands stand.
    adjacent
        Pairs of sets of operands, as ``,`` joins them: where both have events, the first event of the second set is the
        one directly after the last event of the first set in the partition.
    stages
        The operands cut at the repeated ones: a stage is one repeated operand, or plain operands between two such.
    """

    operands: tuple[int, ...]
    before: Pairs
    gaps: tuple[Gap, ...]
    adjacent: tuple[Adjacent, ...]
    stages: tuple[tuple[int, ...], ...]

    def behind(self, operand: int) -> frozenset[int]:
        """The operands whose events all come after those of one."""
        return frozenset(later for earlier, later in self.before if earlier == operand)


@dataclass(frozen=True, slots=True)
class _Part:
    """A linearization of a part of the pattern, with orders still open."""

    operands: tuple[int, ...] = ()
    before: Pairs = field(default_factory=frozenset)
    gaps: tuple[Gap, ...] = ()
    adjacent: tuple[Adjacent, ...] = ()


def linearizations_of(
    query: Query, number_of: Mapping[int, int], repeated: frozenset[int]
) -> tuple[Linearization, ...]:
    """The linearizations of a query that the kleene engine takes.

    Parameters
    ----------
    query
        The parsed query.
    number_of
        ``id`` of an event's node to its operand's number.
    repeated
        Numbers of the operands under ``+``, ``*`` or ``[n]``.

    Raises
    ------
    UnsupportedOperatorError
        There are more than `MOST_LINEARIZATIONS`; the place is the whole pattern. A way through it takes no event, or
        what is negated could be without any.
    """
    expander = _Expander(query, number_of, repeated)
    parts = dict.fromkeys(
        linearization for part in expander.parts(query.pattern) for linearization in expander.settled(part)
    )
    if any(not part.operands for part in parts):
        expander.refuse_empty()
    return tuple(_linearization(part, repeated) for part in parts)


def order_of(query: Query, number_of: Mapping[int, int], repeated: frozenset[int], pattern: Node) -> Linearization:
    """The order of a pattern whose alternatives are chosen, with what is open under ``&`` left open.

    Parameters
    ----------
    query, number_of, repeated
        As of `linearizations_of`.
    pattern
        The query's pattern without ``|`` and ``n OF`` but inside of groups that are repeated; the operands of such a
        group have no order among each other, for those of one round come before those of the next.
    """
    expander = _Expander(query, number_of, repeated, whole_groups=True)
    (part,) = expander.parts(pattern)
    if not part.operands:
        expander.refuse_empty()
    return _linearization(part, repeated)


class _Expander:
    def __init__(
        self, query: Query, number_of: Mapping[int, int], repeated: frozenset[int], *, whole_groups: bool = False
    ) -> None:
        self.query = query
        self.number_of = number_of
        self.repeated = repeated
        self.whole_groups = whole_groups
        self.settled_lines = 0

    def check(self, count: int) -> None:
        if count > MOST_LINEARIZATIONS:
            message = (
                f"'|' and '&' give this pattern more than {MOST_LINEARIZATIONS} orders of repeated operands and "
                "alternatives; split it into several patterns"
            )
            raise self.query.unsupported(message)

    def parts(self, node: Node) -> list[_Part]:
        if isinstance(node, tree.Event):
            return [_Part((self.number_of[id(node)],))]
        if isinstance(node, tree.Repetition):
            if self.whole_groups and not isinstance(node.item, tree.Event):
                return [_Part(tuple(self.number_of[id(part)] for part in node.walk() if isinstance(part, tree.Event)))]
            return self.parts(node.item)
        if isinstance(node, tree.Negation):
            negated = tuple(dict.fromkeys(absent for item in node.items for absent in self.absent(item)))
            if any(not absent.operands for absent in negated):
                self.refuse(node, "what stands behind '!' may be without events, so it is never absent")
            return [_Part(gaps=(Gap(negated),))]
        below = [self.parts(child) for child in node.children()]
        if isinstance(node, tree.Disjunction):
            return [part for parts in below for part in parts]
        if isinstance(node, tree.SomeOf):
            return self.some_of(node, below)
        count = 1
        for parts in below:
            count *= len(parts)
            self.check(count)
        join = _JOINS[type(node)]
        return [join(chosen) for chosen in product(*below)]

    def absent(self, node: Node) -> list[Absent]:
        """Each way in which what is negated may happen, with as few events as it takes."""
        if isinstance(node, tree.Event):
            return [Absent((self.number_of[id(node)],))]
        if isinstance(node, tree.Negation):
            self.refuse(node, "'!' (not) stands under '!'; write what must be absent without it")
        if isinstance(node, tree.Repetition):
            below = [self.absent(node.item)] * node.minimum
        else:
            below = [self.absent(child) for child in node.children()]
        if isinstance(node, tree.Disjunction):
            return [absent for one in below for absent in one]
        directly = isinstance(node, tree.Contiguous)
        sets = [below]
        if isinstance(node, tree.SomeOf):
            sets = [list(chosen) for chosen in combinations(below, node.count)]
        found: dict[Absent, None] = {}
        for chosen in (parts for each in sets for parts in product(*each)):
            unordered = isinstance(node, tree.Conjunction | tree.SomeOf)
            orders = _interleave(chosen) if unordered else [_run(chosen, directly=directly)]
            found |= dict.fromkeys(orders)
            self.check(len(found))
        return list(found)

    def refuse_empty(self) -> NoReturn:
        """Refuse a pattern that a match could fill without an event."""
        negation = next(node for node in self.query.pattern.walk() if isinstance(node, tree.Negation))
        self.refuse(
            negation,
            "'!' (not) stands alone; a match takes an event: write what it comes before, behind or beside, as in "
            "A ; !B WITHIN 1 HOUR",
        )

    def refuse(self, node: Node, message: str) -> NoReturn:
        raise self.query.unsupported(message, node.sign)

    def some_of(self, node: tree.SomeOf, below: Sequence[list[_Part]]) -> list[_Part]:
        """At least so many of the items, in any order: the greater sets first."""
        found: list[_Part] = []
        for size in range(len(below), node.count - 1, -1):
            for chosen in combinations(below, size):
                found += [_beside_one_another(parts) for parts in product(*chosen)]
                self.check(len(found))
        return found

    def settled(self, part: _Part) -> list[_Part]:
        """The part with every repeated operand ordered against all others, one linearization per way."""
        for one in part.operands:
            for other in part.operands:
                either = one in self.repeated or other in self.repeated
                if one < other and either and not part.before & {(one, other), (other, one)}:
                    return [
                        linearization
                        for pair in ((one, other), (other, one))
                        for linearization in self.settled(replace(part, before=_close(part.before, pair)))
                    ]
        self.settled_lines += 1
        self.check(self.settled_lines)
        return [part]


def _after_one_another(parts: Sequence[_Part]) -> _Part:
    """A sequence: everything of a part before everything of the next."""
    operands: tuple[int, ...] = ()
    before: set[tuple[int, int]] = set()
    gaps: list[Gap] = []
    adjacent: list[Adjacent] = []
    for part in parts:
        adjacent += part.adjacent
        before |= part.before | set(product(operands, part.operands))
        gaps = [replace(gap, right=gap.right | set(part.operands)) for gap in gaps]
        gaps += [replace(gap, left=gap.left | set(operands)) for gap in part.gaps]
        operands += part.operands
    return _Part(operands, frozenset(before), tuple(gaps), tuple(adjacent))


def _next_to_one_another(parts: Sequence[_Part]) -> _Part:
    """A run: a sequence in which each part begins directly after those before it.

    What is negated in it is directly behind what stands before it and directly before what follows.
    """
    last = max((at for at, part in enumerate(parts) if part.operands), default=-1)
    marked = []
    taken = False
    for at, part in enumerate(parts):
        gaps = part.gaps
        if not part.operands:
            gaps = tuple(replace(gap, behind=taken, ahead=not taken and at < last) for gap in gaps)
        marked.append(replace(part, gaps=gaps))
        taken = taken or bool(part.operands)
    joined = _after_one_another(marked)
    adjacent = list(joined.adjacent)
    for at in range(1, len(parts)):
        left = frozenset(number for part in parts[:at] for number in part.operands)
        if left and parts[at].operands:
            adjacent.append((left, frozenset(parts[at].operands)))
    return replace(joined, adjacent=tuple(adjacent))


def _beside_one_another(parts: Sequence[_Part]) -> _Part:
    """A conjunction: no order between the parts."""
    operands = tuple(number for part in parts for number in part.operands)
    return _Part(
        operands,
        frozenset(pair for part in parts for pair in part.before),
        tuple(gap for part in parts for gap in part.gaps),
        tuple(pair for part in parts for pair in part.adjacent),
    )


def _run(parts: Sequence[Absent], *, directly: bool) -> Absent:
    """Absent events one after another."""
    operands: tuple[int, ...] = ()
    found: set[int] = set()
    for part in parts:
        if directly and operands and part.operands:
            found.add(len(operands))
        found |= {len(operands) + at for at in part.directly}
        operands += part.operands
    return Absent(operands, frozenset(found))


def _interleave(parts: Sequence[Absent]) -> Iterator[Absent]:
    """All orders of absent events that keep that of each part, and its events together that are so directly."""
    blocks = [_blocks(part) for part in parts]

    def orders(at: tuple[int, ...]) -> Iterator[tuple[Absent, ...]]:
        if all(place == len(own) for place, own in zip(at, blocks, strict=True)):
            yield ()
        for number, (place, own) in enumerate(zip(at, blocks, strict=True)):
            if place < len(own):
                for rest in orders((*at[:number], place + 1, *at[number + 1 :])):
                    yield own[place], *rest

    for order in orders((0,) * len(parts)):
        yield _run(order, directly=False)


def _blocks(part: Absent) -> list[Absent]:
    """An order cut where another event may come between."""
    cuts = [at for at in range(len(part.operands)) if at not in part.directly]
    return [
        Absent(part.operands[begin:end], frozenset(range(1, end - begin)))
        for begin, end in pairwise([*cuts, len(part.operands)])
    ]


_JOINS: Mapping[type[Node], Callable[[Sequence[_Part]], _Part]] = {
    tree.Sequence: _after_one_another,
    tree.Contiguous: _next_to_one_another,
    tree.Conjunction: _beside_one_another,
}


def _close(before: Pairs, pair: tuple[int, int]) -> Pairs:
    """A transitive order with one pair more."""
    first, second = pair
    lows = {a for a, b in before if b == first} | {first}
    highs = {b for a, b in before if a == second} | {second}
    return before | set(product(lows, highs))


def _linearization(part: _Part, repeated: frozenset[int]) -> Linearization:
    """The part with its operands in order, cut into stages."""
    below = {number: sum(b == number for _, b in part.before) for number in part.operands}
    operands = tuple(sorted(part.operands, key=lambda number: (below[number], number)))
    stages: list[tuple[int, ...]] = []
    open_stage = False
    for number in operands:
        if number in repeated or not open_stage:
            stages.append((number,))
        else:
            stages[-1] += (number,)
        open_stage = number not in repeated
    return Linearization(operands, part.before, part.gaps, part.adjacent, tuple(stages))

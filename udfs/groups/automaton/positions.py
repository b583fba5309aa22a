"""From a pattern to its positions: the places that take one event each, and which follow which.

An automaton without empty moves, one state for each place: Sugiura et al. 2015, Fig. 3, for all operators of SPEC
section 4. ``a & b`` has a place for each item under each set of items that are still to come, not for each order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf

from patternlake.udfs.errors import UnsupportedOperatorError
from patternlake.udfs.language.query.tree import (
    Conjunction,
    Contiguous,
    Disjunction,
    Event,
    Negation,
    Node,
    Query,
    Repetition,
)

MAX_STATES = 10_000
"""States that an automaton may have."""
MAX_MOVES = 1_000_000
"""Moves between positions that a pattern may have; ``(a?)[n]`` has half the square of n."""


@dataclass(frozen=True)
class Positions:
    """The positions of a pattern.

    Attributes
    ----------
    symbol
        The letter of each position.
    first
        Positions that a match may begin with.
    follow
        For each position those that may come directly next.
    last
        Whether a match may end with the position.
    least_more, most_more
        For each position the fewest (1 or more) and the most events that may come behind it in a match; `inf` as the
        fewest where none may come and as the most where there is no end, 0 as the most where none may come.
    """

    symbol: tuple[int, ...]
    first: tuple[int, ...]
    follow: tuple[tuple[int, ...], ...]
    last: tuple[bool, ...]
    least_more: tuple[float, ...]
    most_more: tuple[float, ...]

    @property
    def longest(self) -> float:
        """Events of the longest match; `inf` where there is none."""
        return 1 + max(self.most_more[position] for position in self.first)


def too_large(query: Query, within: int | None = None) -> UnsupportedOperatorError:
    """The refusal of a pattern whose automaton is too large."""
    place = query.pattern.span
    window = "" if within is None else f" with a window of {within:,} steps"
    return UnsupportedOperatorError(
        f"the automaton of this pattern{window} has more than {MAX_STATES:,} states or {MAX_MOVES:,} moves; use "
        "smaller counts, fewer alternatives or a smaller window",
        query.text,
        place.start,
        place.end,
    )


def positions_of(query: Query, symbols: Sequence[int]) -> Positions:
    """The positions of a query's pattern.

    Parameters
    ----------
    query
        A query that the groups engine takes.
    symbols
        The letter of each event of the pattern, in text order; events under one negation have its letter.

    Raises
    ------
    UnsupportedOperatorError
        There are more than `MAX_STATES`.
    """
    builder = _Builder(query, symbols)
    begin = builder.enter(query.pattern, _END)
    first, _ = builder.reachable(begin)
    follow: list[tuple[int, ...]] = []
    last: list[bool] = []
    moves = 0
    for place in builder.behind:
        after, ends = builder.reachable(place)
        moves += len(after)
        if moves > MAX_MOVES:
            raise too_large(query)
        follow.append(after)
        last.append(ends)
    least, most = _distances(follow, last)
    return Positions(tuple(builder.symbol), first, tuple(follow), tuple(last), least, most)


_END = 0
"""The joint behind the whole pattern."""


class _Builder:
    """Positions and the joints between them; a joint leads on to other joints and to positions."""

    def __init__(self, query: Query, symbols: Sequence[int]) -> None:
        self.query = query
        self.symbols = symbols
        events = [node for node in query.pattern.walk() if isinstance(node, Event)]
        self.number = {id(node): number for number, node in enumerate(events)}
        self.joints: list[list[int]] = [[]]
        self.takes: list[list[int]] = [[]]
        self.symbol: list[int] = []
        self.behind: list[int] = []

    def joint(self, *onward: int) -> int:
        """A new joint."""
        # Repeated nothing adds joints without adding positions.
        if len(self.joints) > 10 * MAX_STATES:
            raise too_large(self.query)
        self.joints.append(list(onward))
        self.takes.append([])
        return len(self.joints) - 1

    def enter(self, node: Node, onward: int) -> int:
        """The joint at which `node` begins that leads on to `onward`."""
        match node:
            case Event() | Negation():
                if len(self.symbol) >= MAX_STATES:
                    raise too_large(self.query)
                # All events under a negation stand for its one letter.
                event = next(one for one in node.walk() if isinstance(one, Event))
                self.symbol.append(self.symbols[self.number[id(event)]])
                self.behind.append(onward)
                place = self.joint()
                self.takes[place].append(len(self.symbol) - 1)
                return place
            case Contiguous(items=items):
                for item in reversed(items):
                    onward = self.enter(item, onward)
                return onward
            case Disjunction(items=items):
                return self.joint(*(self.enter(item, onward) for item in items))
            case Conjunction(items=items):
                return self.in_any_order(items, onward)
            case Repetition():
                return self.repeated(node, onward)
        raise AssertionError(f"the groups engine does not take {type(node).__name__}")

    def in_any_order(self, items: tuple[Node, ...], onward: int) -> int:
        """All items, each once."""
        if 2 ** len(items) > MAX_STATES:
            raise too_large(self.query)
        entries = {0: onward}
        for left in range(1, 2 ** len(items)):
            chosen = [at for at in range(len(items)) if left >> at & 1]
            entries[left] = self.joint(*(self.enter(items[at], entries[left & ~(1 << at)]) for at in chosen))
        return entries[2 ** len(items) - 1]

    def repeated(self, node: Repetition, onward: int) -> int:
        """From `minimum` to `maximum` times."""
        if node.maximum is None:
            loop = self.joint(onward)
            begin = self.enter(node.item, loop)
            self.joints[loop].append(begin)
            onward, copies = (loop, 0) if node.minimum == 0 else (begin, node.minimum - 1)
        else:
            behind, copies = onward, node.minimum
            for _ in range(node.maximum - node.minimum):
                onward = self.joint(behind, self.enter(node.item, onward))
        for _ in range(copies):
            onward = self.enter(node.item, onward)
        return onward

    def reachable(self, joint: int) -> tuple[tuple[int, ...], bool]:
        """The positions that may come next at a joint, and whether the pattern may end there."""
        seen, stack = {joint}, [joint]
        while stack:
            for onward in self.joints[stack.pop()]:
                if onward not in seen:
                    seen.add(onward)
                    stack.append(onward)
        return tuple(sorted(chain.from_iterable(self.takes[place] for place in seen))), _END in seen


def _distances(follow: Sequence[tuple[int, ...]], last: Sequence[bool]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The fewest and the most events behind each position."""
    size = len(follow)
    before: list[list[int]] = [[] for _ in range(size)]
    for position, after in enumerate(follow):
        for other in after:
            before[other].append(position)
    least: list[float] = [inf] * size
    level = sorted({p for other in range(size) if last[other] for p in before[other]})
    distance = 1
    while level:
        for position in level:
            least[position] = distance
        level = sorted({p for other in level for p in before[other] if least[p] == inf})
        distance += 1
    # Positions whose followers are all settled; what is never settled can go on for ever.
    waiting = [len(after) for after in follow]
    most: list[float] = [inf] * size
    settled = [position for position in range(size) if not waiting[position]]
    for position in settled:
        most[position] = max((1 + most[other] for other in follow[position]), default=0)
        for other in before[position]:
            waiting[other] -= 1
            if not waiting[other]:
                settled.append(other)
    return tuple(least), tuple(most)

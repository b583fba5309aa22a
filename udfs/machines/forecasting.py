"""How likely a partial match is to be completed: Markov chains of the machines, and what composites make of them.

Source: Muthusamy et al. 2010, sections 5.2.1 to 5.2.3, and SPEC section 6. A machine's moves are counted; from state i
it goes to state j with probability N_ij / Σ_j N_ij. The row of the matched state is zero, so the n-th power of the
matrix gives **first passage** (α), and its sum over the powers up to n is a probability (β).

Departures from the paper:

- rows are divided by how often a state was left, not by how often it was reached, so that they are probabilities;
- discarded copies may die, so a row may sum to less than 1 over the machine's states;
- ``|`` is 1 - Π(1 - p) in place of the sum; ``&`` is the product, and 0 while fewer events remain than it misses;
- the parts of a composite are convolved as *completed at exactly p* and *the rest within n - p*.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.machines.cuts import START, Cut, complete
from patternlake.udfs.machines.subscription import Chain, Item, Subscription

FloatArray = NDArray[np.float64]
Path = tuple[int, ...]
"""Where a machine stands: item, child, item, child, … from the master machine, which is ()."""
Counts = Mapping[tuple[Path, int], Mapping[int, float]]
"""(machine, state) to how often each next state followed it."""

DEAD = -1
"""Stands for the next state of a copy that is discarded and has nowhere to go."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One state machine of a subscription, with m + 1 states for its m items."""

    path: Path
    chain: Chain

    @property
    def final(self) -> int:
        """Number of the matched state."""
        return len(self.chain.items)

    def waits(self, state: int) -> bool:
        """Whether a state has a self link: the initial one, and those that ``;`` follows."""
        return state == 0 or (state < self.final and not self.chain.next_to[state])

    def behind(self, state: int) -> list[int]:
        """The states that a discarded copy may go to, from its own back to the first boundary."""
        boundaries = [one for one in range(1, self.final) if self.waits(one)]
        return list(range(state, boundaries[0] - 1, -1)) if boundaries else []

    def possible(self, state: int) -> list[int]:
        """All moves that a state knows, `DEAD` among them; the matched one knows none."""
        if state == self.final:
            return []
        if self.waits(state):
            return [state + 1, state]
        inside = [] if self.chain.items[state].primitive >= 0 else [state]
        return list(dict.fromkeys([state + 1, *inside, *self.behind(state), DEAD]))


def machines_of(subscription: Subscription) -> list[Machine]:
    """All machines of a subscription, the master first and parents before children."""
    return list(_below(Machine((), subscription.master)))


def _below(machine: Machine) -> Iterator[Machine]:
    yield machine
    for number, item in enumerate(machine.chain.items):
        for child, chain in enumerate(item.children):
            yield from _below(Machine((*machine.path, number, child), chain))


class Forecaster:
    """What a trained subscription forecasts for the next `lookahead` events.

    Parameters
    ----------
    subscription
        Compiled.
    counts
        Moves of its machines.
    lookahead
        Number of events, 1 or more.
    smoothing
        Is added to the count of every possible move.
    """

    def __init__(self, subscription: Subscription, counts: Counts, lookahead: int, smoothing: float = 0.0) -> None:
        self.subscription = subscription
        self.counts = counts
        self.lookahead = lookahead
        self.smoothing = smoothing
        self.passages = {machine.path: self.passage(machine) for machine in machines_of(subscription)}

    def matrix(self, machine: Machine) -> FloatArray:
        """Probabilities of moves: float64[m + 1, m + 1], death left out; rows of unvisited states are zero."""
        found = np.zeros((machine.final + 1, machine.final + 1))
        for state in range(machine.final):
            seen = self.counts.get((machine.path, state), {})
            possible = machine.possible(state)
            total = sum(seen.values()) + self.smoothing * len(possible)
            for target in possible:
                if target != DEAD and total > 0:
                    found[state, target] = (seen.get(target, 0.0) + self.smoothing) / total
        return found

    def passage(self, machine: Machine) -> FloatArray:
        """From each state to the matched one at exactly the n-th event: float64[m + 1, lookahead + 1]."""
        matrix = self.matrix(machine)
        found = np.zeros((machine.final + 1, self.lookahead + 1))
        found[machine.final, 0] = 1.0
        for n in range(1, self.lookahead + 1):
            found[:, n] = matrix @ found[:, n - 1]
        return found

    def alpha(self, cut: Cut) -> FloatArray:
        """Matched at exactly the n-th event, for each n from 0: float64[lookahead + 1]."""
        return self._exactly((), self.subscription.master, cut)

    def probability(self, cut: Cut) -> FloatArray:
        """Matched within n events (β), for each n from 0: float64[lookahead + 1]."""
        return np.cumsum(self.alpha(cut))

    def trained_on(self, cut: Cut) -> float:
        """How often the state of the master machine was left."""
        return sum(self.counts.get(((), cut.done), {}).values())

    def _exactly(self, path: Path, chain: Chain, cut: Cut) -> FloatArray:
        passage = self.passages[path]
        if complete(chain, cut) or chain.items[cut.done].primitive >= 0:
            onward: FloatArray = passage[cut.done]
            return onward
        item = np.diff(self._item(path, chain, cut), prepend=0.0)
        return np.convolve(item, passage[cut.done + 1])[: self.lookahead + 1]

    def _item(self, path: Path, chain: Chain, cut: Cut) -> FloatArray:
        """The Boolean item under way, or next, is done within n events."""
        item = chain.items[cut.done]
        chances = [
            np.cumsum(self._exactly((*path, cut.done, number), child, part))
            for number, (child, part) in enumerate(zip(item.children, _cuts(item, cut), strict=True))
        ]
        if not item.every:
            none: FloatArray = np.prod([1.0 - chance for chance in chances], axis=0)
            return 1.0 - none
        every: FloatArray = np.prod(chances, axis=0)
        every[: _missing(item, cut)] = 0.0
        return every


def _cuts(item: Item, cut: Cut) -> list[Cut]:
    """The cuts of all child machines; an alternative that has not begun is at its start."""
    if not cut.children:
        return [START] * len(item.children)
    if item.every:
        return list(cut.children)
    return [cut.children[0] if number == cut.alternative else START for number in range(len(item.children))]


def _missing(item: Item, cut: Cut) -> int:
    """How many events a Boolean item still needs at least."""
    if item.every:
        return sum(_missing_of(chain, part) for chain, part in zip(item.children, _cuts(item, cut), strict=True))
    if cut.children:
        return _missing_of(item.children[cut.alternative], cut.children[0])
    return min(_missing_of(chain, START) for chain in item.children)


def _missing_of(chain: Chain, cut: Cut) -> int:
    missing = 0
    for number in range(cut.done, len(chain.items)):
        item = chain.items[number]
        under_way = cut if number == cut.done else START
        missing += 1 if item.primitive >= 0 else _missing(item, under_way)
    return missing

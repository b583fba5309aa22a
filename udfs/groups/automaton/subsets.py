"""The automaton of a pattern: which sets of runs a stream can have brought about, and how events lead on.

Source: Sugiura et al. 2015, section 5 (transducers T, T^A and T^B), with two departures that SPEC section 4 asks for.
The paper's rule for edges is wrong where a run can start inside another (``a,b+``, ``a+,b``), so states come from
subset construction: a state is the set of positions at which runs are. And the paper forgets the window once it
calculates probabilities, while here a position carries the age of its shortest run: whatever an older run at the same
position can still match, the younger one can match as well, and it stays longer in the window. An age counts only
where it decides something, so patterns that end by themselves inside the window have none.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from patternlake.udfs.arrays import BoolArray, SmallArray
from patternlake.udfs.groups.automaton.positions import MAX_STATES, Positions, too_large
from patternlake.udfs.groups.query import GroupQuery

State = tuple[tuple[int, int], ...]
"""(position, age of its shortest run in events), by position; age 0: it does not matter any more."""


class Moves(NamedTuple):
    """Where states lead.

    Attributes
    ----------
    to
        int32[states, classes]: the next state.
    accepts
        bool[states, classes]: whether a match ends with that event.
    """

    to: SmallArray
    accepts: BoolArray


@dataclass(frozen=True)
class Automaton:
    """The automaton of a query.

    Attributes
    ----------
    states
        What each state stands for; state 0 is the empty set.
    inject
        Moves while runs may start: T where matches are taken out, T^A where they are not.
    carry
        Moves while no run starts, T^B; for ``single``, which has no use for them, the same as `inject`.
    shape, age
        int32[states]: where all positions of a state have one age, their set and that age; elsewhere, and for
        ``single``, -1.
    shapes
        Moves of sets of positions while no run starts; set 0 is empty.
    """

    states: tuple[State, ...]
    inject: Moves
    carry: Moves
    shape: SmallArray
    age: SmallArray
    shapes: Moves


def automaton_of(query: GroupQuery) -> Automaton:
    """The automaton of a query.

    Parameters
    ----------
    query
        A compiled query. For ``single`` only states that are reached before the first match are built, for
        ``complete`` also those behind matches and those without new runs.

    Raises
    ------
    UnsupportedOperatorError
        It has more than `MAX_STATES` states.
    """
    return _Construction(query).built()


class _Construction:
    def __init__(self, query: GroupQuery) -> None:
        self.query = query
        self.positions: Positions = query.positions
        self.window = query.within
        self.complete = query.overlap == "complete"
        member = query.alphabet.member
        self.classes = [frozenset(np.flatnonzero(row).tolist()) for row in member]
        self.starts = self.by_symbol([(position, 1) for position in self.positions.first])
        self.known: dict[tuple[int, int], dict[int, list[tuple[int, int]]]] = {}

    def built(self) -> Automaton:
        """All states and moves, breadth first from the empty set."""
        number: dict[State, int] = {(): 0}
        states: list[State] = [()]
        inject: list[list[tuple[int, bool]]] = []
        carry: list[list[tuple[int, bool]]] = []
        for state in states:
            choices = self.onward(state)
            for starting, table in ((True, inject), (False, carry)):
                row = []
                for held in self.classes if starting or self.complete else ():
                    after, accepts = self.move(choices, held, starting)
                    # `single` stays where it has matched, so what would follow is never asked for.
                    target = 0 if accepts and not self.complete else number.setdefault(after, len(number))
                    if target == len(states):
                        if len(states) >= MAX_STATES:
                            raise too_large(self.query.parsed, self.window)
                        states.append(after)
                    row.append((target, accepts))
                table.append(row)
        moves = _moves(inject)
        shape, shapes = self.shaped(states if self.complete else [])
        filler = np.full(len(states) - len(shape), -1, np.int32)
        return Automaton(
            states=tuple(states),
            inject=moves,
            carry=_moves(carry) if self.complete else moves,
            shape=np.concatenate([shape, filler]),
            age=np.array([state[0][1] if state else -1 for state in states], np.int32),
            shapes=shapes,
        )

    def shaped(self, states: list[State]) -> tuple[SmallArray, Moves]:
        """The set of positions of each state with one age, and the moves of these sets; no sets if there are many."""
        number: dict[frozenset[int], int] = {frozenset(): 0}
        found = np.full(len(states), -1, np.int32)
        for at, state in enumerate(states):
            if len({age for _, age in state}) == 1:
                found[at] = number.setdefault(frozenset(position for position, _ in state), len(number))
        rows: list[list[tuple[int, bool]]] = []
        sets = list(number)
        for positions in sets:
            # Ages are left out where they are 0, so a set is the state that has no window.
            choices = self.onward(tuple((position, 0) for position in sorted(positions)))
            row = []
            for held in self.classes:
                after, accepts = self.move(choices, held, False)
                target = number.setdefault(frozenset(position for position, _ in after), len(number))
                if target == len(sets):
                    if len(sets) >= MAX_STATES:
                        return np.full(len(states), -1, np.int32), _moves([[(0, False)] * len(self.classes)])
                    sets.append(frozenset(position for position, _ in after))
                row.append((target, accepts))
            rows.append(row)
        return found, _moves(rows)

    def onward(self, state: State) -> dict[int, list[tuple[int, int]]]:
        """By symbol: the positions, with ages, at which the runs of a state are after an event of that symbol."""
        found: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for run in state:
            if run not in self.known:
                position, age = run
                after = [(other, age and age + 1) for other in self.positions.follow[position]]
                self.known[run] = self.by_symbol(after)
            for symbol, runs in self.known[run].items():
                found[symbol] += runs
        return found

    def by_symbol(self, runs: list[tuple[int, int]]) -> dict[int, list[tuple[int, int]]]:
        found: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for position, age in runs:
            found[self.positions.symbol[position]].append((position, age))
        return found

    def move(
        self, choices: dict[int, list[tuple[int, int]]], held: frozenset[int], starting: bool
    ) -> tuple[State, bool]:
        """The state after an event that these symbols hold of, and whether a match ends with it."""
        youngest: dict[int, int] = {}
        accepts = False
        for symbol in held:
            runs = choices.get(symbol, [])
            for position, age in [*runs, *self.starts.get(symbol, [])] if starting else runs:
                accepts = accepts or self.positions.last[position]
                if age + self.positions.least_more[position] > self.window:
                    continue
                if age + self.positions.most_more[position] <= self.window:
                    age = 0
                youngest[position] = min(age, youngest.get(position, age))
        return tuple(sorted(youngest.items())), accepts


def _moves(rows: list[list[tuple[int, bool]]]) -> Moves:
    pairs: NDArray[np.int64] = np.array(rows, np.int64).reshape(len(rows), -1, 2)
    return Moves(
        np.ascontiguousarray(pairs[:, :, 0].astype(np.int32)), np.ascontiguousarray(pairs[:, :, 1].astype(np.bool_))
    )

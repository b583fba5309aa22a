"""The automaton of a pattern's letters: one path for each word, so that a word is counted once.

Where two places of the pattern take one letter, a word has several paths through its positions. Here a state is the set
of positions that a word can be at (subset construction), so it has one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from patternlake.udfs.arrays import BoolArray, IntArray, SmallArray
from patternlake.udfs.groups.automaton.positions import MAX_STATES, too_large
from patternlake.udfs.groups.query import GroupQuery

_FAR = 2**62


class Words(NamedTuple):
    """The automaton, for numba.

    Attributes
    ----------
    to
        int32[states, letters]: the next state, -1: there is none. State 0 has read nothing.
    accepts
        bool[states]: a match may end here.
    least_more
        int64[states]: the fewest letters (1 or more) that a match still takes to end; 2^62 where it cannot.
    """

    to: SmallArray
    accepts: BoolArray
    least_more: IntArray


def words_of(query: GroupQuery) -> Words:
    """The automaton of a query's words.

    Raises
    ------
    UnsupportedOperatorError
        It has more than `MAX_STATES` states.
    """
    places, letters = query.positions, len(query.alphabet.letters)
    begin: frozenset[int] = frozenset({-1})
    number = {begin: 0}
    states = [begin]
    rows = []
    for state in states:
        onward: list[set[int]] = [set() for _ in range(letters)]
        for position in state:
            for other in places.first if position < 0 else places.follow[position]:
                onward[places.symbol[other]].add(other)
        row = []
        for after in onward:
            if not after:
                row.append(-1)
                continue
            target = number.setdefault(frozenset(after), len(number))
            if target == len(states):
                if target >= MAX_STATES:
                    raise too_large(query.parsed)
                states.append(frozenset(after))
            row.append(target)
        rows.append(row)
    least = [min((places.least_more[p] for p in state if p >= 0), default=_FAR) for state in states]
    return Words(
        np.array(rows, np.int32).reshape(len(states), letters),
        np.array([any(p >= 0 and places.last[p] for p in state) for state in states], np.bool_),
        np.array([int(min(more, _FAR)) for more in least], np.int64),
    )

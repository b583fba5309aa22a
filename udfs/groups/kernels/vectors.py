"""Probabilities of an automaton's states, pushed through steps (Sugiura et al. 2015, equation 5).

A vector is kept as the states that have a probability, in the order in which they were reached, so that what it costs
follows from what can have happened and not from the size of the automaton. The final state is a number of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from patternlake.udfs.arrays import FloatArray, SmallArray
from patternlake.udfs.groups.automaton.subsets import Moves
from patternlake.udfs.groups.kernels.steps import TOLERANCE, Steps
from patternlake.udfs.subkernels import subkernel

NOTHING = 1e-290
"""Probabilities below are taken as 0: they change no digit of any sum, and numbers much smaller are slow."""


class Vector(NamedTuple):
    """Workspace for one vector, and for the next one.

    Attributes
    ----------
    state, value
        int32[states], float64[states]: the states with a probability, and it; how many there are is counted beside.
    next_state
        int32[states].
    dense
        float64[states]: -1 everywhere between steps.
    """

    state: SmallArray
    value: FloatArray
    next_state: SmallArray
    dense: FloatArray


def vector_workspace(states: int) -> Vector:
    """Workspace for vectors of an automaton."""
    return Vector(
        np.empty(states, np.int32), np.empty(states), np.empty(states, np.int32), np.full(states, -1.0)
    )  # fmt: skip


@njit(cache=True)
def begin(vector: Vector) -> int:
    """Set the vector to "no run yet"; its size."""
    vector.state[0] = 0
    vector.value[0] = 1.0
    return 1


@subkernel
def put(state: SmallArray, value: FloatArray, low: int, other: Vector, size: int) -> None:
    """Copy a vector of this size to `low`."""
    for one in range(size):
        state[low + one], value[low + one] = other.state[one], other.value[one]


@subkernel
def take(vector: Vector, state: SmallArray, value: FloatArray, low: int, size: int) -> None:
    """Copy a vector of this size from `low`."""
    for one in range(size):
        vector.state[one], vector.value[one] = state[low + one], value[low + one]


@njit(cache=True)
def push(vector: Vector, size: int, moves: Moves, absorb: bool, idle: bool, steps: Steps, at: int) -> tuple[int, float]:
    """Take the vector through one step.

    Parameters
    ----------
    vector, size
        The vector, which is overwritten.
    moves
        The automaton's moves.
    absorb
        Whether matches are taken out of the vector: True for T and T^B, False for T^A.
    idle
        Whether state 0 is kept: it leads nowhere where no run starts.
    steps, at
        The step.

    Returns
    -------
    (int, float)
        The new size, and the probability that was taken out.
    """
    low, high = steps.offset[at], steps.offset[at + 1]
    rest = 1.0
    for choice in range(low, high):
        rest -= steps.probability[choice]
    # Rounding leaves something of steps that are known in full: it ends every run.
    other = rest if rest > TOLERANCE else 0.0
    accepted = 0.0
    count = 0
    fallen = 0.0
    for place in range(size):
        state, value = vector.state[place], vector.value[place]
        for choice in range(low, high):
            class_ = steps.class_[choice]
            share = value * steps.probability[choice]
            if absorb and moves.accepts[state, class_]:
                accepted += share
                continue
            target = moves.to[state, class_]
            if target == 0 and not idle:
                continue
            if vector.dense[target] < 0.0:
                vector.dense[target] = 0.0
                vector.next_state[count] = target
                count += 1
            vector.dense[target] += share
        # No match ends with what is not stored.
        target = moves.to[state, 0]
        if target == 0 or other == 0.0:
            fallen += value
            continue
        if vector.dense[target] < 0.0:
            vector.dense[target] = 0.0
            vector.next_state[count] = target
            count += 1
        vector.dense[target] += value * other
    if idle and rest > 0.0 and fallen > 0.0:
        # Whatever else happens ends every run.
        if vector.dense[0] < 0.0:
            vector.dense[0] = 0.0
            vector.next_state[count] = 0
            count += 1
        vector.dense[0] += fallen * rest
    size = 0
    for place in range(count):
        target = vector.next_state[place]
        value = vector.dense[target]
        vector.dense[target] = -1.0
        if value > NOTHING:
            vector.state[size] = target
            vector.value[size] = value
            size += 1
    return size, accepted

"""The probability of a group of complete overlap: that a match inside its bounds holds its earliest end.

Source: Sugiura et al. 2015, section 5.2: T^A up to the earliest end, T there, T^B behind it. Two things keep the cost
of a group within what is linear in the window:

- Without a threshold every run that can still be completed belongs to the group, so runs from before its bounds change
  nothing, and one vector under T^A, the **trail**, serves all groups of a key one after another.
- Behind the earliest end a run only moves on until it leaves the window. Runs at the same positions move alike,
  whenever they began: they are pushed once, and how much has been accepted is read off for each age.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from patternlake.udfs.arrays import FloatArray, IntArray, SmallArray
from patternlake.udfs.groups.automaton.subsets import Automaton, Moves
from patternlake.udfs.groups.kernels.steps import Steps
from patternlake.udfs.groups.kernels.vectors import Vector, begin, push, take, vector_workspace
from patternlake.udfs.subkernels import subkernel


class Trail(NamedTuple):
    """The vector under T^A; without a threshold the groups of a key share it, with one each begins its own.

    Attributes
    ----------
    vector
        The vector.
    at
        int64[2]: its size, 0 where none is shared, and the step that it is at.
    """

    vector: Vector
    at: IntArray


class Shapes(NamedTuple):
    """What runs of one age are pushed with.

    Attributes
    ----------
    shape, age, moves
        `Automaton.shape`, `Automaton.age`, `Automaton.shapes`.
    vector
        Workspace for a vector of sets.
    first_of
        int32[sets]: first entry of a set, -1 everywhere between groups.
    next_of
        int32[states]: the entry behind each entry of the same set.
    found
        int32[sets]: the sets that occur.
    accepted
        float64[window]: how much a set has accepted after 0, 1, … steps.
    """

    shape: SmallArray
    age: SmallArray
    moves: Moves
    vector: Vector
    first_of: SmallArray
    next_of: SmallArray
    found: SmallArray
    accepted: FloatArray


class Complete(NamedTuple):
    """What probabilities of complete overlap are calculated with.

    Attributes
    ----------
    inject, carry
        The automaton's moves.
    window
        The most steps that a match takes.
    shared
        Whether there is no threshold, and so a trail.
    trail, shapes, vector
        Workspace; the trail belongs to the key at hand.
    """

    inject: Moves
    carry: Moves
    window: int
    shared: bool
    trail: Trail
    shapes: Shapes
    vector: Vector


def complete_workspace(automaton: Automaton, window: int, shared: bool, most: int) -> Complete:
    """Workspace for groups of at most `most` steps behind their earliest ends."""
    states, sets = len(automaton.states), len(automaton.shapes.to)
    shapes = Shapes(
        automaton.shape,
        automaton.age,
        automaton.shapes,
        vector_workspace(sets),
        np.full(sets, -1, np.int32),
        np.empty(states, np.int32),
        np.empty(sets, np.int32),
        np.empty(most + 1),
    )
    trail = Trail(vector_workspace(states), np.zeros(2, np.int64))
    return Complete(automaton.inject, automaton.carry, window, shared, trail, shapes, vector_workspace(states))


@subkernel
def complete_probability(tools: Complete, steps: Steps, first: int, anchor: int, last: int) -> float:
    """How probable it is that a match in [first, last] holds the anchor.

    Parameters
    ----------
    tools
        Workspace; groups of a key come in the order of their anchors.
    steps, first, anchor, last
        Places in the steps, which follow one another without gaps from `first` on.
    """
    vector, trail = tools.vector, tools.trail
    low = first
    if trail.at[0] == 0 or trail.at[1] < steps.step[first]:
        trail.at[0] = begin(trail.vector)
    else:
        low = anchor - (steps.step[anchor] - trail.at[1]) + 1
    for at in range(low, anchor):
        trail.at[0], _ = push(trail.vector, trail.at[0], tools.inject, False, True, steps, at)
    size = trail.at[0]
    take(vector, trail.vector.state, trail.vector.value, 0, size)
    if tools.shared:
        trail.at[0], _ = push(trail.vector, size, tools.inject, False, True, steps, anchor)
        trail.at[1] = steps.step[anchor]
        settle(trail)
    else:
        trail.at[0] = 0
    size, accepted = push(vector, size, tools.inject, True, False, steps, anchor)
    size, taken = of_one_age(tools, size, steps, anchor, last)
    accepted += taken
    for at in range(anchor + 1, last + 1):
        if size == 0:
            break
        size, taken = push(vector, size, tools.carry, True, False, steps, at)
        accepted += taken
    return min(accepted, 1.0)


@subkernel
def settle(trail: Trail) -> None:
    """Scale the trail to a sum of 1, which rounding would leave over a million steps."""
    total = 0.0
    for place in range(trail.at[0]):
        total += trail.vector.value[place]
    for place in range(trail.at[0]):
        trail.vector.value[place] /= total


@subkernel
def of_one_age(tools: Complete, size: int, steps: Steps, anchor: int, last: int) -> tuple[int, float]:
    """Take the states of one age out of the vector where many share a set; its new size, and what they accept."""
    vector, shapes = tools.vector, tools.shapes
    sets = entries = 0
    for place in range(size):
        shape = shapes.shape[vector.state[place]]
        if shape >= 0:
            entries += 1
            if shapes.first_of[shape] < 0:
                shapes.found[sets] = shape
                sets += 1
            shapes.next_of[place] = shapes.first_of[shape]
            shapes.first_of[shape] = place
    # Fewer states than this are pushed faster one by one.
    worth = entries > 2 * sets
    accepted = 0.0
    for number in range(sets):
        shape = shapes.found[number]
        if worth:
            accepted += of_one_set(tools, shape, steps, anchor, last)
        shapes.first_of[shape] = -1
    if not worth:
        return size, 0.0
    left = 0
    for place in range(size):
        if shapes.shape[vector.state[place]] < 0:
            vector.state[left], vector.value[left] = vector.state[place], vector.value[place]
            left += 1
    return left, accepted


@subkernel
def of_one_set(tools: Complete, shape: int, steps: Steps, anchor: int, last: int) -> float:
    """What all entries of one set accept behind the anchor, each until it leaves the window."""
    vector, shapes = tools.vector, tools.shapes
    sets, done = shapes.vector, 0
    sets.state[0], sets.value[0] = shape, 1.0
    size = 1
    shapes.accepted[0] = 0.0
    found = 0.0
    place = shapes.first_of[shape]
    while place >= 0:
        age = shapes.age[vector.state[place]]
        reach = last - anchor if age == 0 else min(last - anchor, tools.window - age)
        while done < reach:
            size, taken = push(sets, size, shapes.moves, True, False, steps, anchor + done + 1)
            done += 1
            shapes.accepted[done] = shapes.accepted[done - 1] + taken
        found += vector.value[place] * shapes.accepted[reach]
        place = shapes.next_of[place]
    return found

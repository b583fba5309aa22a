"""What a scan that is not complete awaits (``partial => true``).

Source: SPEC section 3, ``partial``. A scan awaits an event of one operand: of the round at hand, where the last round
of a repeated group is not complete; else of the first part, in text order, that has fewer events or rounds than the
pattern says at least. It is the numbers of the pattern that count: where every place to stop is asked for, a
repetition that has enough for some match awaits nothing, whether it is stopped or not.
"""

from __future__ import annotations

import numpy as np

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.kleene.kernels.steps import Program, State
from patternlake.udfs.kleene.ways import ALL, ANY, EVENT, ROUNDS, Step
from patternlake.udfs.subkernels import uncounted

NOTHING = -1
"""Stands for the step that is awaited where nothing is missing."""

ENOUGH, AT_HAND = 0, 1
"""Rows of what `awaited_step` notes of each step: whether it has as much as it needs; whether a round inside of it has
begun and is not complete.
"""


def first_awaited(root: Step, *, optional: bool = False) -> IntArray:
    """int64[n]: the `EVENT` that each step awaits before it takes anything, or before its next round.

    Parameters
    ----------
    root
        The steps.
    optional
        Whether those are awaited, too, that a way takes and that may be left out; else it is `NOTHING` for them.
    """
    steps = list(root.walk())
    number = {id(step): at for at, step in enumerate(steps)}
    first = [None if step.optional and not optional else _first_needed(step) or _first(step) for step in steps]
    return np.array([NOTHING if step is None else number[id(step)] for step in first], np.int64)


def _first_needed(step: Step) -> Step | None:
    """The first event that a step needs; None where it needs none."""
    if step.can_be_empty:
        return None
    if step.kind == EVENT:
        return step
    needed = (_first_needed(part) for part in step.parts)
    return next((part for part in needed if part is not None), None) or _first(step)


def _first(step: Step) -> Step:
    """The first event of a step in text order: a round takes one, though it may need none of them."""
    return next(part for part in step.walk() if part.kind == EVENT)


@uncounted
def awaited_step(program: Program, awaits: IntArray, state: State, noted: IntArray) -> int:
    """The `EVENT` that a scan awaits, or `NOTHING`.

    Parameters
    ----------
    program, state
        What the scan has taken of which steps.
    awaits
        As `first_awaited` gives it.
    noted
        int64[2, n]: overwritten.
    """
    _note(program, state, noted)
    if noted[ENOUGH, 0] == 1 and noted[AT_HAND, 0] == 0:
        return NOTHING
    step = 0
    while program.kind[step] != EVENT:
        if program.kind[step] == ROUNDS:
            if noted[AT_HAND, step] == 0:
                # It has not begun, or its next round has not.
                return int(awaits[step])
            step += 1
            continue
        # What has enough is gone into for the round at hand alone: other parts of it may stay empty.
        whole = noted[ENOUGH, step] == 1
        chosen, part = NOTHING, step + 1
        while part < program.end[step]:
            # What may be left out has enough once it has begun, or its first round is at hand.
            few = not whole and noted[ENOUGH, part] == 0 and awaits[part] != NOTHING
            if (few or noted[AT_HAND, part] == 1) and (
                chosen < 0 or (program.kind[step] == ANY and state.begun[part] == 1)
            ):
                chosen = part
            part = program.end[part]
        if chosen < 0:
            if step == 0:
                return NOTHING
            # All that it has too few of may be left out: what stands behind it is awaited.
            noted[ENOUGH, step], noted[AT_HAND, step] = 1, 0
            chosen = 0
        step = chosen
    return step


@uncounted
def _note(program: Program, state: State, noted: IntArray) -> None:
    """Note what each step has, parts before what they are of."""
    for step in range(len(program.kind) - 1, -1, -1):
        kind = program.kind[step]
        if kind == EVENT:
            noted[ENOUGH, step] = state.taken[step] >= program.least[step]
            noted[AT_HAND, step] = 0
            continue
        if kind == ROUNDS:
            begun = state.begun[step + 1] == 1
            whole = begun and noted[ENOUGH, step + 1] == 1
            noted[ENOUGH, step] = state.taken[step] + whole >= program.least[step]
            noted[AT_HAND, step] = begun and (not whole or noted[AT_HAND, step + 1] == 1)
            continue
        of_parts, parts, chosen, at_hand = 0, 0, -1, 0
        part = step + 1
        while part < program.end[step]:
            parts += 1
            of_parts += noted[ENOUGH, part]
            at_hand |= noted[AT_HAND, part]
            if state.begun[part] == 1:
                chosen = part
            part = program.end[part]
        noted[AT_HAND, step] = at_hand
        if kind == ANY:
            noted[ENOUGH, step] = noted[ENOUGH, chosen] if chosen >= 0 else of_parts > 0
        else:
            noted[ENOUGH, step] = of_parts >= (program.least[step] if kind == ALL else parts)

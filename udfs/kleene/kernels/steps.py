"""The steps of a way as arrays, and how a scan goes from one to the next.

Source: SPEC section 3. What a scan has taken so far says which operands may take the next event; these are kept as a
list, the furthest first, and change only with an event that is taken:

- in a sequence the part that took the last event, and those behind it as far as all between have enough;
- under ``&`` every part; a repetition there is one block, which ends when another part takes an event;
- in a repeated group the round goes on, or a new one begins once it is complete. A round that is not complete when
  something else goes on is dropped with its events.

Where every place to stop is asked for (``repetition => 'all'``), a repetition has enough once it is stopped, and not
before: wherever it may stop, the scan is divided into one in which it does and one in which it goes on.

An operand behind ``,``, and under ``strict`` every operand, takes no other event than the one directly behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numba import njit

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.kleene.ways import ALL, ANY, EVENT, NEXT, ROUNDS, THEN, Step
from patternlake.udfs.subkernels import inlined, subkernel, uncounted

ENDLESS = 1 << 62
"""Stands for "as many as there are", and for "no such event"."""

BLOCKED, STOPPED = 1, 2
"""`State.closed`: another side of ``&`` has ended it; it has stopped, so that it takes no more events, or rounds."""


class Program(NamedTuple):
    """Steps in text order, each before its parts; the first one is the whole way.

    Attributes
    ----------
    kind, least, most
        int64[n]: see `ways.Step`; ENDLESS where there is no greatest number.
    parent
        int64[n]: the step that each is a part of, or -1.
    end
        int64[n]: one behind the last step inside of each.
    place
        int64[n]: of an `EVENT` its place among the operands of the way, else -1.
    rounds_of
        int64[n]: the innermost repeated group that each is inside of, or -1.
    ask, ask_round
        int64[e]: who may take an event, the furthest first: an `EVENT`, and the group of which it begins a new round,
        or -1.
    until
        int64[n]: the place of an operand whose `Scan.ends` are what ends the step, or -1.
    has_next, has_rounds, has_until
        Whether there are such steps.
    plain
        Whether it is a sequence of operands and nothing else, or one operand.
    every
        Whether every place where a repetition may stop is asked for.
    """

    kind: IntArray
    least: IntArray
    most: IntArray
    parent: IntArray
    end: IntArray
    place: IntArray
    rounds_of: IntArray
    until: IntArray
    ask: IntArray
    ask_round: IntArray
    has_next: bool
    has_rounds: bool
    has_until: bool
    plain: bool
    every: bool


class State(NamedTuple):
    """What a scan has taken, by step, but for the events themselves.

    Attributes
    ----------
    taken
        int64[n]: of an `EVENT` how many it took, of `ROUNDS` how many rounds are complete before the last one. What is
        inside of a group is counted in the last round.
    begun, enough
        int64[n]: whether it took an event; whether what follows may take the next one.
    closed
        int64[n]: `BLOCKED` and `STOPPED`, or 0.
    went_on
        int64[n]: of a repetition the count at which it went on where it might have stopped, or -1.
    mark
        int64[n]: of `ROUNDS` how many events were kept before the last round.
    head, first
        int64[n]: of an `EVENT` its last kept event, or -1; of any step its first one in the last round.
    open
        int64[n]: whether it may take the next event.
    ask, ask_round, ask_ordinal
        int64[e]: those of `Program.ask` that may, and the ordinal that the event must have, or -1.
    sizes
        int64[2]: how many events are kept, and how many of `ask` there are.
    """

    taken: IntArray
    begun: IntArray
    enough: IntArray
    closed: IntArray
    went_on: IntArray
    mark: IntArray
    head: IntArray
    first: IntArray
    open: IntArray
    ask: IntArray
    ask_round: IntArray
    ask_ordinal: IntArray
    sizes: IntArray


def program_of(root: Step, place_of: Mapping[int, int], *, every: bool) -> Program:
    """The steps of a way; `place_of` is the place of each operand among those of the way; see `Program.every`."""
    steps = list(root.walk())
    number = {id(step): at for at, step in enumerate(steps)}
    parent, rounds_of = [-1] * len(steps), [-1] * len(steps)
    for at, step in enumerate(steps):
        for part in step.parts:
            parent[number[id(part)]] = at
            rounds_of[number[id(part)]] = at if step.kind == ROUNDS else rounds_of[at]
    asks = [(number[id(step)], -1 if group is None else number[id(group)]) for step, group in _in_order(root)]

    def of(values: list[int]) -> IntArray:
        return np.array(values, np.int64)

    return Program(
        kind=of([step.kind for step in steps]),
        least=of([step.least for step in steps]),
        most=of([ENDLESS if step.most is None else step.most for step in steps]),
        parent=of(parent),
        end=of([at + sum(1 for _ in step.walk()) for at, step in enumerate(steps)]),
        place=of([place_of[step.operand] if step.kind == EVENT else -1 for step in steps]),
        rounds_of=of(rounds_of),
        until=of([-1 if step.until < 0 else place_of[step.until] for step in steps]),
        ask=of([step for step, _ in asks]),
        ask_round=of([group for _, group in asks]),
        has_next=any(step.kind == NEXT for step in steps),
        has_rounds=any(step.kind == ROUNDS for step in steps),
        has_until=any(step.until >= 0 for step in steps),
        plain=root.kind in (EVENT, THEN) and all(part.kind == EVENT for part in root.parts) and not every,
        every=every,
    )


def _in_order(step: Step) -> Iterator[tuple[Step, Step | None]]:
    """Who may take an event, the furthest first, and the group of which it begins a new round."""
    if step.kind == EVENT:
        yield step, None
        return
    if step.kind == ROUNDS:
        yield from ((first, step) for first in _first(step.parts[0]))
    for part in reversed(step.parts) if step.kind in (THEN, NEXT) else step.parts:
        yield from _in_order(part)


def _first(step: Step) -> Iterator[Step]:
    """The events with which a step may begin, in the same order."""
    if step.kind == EVENT:
        yield step
        return
    parts = list(step.parts)
    if step.kind in (THEN, NEXT):
        needed = next((at for at, part in enumerate(parts) if not part.can_be_empty), len(parts))
        parts = parts[needed::-1]
    for part in parts:
        yield from _first(part)


@njit(cache=True)
def new_state(program: Program) -> State:
    """The state of a scan that has taken nothing."""
    n, e = len(program.kind), len(program.ask)
    state = State(
        np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64),
        np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64),
        np.zeros(n, np.int64), np.zeros(e, np.int64), np.zeros(e, np.int64), np.zeros(e, np.int64),
        np.zeros(2, np.int64),
    )  # fmt: skip
    state.went_on[:] = -1
    state.head[:] = -1
    state.first[:] = -1
    state.ask_round[:] = -1
    return state


@subkernel
def state_of(states: State, row: int) -> State:
    """One of several states that are rows of the same arrays; what changes in it changes there."""
    return State(
        states.taken[row], states.begun[row], states.enough[row], states.closed[row], states.went_on[row],
        states.mark[row], states.head[row], states.first[row], states.open[row], states.ask[row],
        states.ask_round[row], states.ask_ordinal[row], states.sizes[row],
    )  # fmt: skip


@inlined
def copy_state(program: Program, state: State, source: State) -> None:
    """Make a state equal to another, of a scan that has taken nothing if the program is plain."""
    for step in range(len(source.taken)):
        state.taken[step] = source.taken[step]
        state.head[step] = source.head[step]
        state.first[step] = source.first[step]
        if not program.plain:
            state.begun[step] = source.begun[step]
            state.enough[step] = source.enough[step]
            state.closed[step] = source.closed[step]
            state.went_on[step] = source.went_on[step]
            state.mark[step] = source.mark[step]
            state.open[step] = source.open[step]
    for ask in range(source.sizes[1]):
        state.ask[ask] = source.ask[ask]
        state.ask_ordinal[ask] = source.ask_ordinal[ask]
        if not program.plain:
            state.ask_round[ask] = source.ask_round[ask]
    state.sizes[0] = source.sizes[0]
    state.sizes[1] = source.sizes[1]


@uncounted
def ends(program: Program, state: State, group: int, step: int, begins: int) -> bool:
    """Whether a round of a group is left incomplete as a step takes an event, which begins a round of `begins`."""
    inside = group < step < program.end[group] and not (begins >= 0 and begins < group < program.end[begins])
    return not inside and state.begun[group + 1] == 1 and state.enough[group + 1] == 0


@uncounted
def is_dropped(program: Program, state: State, kept: IntArray, at: int, step: int, begins: int) -> bool:
    """Whether a kept event is dropped as a step takes one."""
    if kept[at, 1] < 0:
        return True
    if not program.has_rounds:
        return False
    group = program.rounds_of[kept[at, 1]]
    while group >= 0:
        if at >= state.mark[group] and ends(program, state, group, step, begins):
            return True
        group = program.rounds_of[group]
    return False


@uncounted
def begin_of(program: Program, state: State, scope: int, begins: int) -> int:
    """The first kept event of the round of a group that an event is taken in; `scope` -1: of all."""
    if scope < 0:
        return 0
    if (begins >= 0 and begins <= scope < program.end[begins]) or state.begun[scope + 1] == 0:
        return state.sizes[0]
    return state.mark[scope]


@uncounted
def _ordinal_of(
    program: Program, state: State, kept: IntArray, ordinal: IntArray, strict: bool, step: int, begins: int
) -> int:
    """The ordinal that the next event of a step must have; -1: any; -2: there can be no such event."""
    wanted = -1
    if strict and state.sizes[0] > 0:
        at = state.sizes[0] - 1
        while at >= 0 and is_dropped(program, state, kept, at, step, begins):
            at -= 1
        if at >= 0:
            wanted = ordinal[kept[at, 0]] + 1
    if not program.has_next or begins >= 0:
        # Nothing stands before the first event of a round.
        return wanted
    part, whole = step, program.parent[step]
    while whole >= 0:
        if program.kind[whole] == NEXT and state.begun[part] == 0:
            begun = False
            before = whole + 1
            while before < part:
                begun = begun or state.begun[before] == 1
                before = program.end[before]
            at = state.sizes[0] - 1
            while at >= 0 and not (
                whole < kept[at, 1] < part and not is_dropped(program, state, kept, at, step, begins)
            ):
                at -= 1
            if begun and at >= 0:
                own = ordinal[kept[at, 0]] + 1
                if wanted >= 0 and wanted != own:
                    return -2
                wanted = own
        part, whole = whole, program.parent[whole]
    return wanted


@uncounted
def _has_stopped(program: Program, state: State, step: int, count: int) -> bool:
    """Whether a repetition that has taken so much may be followed, by how often it is to be taken."""
    if count < program.least[step]:
        return False
    return not program.every or count == program.most[step] or state.closed[step] & STOPPED != 0


@uncounted
def _note_enough(program: Program, state: State) -> None:
    """`State.enough`, parts before what they are of."""
    for step in range(len(program.kind) - 1, -1, -1):
        kind = program.kind[step]
        if kind == EVENT:
            state.enough[step] = _has_stopped(program, state, step, state.taken[step])
            continue
        if kind == ROUNDS:
            whole = state.begun[step + 1] == 1 and state.enough[step + 1] == 1
            state.enough[step] = _has_stopped(program, state, step, state.taken[step] + whole) and not (
                program.every and state.begun[step + 1] == 1 and not whole
            )
            continue
        of_parts, parts, chosen = 0, 0, -1
        part = step + 1
        while part < program.end[step]:
            parts += 1
            of_parts += state.enough[part]
            if state.begun[part] == 1:
                chosen = part
            part = program.end[part]
        if kind == ANY:
            state.enough[step] = state.enough[chosen] if chosen >= 0 else of_parts > 0
        else:
            state.enough[step] = of_parts >= (program.least[step] if kind == ALL else parts)


@uncounted
def _note_open(program: Program, state: State) -> None:
    """`State.open`, what has parts before them."""
    state.open[0] = 1
    for step in range(len(program.kind)):
        kind, own, closed = program.kind[step], state.open[step], state.closed[step]
        if closed & BLOCKED:
            state.open[step] = own = 0
        if kind == EVENT:
            if closed & STOPPED or state.taken[step] >= program.most[step]:
                state.open[step] = 0
            continue
        if kind == ROUNDS:
            going_on = state.begun[step + 1] == 1
            may = going_on or (state.taken[step] < program.most[step] and closed & STOPPED == 0)
            state.open[step + 1] = own if may else 0
            continue
        chosen = -1
        part = step + 1
        while part < program.end[step]:
            if state.begun[part] == 1:
                chosen = part
            part = program.end[part]
        part = step + 1
        while part < program.end[step]:
            if kind == ALL:
                state.open[part] = own
            elif kind == ANY:
                state.open[part] = own if chosen < 0 or chosen == part else 0
            else:
                state.open[part] = own if part >= chosen else 0
                if part >= chosen and state.enough[part] == 0:
                    own = 0
            part = program.end[part]


@inlined
def _settle_plain(program: Program, state: State, kept: IntArray, ordinal: IntArray, strict: bool) -> None:
    """`settle` of a sequence of operands: from the one on that took the last event, as far as they have enough."""
    size, end = state.sizes[0], len(program.kind)
    first = kept[size - 1, 1] if size > 0 else (1 if end > 1 else 0)
    last = first
    while last < end - 1 and state.taken[last] >= program.least[last]:
        last += 1
    state.enough[0] = last == end - 1 and state.taken[last] >= program.least[last]
    wanted = ordinal[kept[size - 1, 0]] + 1 if strict and size > 0 else -1
    found = 0
    for step in range(last, first - 1, -1):
        if state.taken[step] < program.most[step]:
            state.ask[found] = step
            state.ask_ordinal[found] = wanted
            found += 1
    state.sizes[1] = found


@uncounted
def settle(program: Program, state: State, kept: IntArray, ordinal: IntArray, strict: bool) -> None:
    """Find out who may take the next event."""
    if program.plain:
        _settle_plain(program, state, kept, ordinal, strict)
        return
    _note_enough(program, state)
    _note_open(program, state)
    found = 0
    for at in range(len(program.ask)):
        step, begins = program.ask[at], program.ask_round[at]
        if begins < 0:
            if state.open[step] == 0:
                continue
        elif (
            state.open[begins] == 0
            or state.closed[begins] & STOPPED != 0
            or state.begun[begins + 1] == 0
            or state.enough[begins + 1] == 0
            or state.taken[begins] + 1 >= program.most[begins]
        ):
            continue
        if program.has_rounds and state.sizes[0] > 0 and is_dropped(program, state, kept, 0, step, begins):
            # The start itself stays.
            continue
        wanted = -1
        if strict or program.has_next:
            wanted = _ordinal_of(program, state, kept, ordinal, strict, step, begins)
            if wanted == -2:
                continue
        state.ask[found] = step
        state.ask_round[found] = begins
        state.ask_ordinal[found] = wanted
        found += 1
    state.sizes[1] = found


@uncounted
def _clear(program: Program, state: State, group: int) -> None:
    """Forget the last round of a group."""
    for step in range(group + 1, program.end[group]):
        state.taken[step] = 0
        state.begun[step] = 0
        state.closed[step] = 0
        state.went_on[step] = -1
        state.first[step] = -1


@uncounted
def _drop(program: Program, state: State, kept: IntArray, group: int) -> None:
    """Give back the events of the last round of a group, which is not complete."""
    for at in range(state.sizes[0] - 1, state.mark[group] - 1, -1):
        step = kept[at, 1]
        if group < step < program.end[group]:
            state.head[step] = kept[at, 2]
            kept[at, 1] = -1
    _clear(program, state, group)
    # What holds the group has begun only if something else of it has.
    step = group
    while step >= 0:
        begun = program.kind[step] == ROUNDS and state.taken[step] > 0
        part = step + 1
        while part < program.end[step]:
            begun = begun or state.begun[part] == 1
            part = program.end[part]
        state.begun[step] = begun
        step = program.parent[step]


@uncounted
def _take(program: Program, state: State, kept: IntArray, step: int, begins: int, event: int) -> None:
    """Take an event; there is room for it in `kept`, whose rows are events, steps (-1: dropped), and the row before
    that is of the same step.
    """
    if program.has_rounds:
        for group in range(len(program.kind)):
            if program.kind[group] == ROUNDS and ends(program, state, group, step, begins):
                _drop(program, state, kept, group)
    size = state.sizes[0]
    if begins >= 0:
        state.taken[begins] += 1
        _clear(program, state, begins)
    part, whole = -1, step
    while whole >= 0:
        if program.kind[whole] == ALL:
            other = whole + 1
            while other < program.end[whole]:
                if other != part:
                    for inner in range(other, program.end[other]):
                        repeated = program.kind[inner] == ROUNDS or program.most[inner] > 1
                        if repeated and program.kind[inner] in (EVENT, ROUNDS) and state.begun[inner] == 1:
                            state.closed[inner] |= BLOCKED
                other = program.end[other]
        if state.begun[whole] == 0:
            state.begun[whole] = 1
            state.first[whole] = size
            if whole > 0 and program.kind[whole - 1] == ROUNDS:
                state.mark[whole - 1] = size
        part, whole = whole, program.parent[whole]
    kept[size, 0] = event
    kept[size, 1] = step
    kept[size, 2] = state.head[step]
    state.head[step] = size
    state.taken[step] += 1
    state.sizes[0] = size + 1


@inlined
def take(
    program: Program,
    state: State,
    kept: IntArray,
    ordinal: IntArray,
    strict: bool,
    step: int,
    begins: int,
    event: int,
) -> None:
    """Take an event, and find out who may take the next one."""
    if program.plain:
        # Most patterns are this: nothing is begun anew and nothing dropped.
        size = state.sizes[0]
        if state.taken[step] == 0:
            state.first[step] = size
        kept[size, 0] = event
        kept[size, 1] = step
        kept[size, 2] = state.head[step]
        state.head[step] = size
        state.taken[step] += 1
        state.sizes[0] = size + 1
        # One that collects on changes nothing else.
        if strict or not program.least[step] < state.taken[step] < program.most[step]:
            _settle_plain(program, state, kept, ordinal, strict)
    else:
        _take(program, state, kept, step, begins, event)
        settle(program, state, kept, ordinal, strict)


@uncounted
def is_whole(program: Program, state: State, kept: IntArray) -> bool:
    """Whether what is taken is a match; rounds that are not complete are dropped."""
    if state.sizes[0] == 0 or state.enough[0] == 0:
        return False
    if program.has_rounds:
        for group in range(len(program.kind)):
            if program.kind[group] == ROUNDS and state.begun[group + 1] == 1 and state.enough[group + 1] == 0:
                _drop(program, state, kept, group)
    return bool(kept[0, 1] >= 0)


@uncounted
def undecided(program: Program, state: State) -> int:
    """A repetition that may stop here and may go on, or -1; it is noted that it goes on."""
    for step in range(len(program.kind)):
        kind = program.kind[step]
        if kind not in (EVENT, ROUNDS) or state.open[step] == 0 or state.closed[step] & STOPPED:
            continue
        count = state.taken[step]
        if kind == ROUNDS and state.begun[step + 1] == 1:
            if state.enough[step + 1] == 0:
                continue
            count += 1
        if program.least[step] <= count < program.most[step] and state.went_on[step] != count:
            state.went_on[step] = count
            return step
    return -1


@uncounted
def must_go_on(program: Program, state: State) -> int:
    """A group whose round is complete and that needs a further one, or -1."""
    for step in range(len(program.kind)):
        if program.kind[step] != ROUNDS or state.open[step] == 0 or state.begun[step + 1] == 0:
            continue
        if state.enough[step + 1] == 1 and state.taken[step] + 1 < program.least[step]:
            return step
    return -1


@uncounted
def go_on(program: Program, state: State, kept: IntArray, ordinal: IntArray, strict: bool, step: int) -> None:
    """Let a group that does not stop begin its next round, so that what may take nothing there can be decided, too."""
    if program.kind[step] == ROUNDS and state.begun[step + 1] == 1:
        state.taken[step] += 1
        _clear(program, state, step)
        settle(program, state, kept, ordinal, strict)


@uncounted
def stop(program: Program, state: State, kept: IntArray, ordinal: IntArray, strict: bool, step: int) -> None:
    """Let a repetition take no more."""
    state.closed[step] |= STOPPED
    settle(program, state, kept, ordinal, strict)

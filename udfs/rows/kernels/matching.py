"""The search for matches: backtracking over a program that never tries a failure again.

The standard wants the first way of the pattern, in the order of preferment, whose rows satisfy their conditions. That
is what a backtracking search finds. Alone it takes exponential time; so what failed at an instruction and a row is
noted, and is not tried again, neither in this attempt nor in one from a later row.

- Where no condition that may follow looks at the rows taken, a failure depends on the instruction and the row alone:
  one bit for each. So the search takes rows times instructions at most, over all attempts of a partition. (Where that
  would be too many bits, these failures go to the table, too.)
- A condition may say how far a row may be from an earlier one in a column that never falls, as in ``m.ts - r.ts <=
  1800`` where rows are ordered by ``ts``. Then the search stops at the first row that is too far, and does not take
  rows to the partition's end first.
- Where one may, a failure depends on what those conditions see as well (`conditions.see`). These are noted in a table
  of a fixed size, where a later one takes the place of an earlier one: what is forgotten is tried again. How often is
  bounded by `most_steps` alone.

The notes are written as a place is entered. While it is on the way to where the search is, nothing comes back to it,
since no circle of a program is without a row; once the search has left it, it has failed. A match that is complete
takes the notes of its own way back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from patternlake.udfs.arrays import BoolArray, IntArray
from patternlake.udfs.rows.kernels.conditions import holds, row_seen, see
from patternlake.udfs.rows.kernels.programs import AT_END, AT_START, MATCH, SPLIT, Program
from patternlake.udfs.rows.kernels.taken import (
    MAX_F,
    Conditions,
    Taken,
    count_values,
    forget_values,
    give_back,
    no_rows,
    take,
    take_rarely,
)
from patternlake.udfs.subkernels import subkernel, uncounted

PAST_LAST, TO_NEXT, TO_FIRST, TO_LAST = range(4)
"""Where AFTER MATCH SKIP goes on."""
DONE, ABSENT, FIRST_ROW, TOO_MANY_STEPS, TOO_MANY_ROWS, _FULL = range(6)
"""How a search ended: its end, no row to skip to, skip to the match's first row, more than was allowed, no room."""

_START, _COVERED, _NUMBER, _LEFT, _MATCHES, _SIZE, _STEPS, _PROGRESS = range(8)
"""How far a search is: of the partition, the row of the next attempt, the row behind those of matches, the next number
and the steps left; of all, matches, their rows and steps."""
_FAR = 1 << 61
"""Columns with greater values have no deadlines."""
_LEAST_TABLE, _GREATEST_TABLE = 1 << 10, 1 << 20
"""Entries of the table of failures that depend on rows taken: a power of two, by the longest partition."""


class Matches(NamedTuple):
    """What a search has found; rows are numbered over all partitions.

    Attributes
    ----------
    status
        DONE, or why the search stopped.
    row
        Where: the first row of the match, or of the attempt.
    steps
        How many instructions were run.
    starts
        int64[m]: the first row of each match; of an empty one, the row that it begins before.
    numbers
        int64[m]: MATCH_NUMBER, from 1 in each partition.
    offsets
        int64[m + 1]: where each match begins in `variables`; an empty one has no part there.
    variables
        int32: for each row of each match, row after row, the number of its variable.
    excluded
        bool: whether it stands in an exclusion.
    unmatched
        bool[n]: rows that are of no match, and before which no empty one begins.
    """

    status: int
    row: int
    steps: int
    starts: IntArray
    numbers: IntArray
    offsets: IntArray
    variables: NDArray[np.int32]
    excluded: BoolArray
    unmatched: BoolArray


class _Room(NamedTuple):
    """Where the search writes; it stops as one of these is full, and goes on from the same row with twice as much.

    The search itself makes no arrays, so that numba counts no references to them (`uncounted`).

    Attributes
    ----------
    choices
        int64[k, 3]: what the search may come back to: instruction, row, and how much of the trail is of the way there.
    trail
        int64[k, 2]: places on the way that are noted as failed: slot and row, or -1 and the entry of the table.
    path
        int64[k]: for each row of the attempt, the instruction that took it.
    taken
        For each row of the attempt, what conditions see.
    matches
        int64[j, 3]: first row, number, and where it ends in `variables`.
    variables, excluded
        As in `Matches`.
    """

    choices: IntArray
    trail: IntArray
    path: IntArray
    taken: Taken
    matches: IntArray
    variables: NDArray[np.int32]
    excluded: BoolArray


@subkernel
def _room(conditions: Conditions, size: int, matches: int, variables: int) -> _Room:
    """Room for attempts of so many rows, and for so many matches and rows of them in all."""
    return _Room(
        np.empty((size, 3), np.int64),
        np.empty((size, 2), np.int64),
        np.empty(size, np.int64),
        no_rows(conditions, size),
        np.empty((matches, 3), np.int64),
        np.empty(variables, np.int32),
        np.empty(variables, np.bool_),
    )


@uncounted
def _may_go_on(
    empty: BoolArray, ahead: NDArray[np.uint64], bits: NDArray[np.uint64], at: int, row: int, rows: int
) -> bool:
    """Whether an instruction is worth trying at a row: it may end here, or the row is of a variable that is next."""
    if empty[at]:
        return True
    if row < rows:
        for word in range(bits.shape[1]):
            if bits[row, word] & ahead[at, word]:
                return True
    return False


@subkernel
def _pack(holding: BoolArray, low: int, rows: int, bits: NDArray[np.uint64]) -> None:
    """The variables that each row of a partition may be of, as bits."""
    for row in range(rows):
        for word in range(bits.shape[1]):
            bits[row, word] = 0
    for variable in range(len(holding)):
        word, bit = variable >> 6, np.uint64(1) << np.uint64(variable & 63)
        for row in range(rows):
            if holding[variable, low + row]:
                bits[row, word] |= bit


@subkernel
def _never_fall(program: Program, conditions: Conditions, low: int, rows: int, rising: BoolArray) -> None:
    """Write which columns with a deadline are known in all rows of a partition and fall in none."""
    rising[:] = False
    for each in range(len(program.deadline)):
        rising[program.deadline[each, 0]] = True
    for column in range(len(rising)):
        row = low
        while rising[column] and row < low + rows:
            value = conditions.int_column[column, row]
            # So that differences do not wrap.
            rising[column] = conditions.int_known[column, row] and -_FAR < value < _FAR
            if row > low and value < conditions.int_column[column, row - 1]:
                rising[column] = False
            row += 1


@uncounted
def _is_too_late(
    program: Program, conditions: Conditions, taken: Taken, rising: BoolArray, at: int, row: int, low: int, rows: int
) -> bool:
    """Whether a variable that must follow can have no row from this one on, as they are too far from an earlier one."""
    for each in range(program.deadline_begin[at], program.deadline_begin[at + 1]):
        column = program.deadline[each, 0]
        if rising[column] and row < rows:
            other = row_seen(conditions, taken, program.deadline[each, 1], row, rows)
            if other >= 0:
                passed = conditions.int_column[column, low + row] - conditions.int_column[column, low + other]
                if passed > program.deadline[each, 2]:
                    return True
    return False


@uncounted
def _entry_of(table: IntArray, at: int, place: int, seen: IntArray, size: int) -> int:
    """Where the table has a failure, if it does; entries of rows that follow one another do so as well."""
    total = np.uint64(at)
    for number in range(size):
        total = (total ^ (total >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(seen[number])
    total = (total ^ (total >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
    return np.int64((total >> np.uint64(33)) + np.uint64(place)) & (len(table) - 1)


@uncounted
def _search(
    program: Program,
    conditions: Conditions,
    bits: NDArray[np.uint64],
    failed: NDArray[np.uint64],
    table: IntArray,
    seen: IntArray,
    rising: BoolArray,
    unmatched: BoolArray,
    room: _Room,
    progress: IntArray,
    low: int,
    part: int,
    rows: int,
    skip: int,
    targets: BoolArray,
    most_rows: int,
) -> int:
    """Go on with a partition from its row ``progress[_START]``; how that ended."""
    operations, variable_of, following, other = program.operation, program.variable, program.following, program.other
    empty, ahead, slots, groups = program.empty, program.ahead, program.slot, program.group
    choices, trail, path, taken = room.choices, room.trail, room.path, room.taken
    looks_back, exact = len(conditions.code) > 0, failed.shape[1] > 0
    counts, rarely = conditions.values > 0, False
    for each in range(len(conditions.aggregate)):
        rarely |= conditions.aggregate[each, 0] > MAX_F
    # A step writes one entry of each at most.
    capacity = len(path)
    start, covered, number = progress[_START], progress[_COVERED], progress[_NUMBER]
    matches, size = progress[_MATCHES], progress[_SIZE]
    steps, left = 0, progress[_LEFT]
    status = DONE
    while start < rows and status == DONE:
        at, row = 0, start
        pending, length = 0, 0
        taken.sizes[:] = 0
        complete = False
        alive = _may_go_on(empty, ahead, bits, at, row, rows)
        while True:
            if alive:
                steps += 1
                if looks_back:
                    alive = not _is_too_late(program, conditions, taken, rising, at, row, low, rows)
            if alive:
                slot = slots[at]
                if slot >= 0 and exact:
                    word, bit = slot >> 6, np.uint64(1) << np.uint64(slot & 63)
                    if failed[row, word] & bit:
                        alive = False
                    else:
                        failed[row, word] |= bit
                        trail[length, 0], trail[length, 1] = slot, row
                        length += 1
                elif slot >= 0 or groups[at] >= 0:
                    count = 0
                    if slot < 0:
                        count = see(conditions, taken, groups[at], variable_of, path, start, number, seen)
                    # A place of its own in each partition, behind its last row too: no entry need be removed.
                    place = low + part + row
                    entry = _entry_of(table, at, place, seen, count)
                    alive = table[entry, 0] != at or table[entry, 1] != place
                    for each in range(count):
                        alive |= table[entry, 2 + each] != seen[each]
                    if alive:
                        table[entry, 0], table[entry, 1] = at, place
                        for each in range(count):
                            table[entry, 2 + each] = seen[each]
                        trail[length, 0], trail[length, 1] = -1, entry
                        length += 1
            if not alive:
                # Back to the last choice; rows taken since are given back.
                if steps > left:
                    status = TOO_MANY_STEPS
                if pending == 0 or status != DONE:
                    break
                pending -= 1
                at, back, length = choices[pending, 0], choices[pending, 1], choices[pending, 2]
                if looks_back:
                    while row > back:
                        row -= 1
                        variable = variable_of[path[row - start]]
                        if counts:
                            count_values(conditions, taken, variable, low, -1)
                        give_back(conditions, taken, variable)
                row = back
                alive = True
                continue
            if length == capacity or pending == capacity or row - start == capacity:
                status = _FULL
                break

            operation = operations[at]
            if operation == MATCH:
                variable = variable_of[at]
                alive = row < rows and bits[row, variable >> 6] >> np.uint64(variable & 63) & np.uint64(1) != 0
                if alive:
                    path[row - start] = at
                    if looks_back:
                        take(conditions, taken, variable, row, low)
                        if rarely:
                            take_rarely(conditions, taken, variable, row, low)
                        if conditions.begin[variable] < conditions.begin[variable + 1] and not holds(
                            conditions, taken, variable, variable_of, path, start, row, low, rows, number
                        ):
                            if counts:
                                count_values(conditions, taken, variable, low, -1)
                            give_back(conditions, taken, variable)
                            alive = False
                if alive:
                    row += 1
                    at = following[at]
            elif operation == SPLIT:
                first, second = following[at], other[at]
                if not _may_go_on(empty, ahead, bits, first, row, rows):
                    first = second
                elif _may_go_on(empty, ahead, bits, second, row, rows):
                    choices[pending, 0], choices[pending, 1], choices[pending, 2] = second, row, length
                    pending += 1
                at = first
            elif operation == AT_START:
                alive = row == 0
                at = following[at]
            elif operation == AT_END:
                alive = row == rows
                at = following[at]
            else:
                complete = True
                break

        if counts:
            forget_values(conditions, taken, low)
        if complete or status == _FULL:
            # Its way has not failed, and may be gone again from another row.
            for each in range(length):
                slot = trail[each, 0]
                if slot < 0:
                    table[trail[each, 1], 0] = -1
                else:
                    failed[trail[each, 1], slot >> 6] &= ~(np.uint64(1) << np.uint64(slot & 63))
        if not complete:
            if status == DONE:
                unmatched[low + start] = start >= covered
                start += 1
            continue
        length = row - start
        if size + length > most_rows:
            status = TOO_MANY_ROWS
            continue
        if size + length > len(room.variables) or matches == len(room.matches):
            status = _FULL
            continue
        first_target, last_target = -1, -1
        for each in range(length):
            instruction = path[each]
            variable = variable_of[instruction]
            room.variables[size + each] = variable
            room.excluded[size + each] = program.excluded[instruction]
            if targets[variable]:
                first_target = start + each if first_target < 0 else first_target
                last_target = start + each
        size += length
        room.matches[matches, 0], room.matches[matches, 1], room.matches[matches, 2] = low + start, number, size
        matches += 1
        number += 1
        covered = max(covered, row)
        if length == 0 or skip == TO_NEXT:
            start += 1
        elif skip == PAST_LAST:
            start = row
        else:
            target = first_target if skip == TO_FIRST else last_target
            if target < 0:
                status = ABSENT
            elif target == start:
                status = FIRST_ROW
            else:
                start = target
    progress[_START], progress[_COVERED], progress[_NUMBER] = start, covered, number
    progress[_MATCHES], progress[_SIZE] = matches, size
    progress[_STEPS] += steps
    progress[_LEFT] = left - steps
    return status


@njit(cache=True)
def find_matches(
    program: Program,
    holding: BoolArray,
    partitions: IntArray,
    conditions: Conditions,
    skip: int,
    targets: BoolArray,
    most_steps: int,
    most_rows: int,
    most_notes: int,
) -> Matches:
    """Find the matches in each partition.

    Parameters
    ----------
    program
        The pattern.
    holding
        bool[v, n]: whether a row may be of a variable, by what the condition says of the row alone.
    partitions
        int64[p + 1]: where each partition begins, and where the last one ends.
    conditions
        What looks at the match so far; variables without code have no such condition.
    skip
        PAST_LAST, TO_NEXT, TO_FIRST or TO_LAST.
    targets
        bool[v]: of the last two, the variables to skip to.
    most_steps
        Greatest number of steps in a partition.
    most_rows
        Greatest number of rows of matches, over all of them.
    most_notes
        Bytes of notes of failures that depend on instruction and row alone; where they would be more, the table has
        these failures.

    Returns
    -------
    Matches
        Of the partitions in order; where the search stopped, those before it.
    """
    longest = 0
    for part in range(len(partitions) - 1):
        longest = max(longest, partitions[part + 1] - partitions[part])
    bits = np.empty((longest, program.ahead.shape[1]), np.uint64)
    words = (program.slots + 63) >> 6
    exact = (longest + 1) * words * 8 <= most_notes
    failed = np.zeros((longest + 1, words if exact else 0), np.uint64)
    width = 0
    for group in range(len(conditions.source_begin) - 1):
        # An aggregate is seen as three numbers.
        width = max(width, 3 * (conditions.source_begin[group + 1] - conditions.source_begin[group]))
    entries = 1
    if len(conditions.code) or not exact:
        entries = _LEAST_TABLE
        while entries < min(4 * longest, _GREATEST_TABLE):
            entries *= 2
    table = np.empty((entries, width + 2), np.int64)
    table[:, 0] = -1
    seen = np.empty(width + 1, np.int64)
    rising = np.zeros(len(conditions.int_column), np.bool_)
    unmatched = np.zeros(holding.shape[1], np.bool_)
    room = _room(conditions, 1024, 1024, 1024)
    progress = np.zeros(_PROGRESS, np.int64)
    status, stopped = DONE, -1
    for part in range(len(partitions) - 1):
        low = partitions[part]
        rows = partitions[part + 1] - low
        _pack(holding, low, rows, bits)
        failed[: rows + 1] = 0
        _never_fall(program, conditions, low, rows, rising)
        progress[_START], progress[_COVERED], progress[_NUMBER], progress[_LEFT] = 0, 0, 1, most_steps
        while True:
            status = _search(
                program, conditions, bits, failed, table, seen, rising, unmatched, room, progress,
                low, part, rows, skip, targets, most_rows,
            )  # fmt: skip
            if status != _FULL:
                break
            matches, size = progress[_MATCHES], progress[_SIZE]
            more = _room(conditions, 2 * len(room.path), 2 * len(room.matches), 2 * len(room.variables))
            more.matches[:matches] = room.matches[:matches]
            more.variables[:size] = room.variables[:size]
            more.excluded[:size] = room.excluded[:size]
            room = more
        if status != DONE:
            stopped = low + progress[_START]
            break
    matches, size = progress[_MATCHES], progress[_SIZE]
    offsets = np.zeros(matches + 1, np.int64)
    offsets[1:] = room.matches[:matches, 2]
    return Matches(
        status,
        stopped,
        progress[_STEPS],
        room.matches[:matches, 0].copy(),
        room.matches[:matches, 1].copy(),
        offsets,
        room.variables[:size].copy(),
        room.excluded[:size].copy(),
        unmatched,
    )

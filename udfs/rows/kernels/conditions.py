"""Conditions that look at the match so far, judged as rows are taken, and undone as they are given back.

What a condition sees of the rows taken are those of some sets of variables: the first and last ones, running
aggregates, and which values there are (`taken`).

A condition is code in postfix order over a stack of numbers that may be NULL. Each is an integer or a double: strings
and times come as integers that have their order. NULL, division by zero and NaN are treated as Spark does without
ANSI mode, integers wrap.
"""

from __future__ import annotations

import numpy as np

from patternlake.udfs.arrays import BoolArray, FloatArray, IntArray
from patternlake.udfs.measures.seen import CURRENT, FIRST
from patternlake.udfs.rows.kernels.taken import (
    AVG_F,
    AVG_I,
    COUNT_F,
    COUNT_I,
    COUNT_ROWS,
    DISTINCT,
    Conditions,
    Taken,
    compare_doubles,
)
from patternlake.udfs.subkernels import uncounted

# Operations; those on integers come before those on doubles where there are both.
(
    LOAD_I, LOAD_F, CONST_I, CONST_F, NULL, AGGREGATE_I, AGGREGATE_F, NUMBER, LABEL, TO_FLOAT,
    ADD_I, ADD_F, SUB_I, SUB_F, MUL_I, MUL_F, DIV_F, MOD_I, MOD_F, NEG_I, NEG_F, ABS_I, ABS_F,
    COMPARE_I, COMPARE_F, AND, OR, NOT, IS_NULL, COALESCE, CHOOSE, SQRT_F, FETCH_I, FETCH_F, CONTAINS,
) = range(35)  # fmt: skip
SAME = 8
COMPARISONS = {"<": 0b001, "=": 0b010, "<=": 0b011, ">": 0b100, "<>": 0b101, ">=": 0b110, "<=>": SAME}
"""Comparisons: a bit each, from the lowest on, for a left side that is less, equal and greater."""
SEES_FIRST, SEES_LAST, SEES_LABEL, SEES_AGGREGATE, SEES_NUMBER, SEES_FIRST_LABEL = range(6)
"""What the rest of a pattern may see of the rows taken, see `Conditions.source`."""


@uncounted
def row_seen(conditions: Conditions, taken: Taken, which: int, current: int, rows: int) -> int:
    """The row of the partition that a condition looks at, -1 where there is none."""
    kind, row = conditions.row[which, 0], current
    if kind != CURRENT:
        number, offset = conditions.row[which, 1], conditions.row[which, 2]
        count = taken.sizes[number]
        if offset >= count:
            return -1
        row = taken.rows[number, offset if kind == FIRST else count - 1 - offset]
    row += conditions.row[which, 3]
    return row if 0 <= row < rows else -1


@uncounted
def holds(
    conditions: Conditions,
    taken: Taken,
    variable: int,
    variables: IntArray,
    path: IntArray,
    start: int,
    current: int,
    low: int,
    rows: int,
    number: int,
) -> bool:
    """Whether a variable's condition holds for a row that was taken already.

    Parameters
    ----------
    conditions, taken
        The conditions, and the rows taken, with this one.
    variable
        Its variable.
    variables, path
        `Program.variable`, and for each row of the match the instruction that took it.
    start, current
        The first row of the match and the row asked about, in the partition.
    low, rows
        Where the partition begins among all rows, and how many it has.
    number
        The match's number.
    """
    integers, doubles, known = taken.stack_i, taken.stack_f, taken.stack_known
    top = -1
    for at in range(conditions.begin[variable], conditions.begin[variable + 1]):
        operation, one, two = conditions.code[at, 0], conditions.code[at, 1], conditions.code[at, 2]
        if operation <= NUMBER or operation == LABEL:
            top += 1
            known[top] = True
            if operation in (LOAD_I, LOAD_F, LABEL):
                row = row_seen(conditions, taken, two, current, rows)
                if row < 0:
                    known[top] = False
                elif operation == LOAD_I:
                    known[top] = conditions.int_known[one, low + row]
                    integers[top] = conditions.int_column[one, low + row]
                elif operation == LOAD_F:
                    known[top] = conditions.float_known[one, low + row]
                    doubles[top] = conditions.float_column[one, low + row]
                elif start <= row <= current:
                    integers[top] = variables[path[row - start]]
                else:
                    known[top] = False
            elif operation == CONST_I:
                integers[top] = conditions.integers[one]
            elif operation == CONST_F:
                doubles[top] = conditions.doubles[one]
            elif operation == NULL:
                known[top] = False
            elif operation == NUMBER:
                integers[top] = number
            else:
                count = taken.sizes[two]
                values = taken.known[one, count]
                kind = conditions.aggregate[one, 0] & (DISTINCT - 1)
                if kind in (COUNT_ROWS, COUNT_I, COUNT_F):
                    integers[top] = values
                else:
                    known[top] = values > 0
                    integers[top] = taken.integer[one, count]
                    doubles[top] = taken.double[one, count]
                    if kind in (AVG_I, AVG_F) and values > 0:
                        doubles[top] /= values
        elif operation in (TO_FLOAT, NEG_I, NEG_F, ABS_I, ABS_F, NOT, IS_NULL):
            if operation == TO_FLOAT:
                doubles[top] = integers[top]
            elif operation == NEG_I:
                integers[top] = -integers[top]
            elif operation == NEG_F:
                doubles[top] = -doubles[top]
            elif operation == ABS_I:
                integers[top] = abs(integers[top])
            elif operation == ABS_F:
                doubles[top] = abs(doubles[top])
            elif operation == NOT:
                integers[top] = 1 - integers[top]
            else:
                integers[top] = not known[top]
                known[top] = True
        elif operation == CHOOSE:
            # Condition, value if it is true, value otherwise.
            top -= 2
            taken_value = top + 1 if known[top] and integers[top] != 0 else top + 2
            integers[top], doubles[top], known[top] = integers[taken_value], doubles[taken_value], known[taken_value]
        elif operation >= SQRT_F:
            _look_up(conditions, taken, operation, one, low, top)
        else:
            top -= 1
            _apply(operation, one, integers, doubles, known, top)
    return bool(known[0] and integers[0] != 0)


@uncounted
def _look_up(conditions: Conditions, taken: Taken, operation: int, one: int, low: int, top: int) -> None:
    """An operation of the last value of the stack that few conditions have."""
    integers, doubles, known = taken.stack_i, taken.stack_f, taken.stack_known
    if operation == SQRT_F:
        doubles[top] = np.sqrt(doubles[top])
    elif known[top]:
        row = low + integers[top]
        if operation == FETCH_I:
            known[top] = conditions.int_known[one, row]
            integers[top] = conditions.int_column[one, row]
        elif operation == FETCH_F:
            known[top] = conditions.float_known[one, row]
            doubles[top] = conditions.float_column[one, row]
        else:
            # What is looked for may be a value that no row of the column has.
            integers[top] = integers[top] < conditions.values and taken.copies[one, integers[top]] > 0


@uncounted
def _apply(operation: int, one: int, integers: IntArray, doubles: FloatArray, known: BoolArray, top: int) -> None:
    """An operation of two values, the last two of the stack; its value takes their place at `top`."""
    second = top + 1
    both = known[top] and known[second]
    if operation in (COMPARE_I, COMPARE_F):
        if operation == COMPARE_F:
            order = compare_doubles(doubles[top], doubles[second])
        else:
            order = int(integers[top] > integers[second]) - int(integers[top] < integers[second])
        if one == SAME:
            integers[top] = order == 0 if both else known[top] == known[second]
            known[top] = True
            return
        integers[top] = one >> (1 + order) & 1
        known[top] = both
    elif operation in (AND, OR):
        # What decides by itself: false for AND, true for OR; else NULL if either is.
        decisive = 1 if operation == OR else 0
        decided = (known[top] and integers[top] == decisive) or (known[second] and integers[second] == decisive)
        integers[top] = decisive if decided else 1 - decisive
        known[top] = decided or both
    elif operation == COALESCE:
        if not known[top]:
            integers[top], doubles[top], known[top] = integers[second], doubles[second], known[second]
    else:
        known[top] = both
        if operation == ADD_I:
            integers[top] += integers[second]
        elif operation == ADD_F:
            doubles[top] += doubles[second]
        elif operation == SUB_I:
            integers[top] -= integers[second]
        elif operation == SUB_F:
            doubles[top] -= doubles[second]
        elif operation == MUL_I:
            integers[top] *= integers[second]
        elif operation == MUL_F:
            doubles[top] *= doubles[second]
        elif not both or (integers[second] == 0 if operation == MOD_I else doubles[second] == 0):
            known[top] = False
        elif operation == DIV_F:
            doubles[top] /= doubles[second]
        elif operation == MOD_I:
            # The remainder has the sign of the dividend.
            rest = abs(integers[top]) % abs(integers[second])
            integers[top] = -rest if integers[top] < 0 else rest
        else:
            doubles[top] = np.fmod(doubles[top], doubles[second])


@uncounted
def see(
    conditions: Conditions,
    taken: Taken,
    group: int,
    variables: IntArray,
    path: IntArray,
    start: int,
    number: int,
    seen: IntArray,
) -> int:
    """Write what conditions of a group see of the rows taken into `seen`; how many numbers that are."""
    size = 0
    for at in range(conditions.source_begin[group], conditions.source_begin[group + 1]):
        kind, one, offset = conditions.source[at, 0], conditions.source[at, 1], conditions.source[at, 2]
        if kind == SEES_NUMBER:
            seen[size] = number
        elif kind == SEES_AGGREGATE:
            count = taken.sizes[offset]
            seen[size] = taken.integer[one, count]
            seen[size + 1] = taken.double[one, count : count + 1].view(np.int64)[0]
            size += 2
            seen[size] = taken.known[one, count]
        else:
            count = taken.sizes[one]
            if offset >= count:
                # Of the first one that is not there yet, it matters how many are.
                seen[size] = -1 - count if kind in (SEES_FIRST, SEES_FIRST_LABEL) else -1
            else:
                row = taken.rows[one, offset if kind in (SEES_FIRST, SEES_FIRST_LABEL) else count - 1 - offset]
                seen[size] = row if kind in (SEES_FIRST, SEES_LAST) else variables[path[row - start]]
        size += 1
    return size

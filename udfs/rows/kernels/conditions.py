"""Conditions that look at the match so far, judged as rows are taken, and undone as they are given back.

What a condition sees of the rows taken are those of some sets of variables: the first and last ones, and running
aggregates. For each set its rows are kept in a list, and with each row the aggregates up to it. So taking a row adds
to the lists, and giving it back cuts them; nothing is computed twice.

A condition is code in postfix order over a stack of numbers that may be NULL. Each is an integer or a double: strings
and times come as integers that have their order. NULL, division by zero and NaN are treated as Spark does without
ANSI mode, integers wrap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from patternlake.udfs.arrays import BoolArray, FloatArray, IntArray
from patternlake.udfs.measures.seen import CURRENT, FIRST
from patternlake.udfs.subkernels import subkernel, uncounted

# Operations; those on integers come before those on doubles where there are both.
(
    LOAD_I, LOAD_F, CONST_I, CONST_F, NULL, AGGREGATE_I, AGGREGATE_F, NUMBER, LABEL, TO_FLOAT,
    ADD_I, ADD_F, SUB_I, SUB_F, MUL_I, MUL_F, DIV_F, MOD_I, MOD_F, NEG_I, NEG_F, ABS_I, ABS_F,
    COMPARE_I, COMPARE_F, AND, OR, NOT, IS_NULL, COALESCE, CHOOSE,
) = range(31)  # fmt: skip
EQUAL, UNEQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, SAME = range(7)
"""Comparisons; SAME is ``<=>``."""
COUNT_ROWS, COUNT_I, COUNT_F, SUM_I, SUM_F, AVG_I, AVG_F, MIN_I, MIN_F, MAX_I, MAX_F = range(11)
"""Aggregates; COUNT_ROWS is of rows, the others are of values that are not NULL."""
SEES_FIRST, SEES_LAST, SEES_LABEL, SEES_AGGREGATE, SEES_NUMBER, SEES_FIRST_LABEL = range(6)
"""What the rest of a pattern may see of the rows taken, see `Conditions.source`."""


class Conditions(NamedTuple):
    """Conditions of `v` variables over `n` rows.

    Attributes
    ----------
    begin
        int64[v + 1]: where each variable's code begins; one without code has no such condition.
    code
        int64[c, 3]: operation and its arguments: of LOAD and LABEL (column, row), of AGGREGATE its number, of CONST its
        place in `integers` or `doubles`, of COMPARE the comparison.
    row
        int64[r, 4]: rows that are looked at: CURRENT, FIRST or LAST, the set, the number from there, and how many rows
        of the partition to go on from it.
    integers, doubles
        Constants.
    int_column, int_known
        int64[i, n], bool[i, n]: columns of integers, and where they are not NULL.
    float_column, float_known
        float64[f, n], bool[f, n]: columns of doubles.
    sets_begin, sets
        int64[v + 1], int64: the sets that each variable is of.
    aggregates_begin, aggregate
        int64[s + 1], int64[a, 2]: the aggregates of each set: kind and column.
    source_begin, source
        int64[g + 1], int64[., 3]: for each group of conditions (`Program.group`) what they may see of rows taken
        before: kind, set or aggregate, and number. Two places of the search with the same row and the same of these
        end alike.
    depth
        Deepest stack.
    """

    begin: IntArray
    code: IntArray
    row: IntArray
    integers: IntArray
    doubles: FloatArray
    int_column: IntArray
    int_known: BoolArray
    float_column: FloatArray
    float_known: BoolArray
    sets_begin: IntArray
    sets: IntArray
    aggregates_begin: IntArray
    aggregate: IntArray
    source_begin: IntArray
    source: IntArray
    depth: int


class Taken(NamedTuple):
    """The rows taken so far: of each of `s` sets how many, of its first `k` rows (k grows) place and aggregates.

    Attributes
    ----------
    sizes
        int64[s].
    rows
        int64[s, k]: row of the partition.
    integer, double
        int64[a, k + 1], float64[a, k + 1]: each aggregate after so many rows of its set.
    known
        int64[a, k + 1]: how many values were not NULL.
    stack_i, stack_f, stack_known
        The stack of a condition.
    """

    sizes: IntArray
    rows: IntArray
    integer: IntArray
    double: FloatArray
    known: IntArray
    stack_i: IntArray
    stack_f: FloatArray
    stack_known: BoolArray


@subkernel
def no_rows(conditions: Conditions, size: int) -> Taken:
    """Nothing is taken yet, and there is room for so many rows."""
    sets, aggregates = len(conditions.aggregates_begin) - 1, len(conditions.aggregate)
    integer, double = np.empty((aggregates, size + 1), np.int64), np.empty((aggregates, size + 1))
    known = np.empty((aggregates, size + 1), np.int64)
    integer[:, 0], double[:, 0], known[:, 0] = 0, 0, 0
    return Taken(
        np.zeros(sets, np.int64),
        np.empty((sets, size), np.int64),
        integer,
        double,
        known,
        np.zeros(conditions.depth + 1, np.int64),
        np.zeros(conditions.depth + 1),
        np.zeros(conditions.depth + 1, np.bool_),
    )


@uncounted
def compare_doubles(one: float, two: float) -> int:
    """-1, 0 or 1; NaN is equal to itself and greater than all else, as in Spark."""
    if one != one:
        return 0 if two != two else 1
    if two != two or one < two:
        return -1
    return 1 if one > two else 0


@uncounted
def take(conditions: Conditions, taken: Taken, variable: int, row: int, low: int) -> None:
    """Add a row to the sets of its variable; `low` is the first row of the partition among all."""
    for at in range(conditions.sets_begin[variable], conditions.sets_begin[variable + 1]):
        number = conditions.sets[at]
        count = taken.sizes[number]
        taken.rows[number, count] = row
        taken.sizes[number] = count + 1
        for each in range(conditions.aggregates_begin[number], conditions.aggregates_begin[number + 1]):
            kind, column = conditions.aggregate[each, 0], conditions.aggregate[each, 1]
            known = taken.known[each, count]
            integer, double = taken.integer[each, count], taken.double[each, count]
            if kind == COUNT_ROWS:
                known += 1
            elif kind in (COUNT_I, SUM_I, AVG_I, MIN_I, MAX_I):
                if conditions.int_known[column, low + row]:
                    value = conditions.int_column[column, low + row]
                    if kind == SUM_I:
                        integer += value
                    elif kind == AVG_I:
                        double += value
                    elif known == 0 or (kind == MIN_I and value < integer) or (kind == MAX_I and value > integer):
                        integer = value
                    known += 1
            elif conditions.float_known[column, low + row]:
                number_value = conditions.float_column[column, low + row]
                if kind in (SUM_F, AVG_F):
                    double += number_value
                elif (
                    known == 0
                    or (kind == MIN_F and compare_doubles(number_value, double) < 0)
                    or (kind == MAX_F and compare_doubles(number_value, double) > 0)
                ):
                    double = number_value
                known += 1
            taken.known[each, count + 1] = known
            taken.integer[each, count + 1] = integer
            taken.double[each, count + 1] = double


@uncounted
def give_back(conditions: Conditions, taken: Taken, variable: int) -> None:
    """Take the last row from the sets of its variable."""
    for at in range(conditions.sets_begin[variable], conditions.sets_begin[variable + 1]):
        taken.sizes[conditions.sets[at]] -= 1


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
                kind = conditions.aggregate[one, 0]
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
        else:
            top -= 1
            _apply(operation, one, integers, doubles, known, top)
    return bool(known[0] and integers[0] != 0)


@uncounted
def _apply(operation: int, one: int, integers: IntArray, doubles: FloatArray, known: BoolArray, top: int) -> None:
    """An operation of two values, the last two of the stack; its value takes their place at `top`."""
    second = top + 1
    both = known[top] and known[second]
    if operation in (COMPARE_I, COMPARE_F):
        if operation == COMPARE_F:
            order = compare_doubles(doubles[top], doubles[second])
        else:
            order = 0 if integers[top] == integers[second] else 1 if integers[top] > integers[second] else -1
        if one == SAME:
            integers[top] = order == 0 if both else known[top] == known[second]
            known[top] = True
            return
        if one == EQUAL:
            truth = order == 0
        elif one == UNEQUAL:
            truth = order != 0
        elif one == LESS:
            truth = order < 0
        elif one == LESS_EQUAL:
            truth = order <= 0
        elif one == GREATER:
            truth = order > 0
        else:
            truth = order >= 0
        integers[top] = truth
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

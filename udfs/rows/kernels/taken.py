"""Rows taken so far, by sets of variables, and aggregates over them: undone as rows are given back.

For each set its rows are kept in a list, and with each row the aggregates up to it. So taking a row adds to the lists,
and giving it back cuts them; nothing is computed twice. Which values a set has, as DISTINCT asks, is counted value by
value: taking a row adds one, giving it back takes one away. (Few clauses ask, so this is done apart.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from patternlake.udfs.arrays import BoolArray, FloatArray, IntArray
from patternlake.udfs.subkernels import subkernel, uncounted

(
    COUNT_ROWS, COUNT_I, COUNT_F, SUM_I, SUM_F, AVG_I, AVG_F, MIN_I, MIN_F, MAX_I, MAX_F,
    LEAST_ROW_I, LEAST_ROW_F, GREATEST_ROW_I, GREATEST_ROW_F, SQUARES_F, VALUES_I,
) = range(17)  # fmt: skip
"""Aggregates; COUNT_ROWS is of rows, the others are of values that are not NULL. LEAST_ROW and GREATEST_ROW are the row
of that value, of equal ones the last; SQUARES is the sum of the squared distances from the average; VALUES is how many
rows have each value."""
DISTINCT = 32
"""Added to the kind of an aggregate that is of each value once."""


class Conditions(NamedTuple):
    """Conditions of `v` variables over `n` rows.

    Attributes
    ----------
    begin
        int64[v + 1]: where each variable's code begins; one without code has no such condition.
    code
        int64[c, 3]: operation and its arguments: of LOAD and LABEL (column, row), of AGGREGATE its number and set, of
        CONST its place in `integers` or `doubles`, of COMPARE the comparison, of FETCH the column whose value in the
        row on the stack it takes, of CONTAINS the VALUES.
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
        int64[s + 1], int64[a, 3]: the aggregates of each set: kind, column, and of DISTINCT the VALUES of the set,
        else -1.
    values
        All integers of columns of VALUES are less, and from 0 on; 0 where there are no VALUES.
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
    values: int
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
    copies
        int64[a, values]: of VALUES, how many of the set's rows have each value.
    stack_i, stack_f, stack_known
        The stack of a condition.
    """

    sizes: IntArray
    rows: IntArray
    integer: IntArray
    double: FloatArray
    known: IntArray
    copies: IntArray
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
        np.zeros((aggregates, conditions.values), np.int64),
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
    """Add a row to the sets of its variable; `low` is the first row of the partition among all.

    What few clauses ask is left to `take_rarely`: with a call in it, this function would not become a part of the
    search, and handing over all arrays at each row costs more than all else.
    """
    for at in range(conditions.sets_begin[variable], conditions.sets_begin[variable + 1]):
        number = conditions.sets[at]
        count = taken.sizes[number]
        taken.rows[number, count] = row
        taken.sizes[number] = count + 1
        for each in range(conditions.aggregates_begin[number], conditions.aggregates_begin[number + 1]):
            kind, column = conditions.aggregate[each, 0], conditions.aggregate[each, 1]
            if kind >= DISTINCT:
                kind -= DISTINCT
            if kind > MAX_F:
                continue
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
def take_rarely(conditions: Conditions, taken: Taken, variable: int, row: int, low: int) -> None:
    """Add a row that was just taken to what few clauses ask: DISTINCT, and kinds of aggregates above MAX_F."""
    for at in range(conditions.sets_begin[variable], conditions.sets_begin[variable + 1]):
        number = conditions.sets[at]
        count = taken.sizes[number] - 1
        for each in range(conditions.aggregates_begin[number], conditions.aggregates_begin[number + 1]):
            kind = conditions.aggregate[each, 0]
            is_copy = kind >= DISTINCT and _is_there(conditions, taken, each, low + row)
            if kind >= DISTINCT:
                kind -= DISTINCT
            if is_copy or kind > MAX_F:
                taken.known[each, count + 1] = taken.known[each, count]
                taken.integer[each, count + 1] = taken.integer[each, count]
                taken.double[each, count + 1] = taken.double[each, count]
            if kind > MAX_F and not is_copy:
                _fold_rarely(conditions, taken, each, kind, count, row, low)
    count_values(conditions, taken, variable, low, 1)


@uncounted
def _fold_rarely(conditions: Conditions, taken: Taken, each: int, kind: int, count: int, row: int, low: int) -> None:
    """Add a row to an aggregate of a kind above MAX_F, whose value is that before it so far."""
    column, place = conditions.aggregate[each, 1], low + row
    of_integers = kind in (LEAST_ROW_I, GREATEST_ROW_I)
    if kind == VALUES_I or not (
        conditions.int_known[column, place] if of_integers else conditions.float_known[column, place]
    ):
        return
    known = taken.known[each, count]
    taken.known[each, count + 1] = known + 1
    if kind == SQUARES_F:
        # The average so far stands in the bits of the integer, which the sum does not need.
        average = taken.integer[each, count : count + 1].view(np.float64)[0]
        distance = conditions.float_column[column, place] - average
        step = distance / (known + 1)
        taken.double[each, count + 1] += distance * (distance - step)
        taken.integer[each, count + 1 : count + 2].view(np.float64)[0] = average + step
        return
    best = low + taken.integer[each, count]
    if of_integers:
        one, two = conditions.int_column[column, place], conditions.int_column[column, best]
        order = 0 if one == two else -1 if one < two else 1
    else:
        order = compare_doubles(conditions.float_column[column, place], conditions.float_column[column, best])
    if known == 0 or order == 0 or (order < 0) == (kind in (LEAST_ROW_I, LEAST_ROW_F)):
        taken.integer[each, count + 1] = row


@uncounted
def _is_there(conditions: Conditions, taken: Taken, each: int, row: int) -> bool:
    """Whether the set of an aggregate has a row with the value of one among all rows."""
    values = conditions.aggregate[each, 2]
    column = conditions.aggregate[values, 1]
    if not conditions.int_known[column, row]:
        return False
    return taken.copies[values, conditions.int_column[column, row]] > 0


@uncounted
def give_back(conditions: Conditions, taken: Taken, variable: int) -> None:
    """Take the last row from the sets of its variable."""
    for at in range(conditions.sets_begin[variable], conditions.sets_begin[variable + 1]):
        taken.sizes[conditions.sets[at]] -= 1


@uncounted
def count_values(conditions: Conditions, taken: Taken, variable: int, low: int, change: int) -> None:
    """Count the values of the last row of the sets of its variable: 1 as it was taken, -1 before it is given back."""
    for at in range(conditions.sets_begin[variable], conditions.sets_begin[variable + 1]):
        number = conditions.sets[at]
        row = low + taken.rows[number, taken.sizes[number] - 1]
        for each in range(conditions.aggregates_begin[number], conditions.aggregates_begin[number + 1]):
            column = conditions.aggregate[each, 1]
            if conditions.aggregate[each, 0] == VALUES_I and conditions.int_known[column, row]:
                taken.copies[each, conditions.int_column[column, row]] += change


@uncounted
def forget_values(conditions: Conditions, taken: Taken, low: int) -> None:
    """Count no values any more, before the sets are emptied."""
    for number in range(len(taken.sizes)):
        for each in range(conditions.aggregates_begin[number], conditions.aggregates_begin[number + 1]):
            column = conditions.aggregate[each, 1]
            if conditions.aggregate[each, 0] == VALUES_I:
                for at in range(taken.sizes[number]):
                    row = low + taken.rows[number, at]
                    if conditions.int_known[column, row]:
                        taken.copies[each, conditions.int_column[column, row]] = 0

"""From a compiled pattern and the rows of partitions to their matches, or to an error that says why there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from patternlake.udfs.arrays import BoolArray, FloatArray, IntArray
from patternlake.udfs.errors import ArgumentError, PatternError, shorten
from patternlake.udfs.language.row_pattern.tree import PAST_LAST, TO_FIRST, TO_LAST, TO_NEXT
from patternlake.udfs.measures.matched_rows import Matches
from patternlake.udfs.rows.kernels import matching
from patternlake.udfs.rows.query import RowPattern

MOST_STEPS = 1_000_000_000
"""Steps of a partition's search if nothing else is asked for: some ten seconds."""
MOST_ROWS = 100_000_000
"""Rows of all matches together if nothing else is asked for; a row counts once for each match."""

MOST_NOTES = 1 << 28
"""Bytes of a search's notes of what failed, if nothing else is asked for."""

_SKIPS = (PAST_LAST, TO_NEXT, TO_FIRST, TO_LAST)


class TooManyStepsError(ArgumentError):
    """The search of a partition takes more steps, or its matches have more rows, than is allowed.

    Attributes
    ----------
    row
        The first row of the attempt, among all rows.
    """

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.row = row


class SkipTargetError(PatternError):
    """AFTER MATCH SKIP TO a variable that the match does not have, or that begins it.

    Attributes
    ----------
    row
        The first row of the match, among all rows.
    """

    row: int = -1


def match_rows(
    pattern: RowPattern,
    holding: BoolArray,
    partitions: IntArray,
    columns: Mapping[str, tuple[IntArray | FloatArray, BoolArray]] | None = None,
    *,
    most_steps: int = MOST_STEPS,
    most_rows: int = MOST_ROWS,
    most_notes: int = MOST_NOTES,
) -> Matches:
    """Find the matches of a clause in partitions whose rows are in order.

    Parameters
    ----------
    pattern
        The clause's pattern and those of its conditions that look at the match so far (`compile_pattern`).
    holding
        bool[v, n]: for each variable, in the order of ``clause.variables``, and each row, whether what the condition
        says of the row alone holds; NULL is false. A variable without such a condition has True everywhere.
    partitions
        int64[p + 1]: where each partition begins in the rows, and n.
    columns
        For the columns of the other conditions: values (int64 or float64, of any number where NULL) and where they are
        not NULL, n of each.
    most_steps
        Greatest number of steps in one partition. Without conditions that look at the match, it takes at most rows
        times instructions of the program, and the rows of its matches.
    most_rows
        Greatest number of rows of all matches.
    most_notes
        Bytes that exact notes of what failed may take: a bit for each row of the longest partition and each place of
        the program that several lead to. Where they would take more, some of what failed may be tried again.

    Returns
    -------
    Matches
        What ONE ROW PER MATCH and ALL ROWS PER MATCH need.

    Raises
    ------
    SkipTargetError
        AFTER MATCH SKIP leads to no row, or to the first one of the match.
    TooManyStepsError
        There are more steps or rows than allowed.
    ArgumentError
        Arrays do not fit each other.

    Examples
    --------
    A fall and a rise of two symbols' prices, each symbol a partition:

    >>> from patternlake.udfs.language.row_pattern.parser import parse_clause
    >>> from patternlake.udfs.rows.query import compile_pattern
    >>> clause = parse_clause("PATTERN (s d+ u+) DEFINE d AS price < PREV(price), u AS price > PREV(price)")
    >>> price = np.array([9, 8, 7, 8, 9, 5, 6, 4, 5])
    >>> partitions = np.array([0, 5, 9])
    >>> change = np.diff(price, prepend=price[0])
    >>> change[partitions[:-1]] = 0  # PREV of a partition's first row is NULL
    >>> holding = np.array([np.full(9, True), change < 0, change > 0])
    >>> found = match_rows(compile_pattern(clause), holding, partitions)
    >>> found.starts.tolist(), found.lengths.tolist(), found.unmatched.tolist()
    ([0, 6], [5, 3], [5])
    >>> [clause.variables[number] for number in found.variables]
    ['s', 'd', 'd', 'u', 'u', 's', 'd', 'u']

    A condition of rows taken before is a tree. So a rise ends below the price where the match began, as
    ``u AS price > PREV(price) AND price < FIRST(price)`` says it:

    >>> from patternlake.udfs.rows.conditions import Call, Value
    >>> from patternlake.udfs.measures.seen import Seen
    >>> from patternlake.udfs.measures.seen import FIRST
    >>> below = Call("<", (Value("price"), Value("price", Seen(FIRST))))
    >>> pattern = compile_pattern(clause, {"u": below}, {"price": "int"})
    >>> found = match_rows(pattern, holding, partitions, {"price": (price, np.full(9, True))})
    >>> found.starts.tolist(), found.lengths.tolist(), found.unmatched.tolist()
    ([0, 6], [4, 3], [4, 5])
    """
    clause = pattern.clause
    names = [
        clause.skip.variable or "",
        *(s for one in clause.subsets if one.name == clause.skip.variable for s in one.variables),
    ]
    targets = np.array([name in names for name in clause.variables], np.bool_)
    skip = _SKIPS.index(clause.skip.mode)
    _check_sizes(clause.variables, holding, partitions, columns or {})
    if missing := sorted(set(pattern.code.columns) - set(columns or {})):
        raise ArgumentError(f"the conditions look at columns that are not given: {', '.join(missing)}")
    # The kernel is compiled for arrays that can be written to, as these may not be.
    holding, partitions = np.require(holding, np.bool_, ["C", "W"]), np.require(partitions, np.int64, ["C", "W"])
    conditions = pattern.code.conditions(columns or {}, holding.shape[1])
    found = matching.find_matches(
        pattern.program, holding, partitions, conditions, skip, targets, most_steps, most_rows, most_notes
    )
    if found.status in (matching.ABSENT, matching.FIRST_ROW):
        name, place = shorten(clause.skip.variable), clause.skip.span
        absent = f"has no row of {name}; skip to a variable that each match has, or PAST LAST ROW"
        begins = f"begins with {name}, where the search would begin again; skip TO NEXT ROW, or to a later row"
        why = absent if found.status == matching.ABSENT else begins
        error = SkipTargetError(f"AFTER MATCH SKIP TO {name}: a match {why}", clause.text, place.start, place.end)
        error.row = int(found.row)
        raise error
    if found.status == matching.TOO_MANY_STEPS:
        steps = len(pattern.program.operation)
        why = (
            "as its conditions look at the match so far; make the pattern narrower (a reluctant quantifier, an upper "
            "bound, a condition of the row alone)"
            if any(pattern.code.looks_back)
            else f"up to {steps:,} at each row, as its quantifiers are written out; count to less"
        )
        message = (
            f"the search takes more than {most_steps:,} steps in one partition, {why}, partition by more columns, or "
            "allow more steps"
        )
        raise TooManyStepsError(message, int(found.row))
    if found.status == matching.TOO_MANY_ROWS:
        message = (
            f"the matches have more than {most_rows:,} rows together; skip past the last row, bound the quantifiers, "
            "or allow more rows"
        )
        raise TooManyStepsError(message, int(found.row))
    lengths = np.diff(found.offsets)
    rows = np.arange(len(found.variables)) + np.repeat(found.starts - found.offsets[:-1], lengths)
    return Matches(
        starts=found.starts,
        numbers=found.numbers,
        offsets=found.offsets,
        rows=rows,
        variables=found.variables,
        excluded=found.excluded,
        unmatched=np.flatnonzero(found.unmatched),
        steps=int(found.steps),
    )


def _check_sizes(
    variables: Sequence[str],
    holding: BoolArray,
    partitions: IntArray,
    columns: Mapping[str, tuple[IntArray | FloatArray, BoolArray]],
) -> None:
    """Fail where arrays do not fit each other: the kernel reads without looking where they end."""
    if holding.ndim != 2 or len(holding) != len(variables):
        wanted = f"a row for each of {len(variables)} variables"
        raise ArgumentError(f"holding has the shape {holding.shape}; it must have {wanted}")
    count = holding.shape[1]
    if not len(partitions) or partitions[0] != 0 or partitions[-1] != count or (np.diff(partitions) < 0).any():
        raise ArgumentError(f"partitions must begin with 0, never fall, and end with the number of rows, {count}")
    for name, parts in columns.items():
        if any(part.shape != (count,) for part in parts):
            raise ArgumentError(f"column {shorten(name)} has {[len(part) for part in parts]} values, not {count}")

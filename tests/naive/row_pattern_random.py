"""Random clauses of MATCH_RECOGNIZE and random rows, for the oracle and for the kernel."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from naive.row_patterns import (
    Alternation,
    Concatenation,
    Condition,
    End,
    Excluded,
    Found,
    Match,
    Pattern,
    Permutation,
    Quantified,
    Question,
    Row,
    Running,
    Skip,
    SkipError,
    Start,
    Variable,
    ways,
)

from patternlake.udfs.language.row_pattern.parser import parse_clause
from patternlake.udfs.measures.matched_rows import Matches
from patternlake.udfs.measures.seen import CURRENT, FIRST, LAST, Seen
from patternlake.udfs.rows.conditions import (
    Aggregate,
    Call,
    Classifier,
    Constant,
    Expression,
    Label,
    MatchNumber,
    Value,
)
from patternlake.udfs.rows.matches import SkipTargetError, match_rows
from patternlake.udfs.rows.query import compile_pattern

NAMES = "ABCD"
SUBSET = ("S", ("A", "B"))
COLUMNS = {"i": "int", "f": "float", "t": "int"}
MOST_WAYS = 3000
"""The oracle lists all ways; patterns with more are not asked."""


def random_pattern(rng: random.Random, budget: int = 5) -> Pattern:
    """A pattern of at most so many variables."""
    kind = rng.random()
    if budget <= 1 or kind < 0.15:
        leaf = rng.random()
        if leaf < 0.06:
            return Start() if rng.random() < 0.5 else End()
        return Concatenation(()) if leaf < 0.12 else Variable(rng.choice(NAMES))
    if kind < 0.45:
        least, most = rng.choice([(0, None), (0, None), (1, None), (0, 1), (2, 2), (1, 2), (0, 2), (2, None), (1, 3)])
        return Quantified(random_pattern(rng, budget - 1), least, most, rng.random() < 0.35)
    if kind < 0.52:
        return Excluded(random_pattern(rng, budget - 1))
    count = 3 if budget > 3 and rng.random() < 0.3 else 2
    items = tuple(random_pattern(rng, budget // count) for _ in range(count))
    if kind < 0.6:
        return Permutation(items)
    return Alternation(items) if kind < 0.75 else Concatenation(items)


def written(pattern: Pattern) -> str:
    """The text of a pattern, with no more parentheses than its tree has."""
    match pattern:
        case Variable(name):
            return name
        case Start():
            return "^"
        case End():
            return "$"
        case Concatenation(()):
            return "()"
        case Concatenation(items):
            return f"({' '.join(map(written, items))})"
        case Alternation(items):
            return f"({' | '.join(map(written, items))})"
        case Permutation(items):
            return f"PERMUTE({', '.join(map(written, items))})"
        case Excluded(item):
            return f"{{- {written(item)} -}}"
        case Quantified(item, least, most, reluctant):
            bounds = {(0, None): "*", (1, None): "+", (0, 1): "?", (least, least): f"{{{least}}}"}
            other = f"{{{least},{'' if most is None else most}}}" if least else f"{{,{most}}}"
            text = written(item)
            text = f"({text})" if isinstance(item, Quantified) else text
            return text + bounds.get((least, most), other) + ("?" if reluctant else "")
    raise AssertionError(pattern)


@dataclass(frozen=True)
class Case:
    """A clause with its rows: pattern, conditions of the row alone by column, conditions that look back, skip.

    Attributes
    ----------
    pattern
        The pattern.
    alone
        Variables with a condition of the row alone: a column of their name.
    back
        Conditions that look at the match so far.
    skip
        AFTER MATCH SKIP.
    partitions
        Rows of each.
    """

    pattern: Pattern
    alone: frozenset[str]
    back: Mapping[str, Expression]
    skip: Skip
    partitions: Sequence[Sequence[Row]]

    @property
    def text(self) -> str:
        """The clause; its conditions are given otherwise."""
        skip = f"{self.skip.mode} {self.skip.variable}".upper()
        used = [name for name in SUBSET[1] if name in variables_of(self.pattern)]
        subset = f" SUBSET {SUBSET[0]} = ({', '.join(used)})" if used else ""
        return f"AFTER MATCH SKIP {skip} PATTERN ({written(self.pattern)}){subset}"


def variables_of(pattern: Pattern) -> list[str]:
    """The variables of a pattern in the order of their first places."""
    items = getattr(pattern, "items", None) or ([pattern.item] if hasattr(pattern, "item") else [])
    names = [pattern.name] if isinstance(pattern, Variable) else []
    return list(dict.fromkeys([*names, *(name for item in items for name in variables_of(item))]))


def random_case(rng: random.Random, *, looks_back: bool, most_rows: int = 6) -> Case | None:
    """A clause and rows; None where the oracle would have too much to list."""
    pattern = random_pattern(rng, rng.choice([1, 3, 4, 5, 6, 7, 8]))
    names = variables_of(pattern)
    longest = rng.choice([most_rows, rng.randint(1, most_rows)])
    for count, _ in enumerate(ways(pattern, 0, longest)):
        if count > MOST_WAYS:
            return None
    likely = rng.choice([0.4, 0.7, 0.9])
    partitions = [
        [
            {
                **{name: rng.random() < likely if rng.random() < 0.95 else None for name in NAMES},
                "i": rng.choice([None, -1, 0, 1, 1, 2, 3]),
                "f": rng.choice([None, -0.5, 0.0, 1.0, 1.5, 2.0, math.nan]),
            }
            for _ in range(rng.choice([longest, rng.randint(0, longest)]))
        ]
        for _ in range(rng.randint(1, 3))
    ]
    for rows in partitions:
        time = 0
        for row in rows:
            # Mostly a time that never falls, as rows would be ordered by it.
            time += rng.choice([0, 1, 1, 2]) if rng.random() < 0.98 else -1
            row["t"] = time if rng.random() < 0.99 else None
    targets = [*names, *([SUBSET[0]] if {*names} & {*SUBSET[1]} else [])]
    mode = rng.choice(["past last row", "past last row", "to next row", "to first", "to last"])
    skip = Skip(mode, rng.choice(targets)) if mode in ("to first", "to last") and targets else Skip("past last row")
    skip = Skip(mode) if mode == "to next row" else skip
    back = {name: random_truth(rng, names, 2) for name in names if looks_back and rng.random() < 0.5}
    alone = frozenset(name for name in names if rng.random() < 0.85)
    return Case(pattern, alone, back, skip, partitions)


def random_truth(rng: random.Random, names: Sequence[str], depth: int) -> Expression:
    """A condition."""
    kind = rng.random()
    if rng.random() < 0.2:
        return random_deadline(rng, names)
    if depth and kind < 0.35:
        return Call(rng.choice(["and", "or", "or"]), (random_truth(rng, names, 0), random_truth(rng, names, depth - 1)))
    if depth and kind < 0.42:
        return Call("not", (random_truth(rng, names, depth - 1),))
    if kind < 0.48:
        return Call("is null", (random_value(rng, names, depth),))
    if kind < 0.58:
        number = LAST if rng.random() < 0.7 else FIRST
        shift = rng.choice([0, 0, 0, -1])
        seen = Seen(number, random_names(rng, names), rng.choice([0, 0, 1]), shift)
        return Call(rng.choice(["=", "<>"]), (Classifier(seen), Label(rng.choice(names))))
    operator = rng.choice(["=", "<>", "<", "<=", ">", ">=", "<=>"])
    return Call(operator, (random_value(rng, names, depth), random_value(rng, names, depth)))


def random_deadline(rng: random.Random, names: Sequence[str]) -> Expression:
    """How far the row asked about may be from an earlier one, in one of the ways to write it."""
    own = Value("t") if rng.random() < 0.7 else Value("t", Seen(LAST, random_names(rng, names)))
    seen = Seen(rng.choice([FIRST, LAST]), random_names(rng, names), rng.choice([0, 0, 1]), rng.choice([0, 0, -1]))
    other, most = Value("t", seen), Constant(rng.choice([0, 1, 2, 3]))
    strict = rng.random() < 0.5
    sides: list[tuple[Expression, Expression]] = [
        (Call("-", (own, other)), most),
        (own, Call("+", (other, most))),
        (own, Call("+", (most, other))),
        (Call("-", (own, most)), other),
        (own, other),
    ]
    less, more = rng.choice(sides)
    if rng.random() < 0.5:
        return Call("<" if strict else "<=", (less, more))
    return Call(">" if strict else ">=", (more, less))


def random_names(rng: random.Random, names: Sequence[str]) -> tuple[str, ...]:
    """A variable, a subset, or all."""
    return rng.choice([(), tuple(rng.sample(list(names), min(2, len(names)))), (rng.choice(names),)])


def random_value(rng: random.Random, names: Sequence[str], depth: int) -> Expression:
    """A number that a condition compares."""
    kind = rng.random()
    if depth and kind < 0.15:
        operator = rng.choice(["+", "-", "*", "/", "%"])
        return Call(operator, (random_value(rng, names, 0), random_value(rng, names, 0)))
    if depth and kind < 0.25:
        operator = rng.choice(["neg", "abs", "coalesce", "if"])
        count = {"coalesce": 2, "if": 2}.get(operator, 1)
        first = (random_truth(rng, names, 0),) if operator == "if" else ()
        return Call(operator, (*first, *(random_value(rng, names, 0) for _ in range(count))))
    if kind < 0.4:
        return Constant(rng.choice([0, 1, 2, 3, 1.5, 0.0, None]))
    if kind < 0.45:
        return MatchNumber()
    column = rng.choice(list(COLUMNS))
    if kind < 0.65:
        name = rng.choice(["count", "sum", "avg", "min", "max"])
        whole = name == "count" and rng.random() < 0.5
        return Aggregate(name, None if whole else column, random_names(rng, names))
    kind_of_row = rng.choice([CURRENT, FIRST, LAST, LAST])
    shift = rng.choice([0, 0, 0, -1, 1])
    if kind_of_row == CURRENT:
        return Value(column, Seen(CURRENT, (), 0, shift))
    return Value(column, Seen(kind_of_row, random_names(rng, names), rng.choice([0, 0, 0, 1, 2]), shift))


def value_of(part: Expression, run: Running) -> Any:
    """A part of a condition, as SQL says it: None is NULL, and NaN is equal to itself and above all else."""
    match part:
        case Constant(value):
            return value
        case MatchNumber():
            return run.number
        case Label(variable):
            return variable
        case Value(column, seen):
            row = row_of(seen, run)
            return None if row is None else run.rows[row][column]
        case Classifier(seen):
            row = row_of(seen, run)
            return run.labels[row - run.start] if row is not None and run.start <= row <= run.current else None
        case Aggregate(name, column, variables):
            rows = [row for row in run.of() if not variables or run.labels[row - run.start] in variables]
            values = [1 if column is None else run.rows[row][column] for row in rows]
            known = [value for value in values if value is not None]
            if name == "count":
                return len(known)
            if not known:
                return None
            ordered = sorted(known, key=above)
            total = sum(known)
            return {"sum": total, "avg": float(total) / len(known), "min": ordered[0], "max": ordered[-1]}[name]
        case Call("if", (condition, one, other)):
            return value_of(one if value_of(condition, run) is True else other, run)
        case Call(operator, arguments):
            return called(operator, [value_of(argument, run) for argument in arguments])
    raise AssertionError(part)


def row_of(seen: Seen, run: Running) -> int | None:
    """The row that is looked at."""
    rows = [row for row in run.of() if not seen.variables or run.labels[row - run.start] in seen.variables]
    if seen.kind != CURRENT and seen.offset >= len(rows):
        return None
    row = {CURRENT: lambda: run.current, FIRST: lambda: rows[seen.offset], LAST: lambda: rows[-1 - seen.offset]}
    at = row[seen.kind]() + seen.shift
    return at if 0 <= at < len(run.rows) else None


def above(value: float) -> tuple[bool, float]:
    """A key by which NaN is greater than all else."""
    return (True, 0) if math.isnan(value) else (False, value)


def called(operator: str, values: list[Any]) -> Any:
    """An operator of values that may be NULL."""
    if operator == "is null":
        return values[0] is None
    if operator == "coalesce":
        return next((value for value in values if value is not None), None)
    if operator == "and":
        return False if False in values else None if None in values else True
    if operator == "or":
        return True if True in values else None if None in values else False
    if operator == "<=>" and None in values:
        return values[0] is values[1]
    if None in values:
        return None
    if operator == "not":
        return not values[0]
    if operator in ("neg", "abs"):
        return -values[0] if operator == "neg" else abs(values[0])
    one, two = values
    if operator in ("+", "-", "*"):
        return {"+": one + two, "-": one - two, "*": one * two}[operator]
    if operator in ("/", "%"):
        return None if two == 0 else one / two if operator == "/" else math.fmod(one, two)
    left: Any = one if isinstance(one, str) else above(one)
    right: Any = two if isinstance(two, str) else above(two)
    return {
        "=": left == right, "<=>": left == right, "<>": left != right, "<": left < right, "<=": left <= right,
        ">": left > right, ">=": left >= right,
    }[operator]  # fmt: skip


def expected(case: Case) -> list[Found] | tuple[str, int]:
    """What the oracle finds in each partition, or why it stops, and at which row among all."""

    def condition(name: str) -> Condition:
        def judge(run: Running) -> bool | None:
            if name in case.alone and run.rows[run.current][name] is not True:
                return False
            return name not in case.back or value_of(case.back[name], run) is True

        return judge

    define = {name: condition(name) for name in variables_of(case.pattern)}
    return answers_to(Question(case.pattern, define, {SUBSET[0]: SUBSET[1]}, case.skip), case)


def answers_to(question: Question, case: Case) -> list[Found] | tuple[str, int]:
    """What a question finds in each partition of a case, or why it stops, and at which row among all."""
    answer, low = [], 0
    for rows in case.partitions:
        try:
            answer.append(question.ask(rows))
        except SkipError as error:
            return error.reason, low + error.start
        low += len(rows)
    return answer


def found_by_kernel(case: Case, **bounds: int) -> list[Found] | tuple[str, int]:
    """The same by the parser, the program and the kernel."""
    clause = parse_clause(case.text)
    rows = [row for part in case.partitions for row in part]
    holding = np.array(
        [[name not in case.alone or row[name] is True for row in rows] for name in clause.variables], np.bool_
    ).reshape(len(clause.variables), len(rows))
    columns: dict[str, tuple[Any, Any]] = {
        name: (
            np.array([row[name] or 0 for row in rows], np.int64 if kind == "int" else np.float64),
            np.array([row[name] is not None for row in rows], np.bool_),
        )
        for name, kind in COLUMNS.items()
    }
    partitions = np.cumsum([0, *map(len, case.partitions)])
    pattern = compile_pattern(clause, case.back, COLUMNS)
    return answer_of(case, lambda: match_rows(pattern, holding, partitions, columns, **bounds))


def answer_of(case: Case, find: Callable[[], Matches]) -> list[Found] | tuple[str, int]:
    """Matches as the oracle gives them, or why there are none."""
    variables = variables_of(case.pattern)
    partitions = np.cumsum([0, *map(len, case.partitions)])
    try:
        found = find()
    except SkipTargetError as error:
        return ("absent" if "has no row" in error.message else "first row"), error.row
    answer = []
    for low, high in pairwise(partitions.tolist()):
        matches = []
        for at in np.flatnonzero((found.starts >= low) & (found.starts < high)).tolist():
            of = slice(found.offsets[at], found.offsets[at + 1])
            start = int(found.starts[at] - low)
            assert found.rows[of].tolist() == list(range(low + start, low + start + found.lengths[at]))
            labels = tuple(variables[number] for number in found.variables[of])
            matches.append(Match(int(found.numbers[at]), start, labels, tuple(found.excluded[of].tolist())))
        unmatched = found.unmatched[(found.unmatched >= low) & (found.unmatched < high)] - low
        answer.append(Found(tuple(matches), tuple(unmatched.tolist())))
    return answer

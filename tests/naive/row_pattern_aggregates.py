"""Random aggregates in DEFINE, as text and as what they are of the rows of a match so far."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from naive.row_pattern_measures import aggregate, is_nan
from naive.row_pattern_random import SUBSET, Case, above, called
from naive.row_patterns import Condition, Question, Running

Cell = Callable[[Running, int], Any]
"""A value in a row of the match."""


@dataclass(frozen=True)
class Asked:
    """A condition, or an argument of an aggregate."""

    text: str
    value: Callable[..., Any]


def random_condition(rng: random.Random, names: Sequence[str]) -> Asked:
    """A condition with an aggregate."""
    subset = [SUBSET[0]] if {*names} & {*SUBSET[1]} else []
    variable = rng.choice([None, *names, *subset])
    before = "" if variable is None else f"{variable}."
    column = rng.choice("ift")
    kind = rng.random()
    if kind < 0.12:
        return contains(rng, variable, before, column)
    if kind < 0.24:
        return spread(rng, variable, before, column)
    if kind < 0.36:
        return by(rng, variable, before)
    if kind < 0.42:
        made = Asked(f"size(collect_set({before}{column}))", of_rows("count", variable, cell(column), distinct=True))
        return compared(rng, made, [0, 1, 2])
    return folded(rng, variable, before, column)


def folded(rng: random.Random, variable: str | None, before: str, column: str) -> Asked:
    """A count, a sum, an average, a least or greatest value."""
    name = rng.choice(["count", "count", "sum", "avg", "min", "max", "count_if", "any", "every"])
    label = Asked(f"CLASSIFIER({variable or ''})", lambda run, at: run.labels[at - run.start])
    is_a = Asked(f"{label.text} = 'A'", lambda run, at: label.value(run, at) == "A")
    number = Asked("MATCH_NUMBER()", lambda run, _: run.number)
    if name in ("count_if", "any", "every"):
        late = Asked("MATCH_NUMBER() > 1", lambda run, _: run.number > 1)
        above_0 = Asked(f"{before}{column} > 0", lambda run, at: called(">", [cell(column)(run, at), 0]))
        argument = rng.choice([is_a, late, above_0])
    else:
        chosen = Asked(
            f"CASE WHEN {is_a.text} THEN {before}i ELSE {before}t END",
            lambda run, at: cell("i" if is_a.value(run, at) else "t")(run, at),
        )
        argument = rng.choice([Asked(before + column, cell(column)), chosen, number])
        if name in ("count", "min", "max") and rng.random() < 0.5:
            argument = label
    plain = argument.text == before + column or argument is number
    can = plain or name in ("min", "max") or (name == "count" and argument is label)
    distinct = can and name not in ("count_if", "any", "every") and rng.random() < 0.4
    tests = [
        Asked(f"{before}i > 0", lambda run, at: called(">", [cell("i")(run, at), 0])),
        Asked("MATCH_NUMBER() = 1", lambda run, _: run.number == 1),
    ]
    if not distinct or argument is label:
        tests.append(Asked(f"{label.text} <> 'B'", lambda run, at: label.value(run, at) != "B"))
    test = rng.choice(tests) if rng.random() < 0.4 else None
    text = f"{name}({'DISTINCT ' if distinct else ''}{argument.text})"
    text += "" if test is None else f" FILTER (WHERE {test.text})"
    if before not in text and label.text not in text:
        variable = None  # MATCH_NUMBER is of all rows
    if name in ("any", "every"):
        wanted = rng.choice([True, False])
        value = of_rows({"any": "max", "every": "min"}[name], variable, argument.value, test)
        return Asked(f"({text}) = {wanted}", lambda run: called("=", [value(run), wanted]))
    if name == "count_if":
        counted: Cell = lambda run, at: True if argument.value(run, at) else None  # noqa: E731
        return compared(rng, Asked(text, of_rows("count", variable, counted, test)), [0, 1, 2])
    made = Asked(text, of_rows(name, variable, argument.value, test, distinct=distinct))
    labels = argument is label and name in ("min", "max")
    return compared(rng, made, ["A", "B", "C"] if labels else [0, 1, 2, 3, 1.5])


def by(rng: random.Random, variable: str | None, before: str) -> Asked:
    """A value in the row where another is least or greatest."""
    column, other, name = rng.choice("ift"), rng.choice("ift"), rng.choice(["max_by", "min_by"])

    def value(run: Running) -> Any:
        rows = [at for at in run.of(variable) if run.rows[at][other] is not None]
        if not rows:
            return None
        choose = max if name == "max_by" else min
        best = choose(above(run.rows[at][other]) for at in rows)
        return run.rows[[at for at in rows if above(run.rows[at][other]) == best][-1]][column]

    return compared(rng, Asked(f"{name}({before}{column}, {before}{other})", value), [0, 1, 2])


def spread(rng: random.Random, variable: str | None, before: str, column: str) -> Asked:
    """A variance or its root, beside a number that it never is."""
    name = rng.choice(["var_pop", "var_samp", "variance", "stddev_pop", "stddev", "std"])
    distinct = rng.random() < 0.3

    def value(run: Running) -> Any:
        values = of_rows("array_agg", variable, cell(column), distinct=distinct)(run)
        less = 0 if name.endswith("pop") else 1
        if len(values) <= less:
            return None
        mean = sum(values) / len(values)
        variance = sum((one - mean) ** 2 for one in values) / (len(values) - less)
        return variance**0.5 if name.startswith("std") else variance

    return compared(rng, Asked(f"{name}({'DISTINCT ' if distinct else ''}{before}{column})", value), [0.2137, 0.8713])


def contains(rng: random.Random, variable: str | None, before: str, column: str) -> Asked:
    """Whether a row's value is that of a row so far."""
    shift, function = rng.choice([0, 1, 2]), rng.choice(["array_agg", "collect_set"])
    other = rng.choice([column, *"ift"])
    looked, back = rng.choice([(f"PREV({other}, {shift})", True), (f"LAST({before}{other}, {shift})", False)])

    def value(run: Running) -> Any:
        rows = run.of(variable)
        at = run.current - shift if back else rows[-1 - shift] if shift < len(rows) else -1
        wanted = run.rows[at][other] if at >= 0 else None
        if wanted is None:
            return None
        return any(called("=", [one, wanted]) for one in of_rows("array_agg", variable, cell(column))(run))

    denied = rng.random() < 0.5
    text = f"array_contains({function}({before}{column}), {looked})"
    return Asked(f"NOT {text}" if denied else text, lambda run: called("not", [value(run)]) if denied else value(run))


def cell(column: str) -> Cell:
    """A column in a row."""
    return lambda run, at: run.rows[at][column]


def of_rows(
    name: str, variable: str | None, argument: Cell, test: Asked | None = None, *, distinct: bool = False
) -> Callable[[Running], Any]:
    """An aggregate over the rows so far of a variable."""

    def value(run: Running) -> Any:
        rows = [at for at in run.of(variable) if test is None or test.value(run, at)]
        return aggregate(name, [argument(run, at) for at in rows], distinct=distinct)

    return value


def compared(rng: random.Random, made: Asked, constants: Sequence[Any]) -> Asked:
    """A value beside a constant."""
    constant = rng.choice(constants)
    sign = rng.choice([">", "<", ">=", "<=", "=", "<>"]) if not is_nan(constant) else "="
    shown = f"'{constant}'" if isinstance(constant, str) else str(constant)
    return Asked(f"{made.text} {sign} {shown}", lambda run: called(sign, [made.value(run), constant]))


def questions(case: Case, asked: Mapping[str, Asked]) -> Question:
    """The oracle's question of a case whose conditions are given otherwise."""

    def condition(name: str) -> Condition:
        def judge(run: Running) -> bool | None:
            if name in case.alone and run.rows[run.current][name] is not True:
                return False
            return name not in asked or operator.is_(asked[name].value(run), True)

        return judge

    return Question(case.pattern, {name: condition(name) for name in "ABCD"}, {SUBSET[0]: SUBSET[1]}, case.skip)

"""Conditions of random clauses as text, and Spark's part of their translation in Python: columns of SQL, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import sqlglot
from naive.row_pattern_random import NAMES, Case, called
from sqlglot import exp

from patternlake.udfs.language.row_pattern.parser import parse_clause
from patternlake.udfs.measures.matched_rows import Matches
from patternlake.udfs.measures.seen import CURRENT, FIRST, Seen
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
from patternlake.udfs.rows.definitions import read_definitions
from patternlake.udfs.rows.kernel_columns import encode_columns
from patternlake.udfs.rows.matches import match_rows
from patternlake.udfs.rows.query import compile_pattern

SPARK = {"i": "int", "f": "double", "t": "bigint", **dict.fromkeys(NAMES, "boolean")}
_OPERATORS = {
    "EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "NullSafeEQ": "<=>", "Add": "+",
    "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%", "And": "and", "Or": "or", "Not": "not", "Neg": "neg", "Abs": "abs",
}  # fmt: skip


def prefix(variables: Sequence[str]) -> str:
    """What stands before a column of some variables."""
    if not variables:
        return ""
    return f"{variables[0] if len(variables) == 1 else 'S_' + ''.join(sorted(variables))}."


def written(part: Expression) -> str:
    """A condition as text."""
    match part:
        case Constant(value):
            return "NULL" if value is None else str(value)
        case MatchNumber():
            return "MATCH_NUMBER()"
        case Label(variable):
            return f"'{variable}'"
        case Value(column, seen):
            return navigated(prefix(seen.variables) + column, seen)
        case Classifier(seen):
            return navigated(f"CLASSIFIER({prefix(seen.variables)[:-1]})", seen)
        case Aggregate(name, column, variables):
            return f"{name}({prefix(variables)}{column or '*'})"
        case Call("if", (condition, one, other)):
            return f"CASE WHEN {written(condition)} THEN {written(one)} ELSE {written(other)} END"
        case Call("coalesce" | "abs" as operator, arguments):
            return f"{operator}({', '.join(map(written, arguments))})"
        case Call("neg", (one,)):
            return f"(- {written(one)})"
        case Call("not", (one,)):
            return f"(NOT {written(one)})"
        case Call("is null", (one,)):
            return f"({written(one)} IS NULL)"
        case Call(operator, arguments):
            return f"({f' {operator} '.join(map(written, arguments))})"
    raise AssertionError(part)


def navigated(column: str, seen: Seen) -> str:
    """A column in the row that is looked at."""
    text = column
    if seen.kind != CURRENT:
        text = f"{'FIRST' if seen.kind == FIRST else 'LAST'}({column}, {seen.offset})"
    return f"{'PREV' if seen.shift < 0 else 'NEXT'}({text}, {abs(seen.shift)})" if seen.shift else text


def clause_of(case: Case) -> str:
    """The clause with its conditions."""
    sets: set[str] = set()

    def look(part: Expression) -> None:
        variables = part.seen.variables if isinstance(part, (Value, Classifier)) else getattr(part, "variables", ())
        if len(variables) > 1:
            sets.add("".join(sorted(variables)))
        for argument in part.arguments if isinstance(part, Call) else ():
            look(argument)

    for condition in case.back.values():
        look(condition)
    subsets = [f"S_{names} = ({', '.join(names)})" for names in sorted(sets)]
    texts = {name: [name] if name in case.alone else [] for name in NAMES}
    for name, condition in case.back.items():
        texts[name].append(written(condition))
    defined = [f"{name} AS {' AND '.join(parts)}" for name, parts in texts.items() if parts]
    text = case.text
    if subsets:
        text += (", " if "SUBSET" in text else " SUBSET ") + ", ".join(subsets)
    return f"{text} DEFINE {', '.join(defined)}" if defined else text


def value_in(node: Any, rows: Sequence[Any], at: int) -> Any:
    """An expression of SQL in one row of a partition; outside it, NULL."""
    if not 0 <= at < len(rows):
        return None
    kind = type(node).__name__
    if kind in _OPERATORS:
        return called(_OPERATORS[kind], [value_in(one, rows, at) for one in node.iter_expressions()])
    match node:
        case exp.Column():
            return rows[at][node.name]
        case exp.Literal(is_string=True):
            return node.this
        case exp.Literal():
            return float(node.this) if "." in node.this else int(node.this)
        case exp.Cast():
            given = value_in(node.this, rows, at)
            return None if given is None else float(given)
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(node.this)
        case exp.Paren():
            return value_in(node.this, rows, at)
        case exp.Is():
            return value_in(node.this, rows, at) is value_in(node.expression, rows, at)
        case exp.Coalesce():
            parts = [value_in(one, rows, at) for one in (node.this, *node.expressions)]
            return next((part for part in parts if part is not None), None)
        case exp.Case():
            for way in node.args["ifs"]:
                if value_in(way.this, rows, at) is True:
                    return value_in(way.args["true"], rows, at)
            return value_in(node.args["default"], rows, at) if node.args.get("default") is not None else None
        case exp.Window():
            shift = int(str(node.this.args["offset"].this))
            return value_in(node.this.this, rows, at - shift if isinstance(node.this, exp.Lag) else at + shift)
    raise AssertionError(repr(node))


def type_of(node: Any) -> str:
    """The type of an expression of SQL."""
    match node:
        case exp.Column():
            return SPARK[node.name]
        case exp.Literal():
            return "string" if node.is_string else "double" if "." in node.this else "int"
        case exp.Cast():
            return "double"
        case exp.Null():
            return "void"
        case exp.Boolean() | exp.Is() | exp.Not() | exp.Predicate() | exp.And() | exp.Or():
            return "boolean"
        case exp.Div():
            return "double"
        case exp.Window():
            return type_of(node.this.this)
        case exp.Case():
            types = [type_of(one.args["true"]) for one in node.args["ifs"]]
            types += [type_of(node.args["default"])] if node.args.get("default") is not None else []
        case _:
            types = [type_of(one) for one in node.iter_expressions()]
    return next((name for name in ("string", "double", "bigint", "int", "boolean") if name in types), "void")


def parsed(sql: str) -> Any:
    """The tree of a column's SQL."""
    return sqlglot.parse_one(sql.format(window="(ORDER BY t)"), dialect="spark")


def matches_of_text(case: Case, text: str = "") -> Matches:
    """The matches of a clause whose conditions were read from text, which is that of the case if none is given."""
    clause = parse_clause(text or clause_of(case))
    read = read_definitions(clause, SPARK)
    made = read.typed({sql: type_of(parsed(sql)) for sql in read.columns})

    def column(sql: str) -> list[Any]:
        node = parsed(sql)
        return [value_in(node, rows, at) for rows in case.partitions for at in range(len(rows))]

    count = sum(map(len, case.partitions))
    holding = np.full((len(clause.variables), count), True)
    for number, name in enumerate(clause.variables):
        if name in read.rows:
            holding[number] = [value is True for value in column(read.rows[name])]
    arrow = {"double": pa.float64(), "boolean": pa.bool_(), "string": pa.string()}
    types = [arrow.get(type_of(parsed(one.sql)), pa.int64()) for one in made.columns]
    arrays = [pa.array(column(one.sql), kind, from_pandas=False) for one, kind in zip(made.columns, types, strict=True)]
    partitions = np.cumsum([0, *map(len, case.partitions)])
    pattern = compile_pattern(clause, made.conditions, made.types)
    return match_rows(pattern, holding, partitions, encode_columns(made.columns, arrays))

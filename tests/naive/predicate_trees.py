"""Random predicates, typed so that they bind, and rows to judge them on."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

from hypothesis import strategies as st

from patternlake.udfs.language.predicate.expressions import Call, Case, Cast, Expression, Field, Literal, join_parts
from patternlake.udfs.language.predicate.references import Reference

NAN, INF = math.nan, math.inf
EPOCH = dt.datetime(1970, 1, 1)
TYPES = {
    "x": "double",
    "y": "double",
    "n": "bigint",
    "m": "bigint",
    "s": "string",
    "u": "string",
    "f": "boolean",
    "g": "boolean",
    "time": "timestamp",
    "d": "date",
}
POOLS: dict[str, list[Any]] = {
    "double": [None, 0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.125, 2.675, 1e10, NAN, INF, -INF],
    "bigint": [None, 0, 1, -1, 2, 3, -3, 7, 15, 2**63 - 1, -(2**63)],
    "string": [None, "", "a", "b", "A", "ab", "aab", "a%b", "1", "2.5", " 3 ", "true", "nan", "2013-01-01", "a\0b"],
    "boolean": [None, True, False],
    "timestamp": [None, dt.datetime(2013, 1, 1), dt.datetime(2013, 1, 1, 0, 5), dt.datetime(1969, 12, 31, 23, 0, 0, 1)],
    "date": [None, dt.date(2013, 1, 1), dt.date(1969, 12, 31)],
}


def stored(value: Any) -> Any:
    """A Python value as columns hold it."""
    if isinstance(value, dt.datetime):
        return (value - EPOCH) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return stored(dt.datetime.combine(value, dt.time()))
    return value // dt.timedelta(microseconds=1) if isinstance(value, dt.timedelta) else value


def lit(value: Any) -> Expression:
    if value is None:
        return Literal(type="null", value=None)
    names = {bool: "boolean", int: "bigint", float: "double", str: "string", dt.datetime: "timestamp"}
    names |= {dt.date: "date", dt.timedelta: "interval"}
    amount = stored(value)
    if type(value) in (int, float, dt.timedelta) and (amount < 0 or (amount == 0 and str(amount)[0] == "-")):
        return op("NEGATE", Literal(type=names[type(value)], value=-amount))
    return Literal(type=names[type(value)], value=amount)


def op(operator: str, *arguments: Expression) -> Expression:
    if operator in ("AND", "OR"):
        return join_parts(operator, arguments)
    return Call(operator=operator, arguments=arguments)


FINITE: dict[str, list[Any]] = {
    "double": [0.0, 1.0, 2.5, -2.5, 0.125, 2.675],
    "bigint": [0, 1, 2, -3, 7],
    "string": ["", "a", "b", "ab", "1", "2.5"],
    "boolean": [True, False],
    "timestamp": [dt.datetime(2013, 1, 1), dt.datetime(2013, 1, 1, 0, 5)],
    "date": [dt.date(2013, 1, 1), dt.date(2013, 1, 2)],
    "interval": [dt.timedelta(minutes=5), dt.timedelta(0), dt.timedelta(seconds=-90), dt.timedelta(microseconds=3)],
}


def leaf(type_: str) -> st.SearchStrategy[Expression]:
    fields = [Field(reference=Reference(None, None, name)) for name, kind in TYPES.items() if kind == type_]
    literals = st.sampled_from(FINITE[type_]).map(lit)
    return st.one_of(st.sampled_from(fields), literals) if fields else literals


def number(depth: int) -> st.SearchStrategy[Expression]:
    return tree("double", depth) | tree("bigint", depth)


def calls(operator: str, *parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.tuples(*parts).map(lambda arguments: op(operator, *arguments))


def choices(type_: str, depth: int) -> list[st.SearchStrategy[Expression]]:
    """Applications of an operator that give `type_`."""
    below = depth - 1
    same = tree(type_, below)
    found = [
        calls("COALESCE", same, same),
        calls("LEAST", same, same),
        calls("GREATEST", same, same, same),
        calls("NULLIF", same, same),
        st.tuples(tree("boolean", below), same, st.none() | same).map(
            lambda parts: Case(branches=((parts[0], parts[1]),), default=parts[2])
        ),
    ]

    def cast_of(source: str) -> st.SearchStrategy[Expression]:
        return tree(source, below).map(lambda part: Cast(argument=part, to=type_))

    if type_ == "double":
        found += [calls(sign, tree("double", below), number(below)) for sign in "+-*%"]
        found += [calls("/", number(below), number(below)), calls("SQRT", number(below)), calls("NEGATE", same)]
        found += [calls("ABS", same), calls("ROUND", same, st.sampled_from([lit(0), lit(1), lit(2), lit(-1)]))]
        found += [cast_of("string"), cast_of("bigint"), cast_of("boolean")]
    elif type_ == "bigint":
        found += [calls(sign, same, same) for sign in "+-*%"]
        found += [calls("NEGATE", same), calls("ABS", same), calls("LENGTH", tree("string", below))]
        found += [calls("FLOOR", number(below)), calls("CEIL", number(below)), cast_of("double"), cast_of("string")]
    elif type_ == "string":
        small = st.sampled_from([lit(value) for value in (-2, -1, 0, 1, 2, 3)])
        found += [calls("CONCAT", same, same), calls("LOWER", same), calls("UPPER", same), cast_of("bigint")]
        found += [calls("SUBSTRING", same, small), calls("SUBSTRING", same, small, small), cast_of("boolean")]
        found += [calls("SUBSTRING", same, tree("bigint", 0))]
    elif type_ == "boolean":
        found += [calls(word, same, same) for word in ("AND", "OR", "<=>")]
        found += [calls("NOT", same)]
        for kind in TYPES.values():
            parts = tree(kind, below)
            others = parts | st.just(lit(None))
            found += [calls(sign, parts, others) for sign in ("=", "<>", "<", "<=", ">", ">=", "<=>")]
            found += [calls("IN", parts, others, others), calls("IS NULL", parts)]
            if kind in ("bigint", "boolean", "timestamp", "date"):
                # Fields only: a constant that does not cast is refused.
                text = st.sampled_from([Field(reference=Reference(None, None, name)) for name in "su"])
                found += [calls(sign, text, tree(kind, 0)) for sign in ("=", "<")]
        found += [calls(sign, tree("interval", below), tree("interval", below)) for sign in ("=", "<", ">=")]
        patterns = st.sampled_from(["a%", "%b", "_", "a\\%b", "%", "", "a_b"]).map(lit)
        found += [
            calls("LIKE", tree("string", below), patterns),
            calls("<", tree("double", below), tree("bigint", below)),
        ]
    elif type_ == "timestamp":
        found += [calls(sign, st.one_of(leaf("timestamp"), leaf("date")), leaf("interval")) for sign in "+-"]
    elif type_ == "date":
        found += [cast_of("timestamp")]
    elif type_ == "interval":
        moments = st.one_of(leaf("timestamp"), leaf("date"))
        found = [calls("-", moments, moments), calls("+", leaf("interval"), leaf("interval"))]
        found += [calls("*", leaf("interval"), leaf("double")), calls("/", leaf("interval"), leaf("bigint"))]
        found += [calls("NEGATE", leaf("interval")), calls("ABS", leaf("interval"))]
    return found


CACHE: dict[tuple[str, int], st.SearchStrategy[Expression]] = {}


def tree(type_: str, depth: int) -> st.SearchStrategy[Expression]:
    if (type_, depth) not in CACHE:
        CACHE[type_, depth] = leaf(type_) if depth <= 0 else st.one_of(leaf(type_), *choices(type_, depth))
    return CACHE[type_, depth]


def rows(least: int = 1) -> st.SearchStrategy[list[dict[str, Any]]]:
    row = st.fixed_dictionaries({name: st.sampled_from(POOLS[kind]) for name, kind in TYPES.items()})
    return st.lists(row, min_size=least, max_size=8)

"""What a predicate may hold: words, operators, functions and types. Everything else is refused by name."""

from __future__ import annotations

_LOGIC = ("AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "ESCAPE", "IS", "NULL")
_OTHER = ("TRUE", "FALSE", "CASE", "WHEN", "THEN", "ELSE", "END", "DISTINCT")
KEYWORDS = frozenset({*_LOGIC, *_OTHER, "FROM", "AS", "CAST"})
"""Words with a meaning of their own; an attribute of such a name is written in backticks."""

RESERVED_WORDS = KEYWORDS | {"SELECT", "DEFINE", "WHERE", "PARTITION", "WITHIN", "SLIDE"}
"""Words that are names only in backticks."""

_AS_WRITTEN = "<=> <= >= <> = < > || + - * / % ,"
OPERATORS = {written: written for written in _AS_WRITTEN.split()} | {
    "!=": "<>",
    "==": "=",
    "≠": "<>",
    "≤": "<=",
    "≥": ">=",
    "∧": "AND",
    "∨": "OR",
    "!": "NOT",
    "−": "-",
}
"""Operators as written, and as the SQL parser sees them."""

_OF_ONE_ARGUMENT = ("ABS", "CEIL", "EXP", "FLOOR", "LENGTH", "LN", "LOWER", "SQRT", "UPPER")
FUNCTIONS: dict[str, tuple[str, int, int | None]] = {name: (name, 1, 1) for name in _OF_ONE_ARGUMENT} | {
    "CEILING": ("CEIL", 1, 1),
    "COALESCE": ("COALESCE", 1, None),
    "CONCAT": ("CONCAT", 1, None),
    "GREATEST": ("GREATEST", 2, None),
    "LEAST": ("LEAST", 2, None),
    "LOG": ("LOG", 1, 2),
    "NULLIF": ("NULLIF", 2, 2),
    "POW": ("POWER", 2, 2),
    "POWER": ("POWER", 2, 2),
    "ROUND": ("ROUND", 1, 2),
    "SUBSTR": ("SUBSTRING", 2, 3),
    "SUBSTRING": ("SUBSTRING", 2, 3),
}
"""Functions as written: canonical name, least and greatest number of arguments."""

AGGREGATES = ("AVG", "COUNT", "FIRST", "LAST", "MAX", "MIN", "SUM")
"""Functions of all events of a repeated operand, of one argument each."""

FUNCTIONS_SHOWN = ", ".join(sorted({name for name, _, _ in FUNCTIONS.values()} | {"CASE", "CAST"}))
AGGREGATES_SHOWN = ", ".join(AGGREGATES)
OPERATORS_SHOWN = "= <> < <= > >= <=> + - * / % || AND OR NOT IN BETWEEN LIKE IS NULL"

_CANONICAL = ("string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date", "timestamp")
TYPES = {name: name for name in _CANONICAL} | {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
}
"""Spark's names of types, and the canonical one; decimal(p,s) comes besides."""

TYPES_SHOWN = "string, boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), date, timestamp"

_OF_ONE_SIDE = ("Column", "Paren", "Not", "Neg", "Boolean")
_OF_TWO_SIDES = "And Or EQ NEQ LT LTE GT GTE NullSafeEQ NullSafeNEQ Add Sub Mul Mod Escape"
NODES: dict[str, frozenset[str]] = {
    **dict.fromkeys(_OF_ONE_SIDE, frozenset({"this"})),
    **dict.fromkeys(_OF_TWO_SIDES.split(), frozenset({"this", "expression"})),
    "Literal": frozenset({"this", "is_string"}),
    "Anonymous": frozenset({"this", "expressions"}),
    "Div": frozenset({"this", "expression", "typed", "safe"}),
    "DPipe": frozenset({"this", "expression", "safe"}),
    "In": frozenset({"this", "expressions", "negate"}),
    "Between": frozenset({"this", "low", "high", "negate"}),
    "Like": frozenset({"this", "expression", "negate"}),
    "Is": frozenset({"this", "expression", "negate"}),
    "Null": frozenset(),
    "Case": frozenset({"this", "ifs", "default"}),
    "If": frozenset({"this", "true"}),
}
"""Node types that the SQL parser may hand over, each with the parts that it may have."""

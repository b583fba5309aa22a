"""What a predicate may hold: words, operators, functions and types. Everything else is refused by name."""

from __future__ import annotations

_LOGIC = ("AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "ESCAPE", "IS", "NULL")
_OTHER = ("TRUE", "FALSE", "CASE", "WHEN", "THEN", "ELSE", "END", "DISTINCT")
KEYWORDS = frozenset({*_LOGIC, *_OTHER, "FROM", "AS", "CAST"})
"""Words with a meaning of their own; an attribute of such a name is written in backticks."""

RESERVED_WORDS = KEYWORDS | {"SELECT", "DEFINE", "WHERE", "PARTITION", "WITHIN", "SLIDE"}
"""Words that are names only in backticks."""

OPERATORS = {
    "<=>": "<=>",
    "<=": "<=",
    ">=": ">=",
    "<>": "<>",
    "!=": "<>",
    "==": "=",
    "=": "=",
    "<": "<",
    ">": ">",
    "≠": "<>",
    "≤": "<=",
    "≥": ">=",
    "||": "||",
    "∧": "AND",
    "∨": "OR",
    "!": "NOT",
    "+": "+",
    "-": "-",
    "−": "-",
    "*": "*",
    "/": "/",
    "%": "%",
    ",": ",",
}
"""Operators as written, and as the SQL parser sees them."""

FUNCTIONS: dict[str, tuple[str, int, int | None]] = {
    "ABS": ("ABS", 1, 1),
    "CEIL": ("CEIL", 1, 1),
    "CEILING": ("CEIL", 1, 1),
    "COALESCE": ("COALESCE", 1, None),
    "CONCAT": ("CONCAT", 1, None),
    "EXP": ("EXP", 1, 1),
    "FLOOR": ("FLOOR", 1, 1),
    "GREATEST": ("GREATEST", 2, None),
    "LEAST": ("LEAST", 2, None),
    "LENGTH": ("LENGTH", 1, 1),
    "LN": ("LN", 1, 1),
    "LOG": ("LOG", 1, 2),
    "LOWER": ("LOWER", 1, 1),
    "NULLIF": ("NULLIF", 2, 2),
    "POW": ("POWER", 2, 2),
    "POWER": ("POWER", 2, 2),
    "ROUND": ("ROUND", 1, 2),
    "SQRT": ("SQRT", 1, 1),
    "SUBSTR": ("SUBSTRING", 2, 3),
    "SUBSTRING": ("SUBSTRING", 2, 3),
    "UPPER": ("UPPER", 1, 1),
}
"""Functions as written: canonical name, least and greatest number of arguments."""

AGGREGATES = ("AVG", "COUNT", "FIRST", "LAST", "MAX", "MIN", "SUM")
"""Functions of all events of a repeated operand, of one argument each."""

FUNCTIONS_SHOWN = ", ".join(sorted({name for name, _, _ in FUNCTIONS.values()} | {"CASE", "CAST"}))
AGGREGATES_SHOWN = ", ".join(AGGREGATES)
OPERATORS_SHOWN = "= <> < <= > >= <=> + - * / % || AND OR NOT IN BETWEEN LIKE IS NULL"

TYPES = {
    "string": "string",
    "boolean": "boolean",
    "byte": "tinyint",
    "tinyint": "tinyint",
    "short": "smallint",
    "smallint": "smallint",
    "int": "int",
    "integer": "int",
    "long": "bigint",
    "bigint": "bigint",
    "float": "float",
    "real": "float",
    "double": "double",
    "date": "date",
    "timestamp": "timestamp",
}
"""Spark's names of types, and the canonical one; decimal(p,s) comes besides."""

TYPES_SHOWN = "string, boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), date, timestamp"

NODES: dict[str, frozenset[str]] = {
    "Column": frozenset({"this"}),
    "Literal": frozenset({"this", "is_string"}),
    "Anonymous": frozenset({"this", "expressions"}),
    "Paren": frozenset({"this"}),
    "And": frozenset({"this", "expression"}),
    "Or": frozenset({"this", "expression"}),
    "Not": frozenset({"this"}),
    "EQ": frozenset({"this", "expression"}),
    "NEQ": frozenset({"this", "expression"}),
    "LT": frozenset({"this", "expression"}),
    "LTE": frozenset({"this", "expression"}),
    "GT": frozenset({"this", "expression"}),
    "GTE": frozenset({"this", "expression"}),
    "NullSafeEQ": frozenset({"this", "expression"}),
    "NullSafeNEQ": frozenset({"this", "expression"}),
    "Add": frozenset({"this", "expression"}),
    "Sub": frozenset({"this", "expression"}),
    "Mul": frozenset({"this", "expression"}),
    "Div": frozenset({"this", "expression", "typed", "safe"}),
    "Mod": frozenset({"this", "expression"}),
    "Neg": frozenset({"this"}),
    "DPipe": frozenset({"this", "expression", "safe"}),
    "In": frozenset({"this", "expressions", "negate"}),
    "Between": frozenset({"this", "low", "high", "negate"}),
    "Like": frozenset({"this", "expression", "negate"}),
    "Escape": frozenset({"this", "expression"}),
    "Is": frozenset({"this", "expression", "negate"}),
    "Null": frozenset(),
    "Boolean": frozenset({"this"}),
    "Case": frozenset({"this", "ifs", "default"}),
    "If": frozenset({"this", "true"}),
}
"""Node types that the SQL parser may hand over, each with the parts that it may have."""

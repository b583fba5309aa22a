"""SQL expressions of the configuration, read for mistakes of spelling before Spark is started."""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from patternlake.udfs.errors import shorten

_SELECT = "SELECT "
_CLASS = re.compile(r"<class '[\w.]*?(\w+)'>")


def sql_expression(text: str) -> str:
    """Return the text, if it is one expression.

    Names and types are judged by Spark, when it knows the source's columns.

    Raises
    ------
    ValueError
        It is not, with what is wrong and where.
    """
    try:
        found = sqlglot.parse(_SELECT + text, dialect="spark")
    except SqlglotError as error:
        raise ValueError(f"{shorten(text)} is not SQL: {_describe(error)}") from None
    one = found[0] if len(found) == 1 else None
    if not isinstance(one, exp.Select) or len(one.expressions) != 1 or set(_parts(one)) - {"expressions"}:
        raise ValueError(f"{shorten(text)} is not one SQL expression; write one that gives the value of a row")
    return text


def _parts(select: exp.Select) -> list[str]:
    """The clauses that a query has."""
    return [name for name, part in select.args.items() if part]


def _describe(error: SqlglotError) -> str:
    """What the parser says, in one line, with the place in the text."""
    for each in getattr(error, "errors", []):
        line, column = each["line"], each["col"] - (len(_SELECT) if each["line"] == 1 else 0)
        said = _CLASS.sub(r"\1", each["description"].partition(" but got <")[0].rstrip("."))
        return f"{said}, line {line}, column {max(column, 1)}"
    return "a quotation or a comment never ends"

"""Whether a SQL expression gives the same value when a batch is run again, seen in the expression as Spark analysed it.

Spark calls many expressions deterministic that are so within one query only: those that tell the time, the user, the
session or the version. Names in text would not do to find them: a column may be called `now`, and a text may say it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sqlglot import tokenize
from sqlglot.errors import TokenError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Catalyst's names of the expressions that a replay, or another machine, user or release, would answer differently.
_MOVING = frozenset(
    {
        *("CurrentBatchTimestamp", "CurrentDate", "CurrentTime", "CurrentTimestamp", "LocalTimestamp", "Now"),
        *("CurrentCatalog", "CurrentDatabase", "CurrentPath", "CurrentTimeZone", "CurrentUser", "SparkVersion"),
        *("Rand", "Randn", "RandStr", "Shuffle", "Uniform", "Uuid"),
        *("InputFileBlockLength", "InputFileBlockStart", "InputFileName"),
        *("MonotonicallyIncreasingID", "SparkPartitionID"),
        # What it calls is anything; what it encrypts begins with random bytes.
        *("CallMethodViaReflection", "TryReflect", "AesEncrypt"),
    }
)
_PARSED = frozenset({"Cast", "ParseToDate", "ParseToTimestamp"})
# Spark takes these texts for moments, and times of day for those of today; `epoch` is one, too, and stays where it is.
_SPECIAL = re.compile(r"\s*(now\b|today\b|tomorrow\b|yesterday\b|T?\d{1,2}:[\d:.]*).*", re.I | re.S)
_TYPED = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"})


def moving_part(frame: DataFrame, text: str) -> str | None:
    """Name what in an expression would have another value in a replay; None if nothing has.

    Parameters
    ----------
    frame
        The selection of the expression alone, analysed.
    text
        The expression.
    """
    found = frame._jdf.queryExecution().analyzed().expressions().iterator()  # type: ignore[attr-defined]
    while found.hasNext():
        for node in nodes_below(found.next()):
            kind = node.getClass().getSimpleName()
            if kind == "UnixTimestamp" and _children(node)[0].getClass().getSimpleName() == "CurrentTimestamp":
                return "unix_timestamp"
            if kind in _MOVING:
                return str(node.prettyName()).lower()
            if kind == "VariableReference":
                return f"the session variable {node.sql()}"
            if kind in _PARSED and (special := _special_moment(node)) is not None:
                return f"the moment {special!r}"
    return _typed_literal(text)


def nodes_below(expression: Any) -> Iterator[Any]:
    """An expression and all below it, from above."""
    yield expression
    for child in _children(expression):
        yield from nodes_below(child)


def _children(expression: Any) -> list[Any]:
    children = expression.children()
    return [children.apply(number) for number in range(children.size())]


def _special_moment(parsing: Any) -> str | None:
    """The text that an expression reads as a moment, where it is one that moves."""
    child = _children(parsing)[0]
    if child.getClass().getSimpleName() != "Literal" or child.dataType().typeName() != "string":
        return None
    if parsing.dataType().typeName() not in ("date", "timestamp", "timestamp_ntz") or child.value() is None:
        return None
    found = _SPECIAL.fullmatch(str(child.value().toString()))
    return found[1].lower() if found else None


def _typed_literal(text: str) -> str | None:
    """A literal such as TIMESTAMP 'now', of which Spark's parser leaves the moment alone."""
    try:
        tokens = tokenize(text, read="spark")
    except TokenError:
        return None
    for kind, value in pairwise(tokens):
        special = _SPECIAL.fullmatch(value.text)
        if kind.text.upper() in _TYPED and value.token_type.name.endswith("STRING") and special:
            return f"the moment {special[1].lower()!r}"
    return None

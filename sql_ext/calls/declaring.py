"""Declares a function by its Python signature and docstring: SQL's parameters, defaults and comment come from them."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from numbers import Integral
from types import NoneType, UnionType
from typing import Annotated, Any, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import pyarrow as pa
from pyspark.sql import DataFrame

from patternlake.sql_ext.calls.registering import call, call_for_value
from patternlake.sql_ext.declarations.declaration import REQUIRED, Answer, Parameter, ScalarFunction, TableFunction
from patternlake.sql_ext.lakes.lake import Lake

Int32 = Annotated[int, "INT"]
"""A whole number that SQL takes as INT."""

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Function = TableFunction | ScalarFunction
_SIMPLE: dict[frozenset[Any], str] = {
    frozenset({str}): "STRING",
    frozenset({str, DataFrame}): "STRING",
    frozenset({int, str}): "STRING",
    frozenset({int}): "BIGINT",
    frozenset({Int32}): "INT",
    frozenset({float}): "DOUBLE",
    frozenset({bool}): "BOOLEAN",
    frozenset({datetime, str}): "TIMESTAMP",
    frozenset({Mapping[str, object]}): "MAP<STRING, STRING>",
}
_ENTRY = re.compile(r"^(\S[^\n]*)\n((?:[ ]+[^\n]*\n|\n)+)", re.M)
"""A parameter, or several, in a docstring, and what is said of it."""
_SQL = re.compile(r"^```sql\n(.*?)^```$", re.M | re.S)
_DECLARED: dict[object, _Function] = {}


def table_function(
    plan: Callable[[Lake, dict[str, Any]], Answer], columns: Mapping[str, str]
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Declare a function that gives rows; `plan` and `columns` as of `TableFunction`.

    The Python function takes a session and then SQL's parameters, and is its docstring alone: calls are answered by
    `plan`. The first line of the docstring is what DESCRIBE FUNCTION shows; with EXTENDED, its parameters and its
    examples in SQL follow.

    Raises
    ------
    TypeError
        An annotation stands for no type of SQL.
    """

    def declare(function: Callable[_P, _R]) -> Callable[_P, _R]:
        described = _comment(function), plan, write_help(function)
        made = TableFunction(function.__name__, _parameters(function), columns, *described)
        return _wrap(function, made, lambda spark, given: call(made, spark, given))

    return declare


def scalar_function(
    value: Callable[[Lake, dict[str, Any]], Any],
    per_row: Callable[[Lake, Mapping[str, Any]], Callable[[pa.StructArray], pa.Array]],
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Declare a function that gives one value; `value` and `per_row` as of `ScalarFunction`, else as `table_function`.

    The type of the value is the signature's, too.
    """

    def declare(function: Callable[_P, _R]) -> Callable[_P, _R]:
        name, type_ = function.__name__, _type(function, "return")
        described = _comment(function), value, per_row, write_help(function)
        made = ScalarFunction(name, _parameters(function), type_, *described)
        return _wrap(function, made, lambda spark, given: call_for_value(made, spark, given))

    return declare


def declaration_of(function: Callable[..., Any]) -> _Function:
    """The declaration of a declared Python function."""
    return _DECLARED[function]


def _wrap(
    function: Callable[_P, _R], made: _Function, answer: Callable[[Any, dict[str, Any]], Any]
) -> Callable[_P, _R]:
    signature = inspect.signature(function)
    as_text = [one.name for one in made.parameters if _kinds(function, one.name) == {int, str}]

    @functools.wraps(function)
    def call_declared(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        function(*args, **kwargs)  # does nothing, but Python says what does not fit the signature
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        spark, *values = given.arguments.values()
        arguments = dict(zip((one.name for one in made.parameters), values, strict=True))
        for name in as_text:
            value = arguments[name]
            if isinstance(value, Integral) and not isinstance(value, bool):  # NumPy's, too
                arguments[name] = str(value)  # as SQL casts it
        found: _R = answer(spark, arguments)
        return found

    _DECLARED[call_declared] = made
    return call_declared


def _parameters(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Those of SQL: all but the session."""
    _, *taken = inspect.signature(function).parameters.values()
    return tuple(
        Parameter(one.name, _type(function, one.name), REQUIRED if one.default is one.empty else one.default)
        for one in taken
    )


def _type(function: Callable[..., Any], name: str) -> str:
    kinds = _kinds(function, name)
    if kinds not in _SIMPLE:
        raise TypeError(
            f"{function.__name__}: the annotation of {name}, {inspect.get_annotations(function).get(name)!r}, stands "
            "for no type of SQL; take str, int, Int32, float, bool, datetime | str, int | str or Mapping[str, object], "
            "with or without None"
        )
    return _SIMPLE[kinds]


def _kinds(function: Callable[..., Any], name: str) -> frozenset[Any]:
    """The members of an annotation, but None."""
    hint = _hints(function).get(name)
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return frozenset(members) - {NoneType}


@functools.cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(function, include_extras=True)


def write_help(function: Callable[..., Any]) -> str:
    """Arguments and examples from a function's docstring, laid out as Spark's own functions show theirs."""
    document = inspect.getdoc(function) or ""
    arguments = [
        f"{names} - {' '.join(text.split())}".replace("``", "`")
        for names, text in _ENTRY.findall(_section(document, "Parameters"))
        if names != "spark"
    ]
    examples = [f"{' '.join(text.split())};" for text in _SQL.findall(_section(document, "Examples"))]
    return _list("Arguments", "*", arguments) + _list("Examples", ">", examples)


def _list(title: str, mark: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    return "".join([f"\n    {title}:\n", *(f"      {mark} {line}\n" for line in lines)])


def _section(document: str, title: str) -> str:
    """The lines under a title of a docstring in NumPy's style."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", document, re.M | re.S)
    return found[1] if found else ""


def _comment(function: Callable[..., Any]) -> str:
    return (inspect.getdoc(function) or "").split("\n", 1)[0].removesuffix(".").replace("`", "")

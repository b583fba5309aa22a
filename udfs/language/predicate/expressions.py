"""Trees of predicates, and their canonical text.

The trees are PatternLake's own, so that their meaning does not change with the version of the SQL parser. Synonyms
are gone in them: ``x BETWEEN a AND b`` is ``x >= a AND x <= b``, ``x IS NOT NULL`` is ``NOT x IS NULL``, ``||`` is
CONCAT, ``CASE x WHEN y`` is ``CASE WHEN x = y``. Spans do not take part in equality.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from patternlake.udfs.language import durations
from patternlake.udfs.language.predicate.references import Reference, quote
from patternlake.udfs.language.predicate.texts import write_date, write_timestamp
from patternlake.udfs.language.query.tree import NOWHERE, Span

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """What every node has: the span of the query's text that it was read from."""

    span: Span = field(default=NOWHERE, compare=False)

    def children(self) -> tuple[Expression, ...]:
        """The direct parts, in text order."""
        return ()

    def walk(self) -> Iterator[Expression]:
        """Yield this node and all below it, in text order."""
        yield self
        for child in self.children():
            yield from child.walk()


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal(Expression):
    """A constant.

    Attributes
    ----------
    type
        ``bigint``, ``double``, ``string``, ``boolean``, ``timestamp``, ``date``, ``interval`` or ``null``.
    value
        int, float, str, bool or None; microseconds since the epoch (UTC) for timestamp and date, microseconds for
        interval. Numbers and intervals are not negative: the minus is a call of its own.
    """

    type: str
    value: int | float | str | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Field(Expression):
    """The value of a column of an event."""

    reference: Reference


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter(Expression):
    """A free name that `bind` resolved to a parameter; its text takes the type that its place asks for."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable(Expression):
    """A join variable ``$x``."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualAlong(Expression):
    """``[attr]``: the attribute is equal along the whole match."""

    attribute: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Expression):
    """An operator or function.

    Attributes
    ----------
    operator
        ``AND`` and ``OR`` (two parts or more), ``NOT``, a comparison, ``+ - * / %``, ``NEGATE``, ``IS NULL``, ``IN``
        (the tested value first), ``LIKE`` (value, pattern, and the escape character if given), or a function's name.
    """

    operator: str
    arguments: tuple[Expression, ...]

    def children(self) -> tuple[Expression, ...]:  # noqa: D102
        return self.arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast(Expression):
    """``CAST(argument AS to)``; `to` is a canonical type name such as ``int`` or ``decimal(10,2)``."""

    argument: Expression
    to: str

    def children(self) -> tuple[Expression, ...]:  # noqa: D102
        return (self.argument,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(Expression):
    """``CASE WHEN condition THEN value … ELSE default END``."""

    branches: tuple[tuple[Expression, Expression], ...]
    default: Expression | None

    def children(self) -> tuple[Expression, ...]:  # noqa: D102
        parts = tuple(part for branch in self.branches for part in branch)
        return parts if self.default is None else (*parts, self.default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(Expression):
    """``function(argument)`` over all events that a match binds to the one operand of `argument`, in their order.

    Attributes
    ----------
    function
        One of `allowed.AGGREGATES`, or ``AT``: what one of the collected events has, as ``b[last].x`` and ``b[2].x``
        say; its argument is the field itself.
    distinct
        Whether equal values count once.
    """

    function: str
    argument: Expression
    distinct: bool = False

    def children(self) -> tuple[Expression, ...]:  # noqa: D102
        return (self.argument,)


def join_parts(operator: str, parts: Iterable[Expression], span: Span = NOWHERE) -> Expression:
    """The parts under one flat ``AND`` or ``OR``; TRUE for no part under AND, FALSE under OR."""
    flat: list[Expression] = []
    for part in parts:
        if isinstance(part, Call) and part.operator == operator:
            flat.extend(part.arguments)
        else:
            flat.append(part)
    if not flat:
        return Literal(type="boolean", value=operator == "AND", span=span)
    return flat[0] if len(flat) == 1 else Call(operator=operator, arguments=tuple(flat), span=span)


def parameter(name: str, text: str | None, span: Span = NOWHERE) -> Expression:
    """A parameter with its value; NULL is a constant wherever it stands."""
    if text is None:
        return Literal(type="null", value=None, span=span)
    return Parameter(name=name, text=text, span=span)


_OR, _AND, _NOT, _COMPARE, _ADD, _MULTIPLY, _NEGATE, _ATOM = range(1, 9)
_LEVELS = {"OR": _OR, "AND": _AND, "NOT": _NOT, "IS NULL": _COMPARE, "IN": _COMPARE, "LIKE": _COMPARE}
_LEVELS |= dict.fromkeys(COMPARISONS, _COMPARE)
_LEVELS |= {"+": _ADD, "-": _ADD, "*": _MULTIPLY, "/": _MULTIPLY, "%": _MULTIPLY, "NEGATE": _NEGATE}


def to_sql(expression: Expression) -> str:
    """Canonical text of a tree; reading it gives an equal tree (parameters come back as bare names)."""
    return _print(expression, 0)


def _print(expression: Expression, level: int) -> str:
    own = _LEVELS.get(expression.operator, _ATOM) if isinstance(expression, Call) else _ATOM
    text = _text(expression, own)
    return f"({text})" if own < level else text


def _text(expression: Expression, own: int) -> str:
    match expression:
        case Literal():
            return literal_text(expression.type, expression.value)
        case Field(reference=reference):
            return reference.sql()
        case Parameter(name=name):
            return quote(name)
        case Variable(name=name):
            return f"${name}"
        case EqualAlong(attribute=attribute):
            return f"[{quote(attribute)}]"
        case Cast(argument=argument, to=to):
            return f"CAST({_print(argument, 0)} AS {to.upper()})"
        case Aggregate(function="AT", argument=argument):
            return _print(argument, 0)
        case Aggregate(function=function, argument=argument, distinct=distinct):
            return f"{function}({'DISTINCT ' if distinct else ''}{_print(argument, 0)})"
        case Case(branches=branches, default=default):
            parts = [f"WHEN {_print(condition, 0)} THEN {_print(value, 0)}" for condition, value in branches]
            if default is not None:
                parts.append(f"ELSE {_print(default, 0)}")
            return f"CASE {' '.join(parts)} END"
        case Call(operator=operator, arguments=arguments):
            return _call_text(operator, arguments, own)
    raise TypeError(f"not an expression: {expression!r}")


def _call_text(operator: str, arguments: tuple[Expression, ...], own: int) -> str:
    if operator in ("AND", "OR"):
        return f" {operator} ".join(_print(part, own + 1) for part in arguments)
    if operator == "NOT":
        return f"NOT {_print(arguments[0], own)}"
    if operator == "NEGATE":
        return f"-{_print(arguments[0], own + 1)}"
    if operator == "IS NULL":
        return f"{_print(arguments[0], own + 1)} IS NULL"
    if operator == "IN":
        items = ", ".join(_print(item, 0) for item in arguments[1:])
        return f"{_print(arguments[0], own + 1)} IN ({items})"
    if operator == "LIKE":
        escape = f" ESCAPE {_print(arguments[2], 0)}" if len(arguments) > 2 else ""
        return f"{_print(arguments[0], own + 1)} LIKE {_print(arguments[1], own + 1)}{escape}"
    if operator in _LEVELS:
        left = own + 1 if own == _COMPARE else own
        return f"{_print(arguments[0], left)} {operator} {_print(arguments[1], own + 1)}"
    return f"{operator}({', '.join(_print(argument, 0) for argument in arguments)})"


def literal_text(type_: str, value: int | float | str | bool | None) -> str:
    """Text of a constant as predicates write it."""
    match type_, value:
        case _, None:
            return "NULL"
        case "boolean", _:
            return "TRUE" if value else "FALSE"
        case "string", str():
            return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
        case (("timestamp" | "date"), int()):
            text = write_timestamp(value) if type_ == "timestamp" else write_date(value)
            return f"{type_.upper()} '{text}'"
        case "interval", int():
            return durations.write(value)
    return repr(value)

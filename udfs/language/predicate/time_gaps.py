"""Comparisons that bound the time between two events, in whatever form they are written."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from patternlake.udfs.language import durations
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.expressions import Call, Expression, Field, Literal, Parameter
from patternlake.udfs.language.predicate.predicates import Predicate, value_of
from patternlake.udfs.language.predicate.references import Reference

FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""Comparisons, and what they are with their sides exchanged."""

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
UNBOUNDED = 2**62
"""Stands for "no bound", in microseconds."""


class Gap(NamedTuple):
    """``t(later) - t(earlier) operator microseconds``; `later` and `earlier` are whatever names the two events."""

    later: Hashable
    earlier: Hashable
    operator: str
    microseconds: int


def gap(root: Expression, event_of: Callable[[Reference], Hashable]) -> Gap | None:
    """What a comparison says of the time between two events, or None where it says something else.

    Parameters
    ----------
    root
        A bound conjunct.
    event_of
        Which event a reference is to.
    """
    negated = False
    while isinstance(root, Call) and root.operator == "NOT":
        (root,), negated = root.arguments, not negated
    if not isinstance(root, Call) or root.operator not in FLIPPED:
        return None
    left, right = (_linear(argument, event_of) for argument in root.arguments)
    if left is None or right is None:
        return None
    # Times are never NULL.
    operator = _OPPOSITE[root.operator] if negated else root.operator
    if not left[0]:
        # The difference stays as it is written: where its sign does not count, it could not be told from its opposite.
        left, right, operator = right, left, FLIPPED[operator]
    times, constant = _add(left, right, -1)
    if sorted(times.values()) != [-1, 1]:
        return None
    later, earlier = sorted(times, key=lambda event: -times[event])
    return Gap(later, earlier, operator, -constant)


def bounds(operator: str, microseconds: int) -> tuple[int, int]:
    """The gaps for which ``gap operator microseconds`` holds, as inclusive bounds; not for ``<>``."""
    at = max(-UNBOUNDED, min(UNBOUNDED - 1, microseconds))
    return {
        "=": (at, at),
        "<": (-UNBOUNDED, at - 1),
        "<=": (-UNBOUNDED, at),
        ">": (at + 1, UNBOUNDED),
        ">=": (at, UNBOUNDED),
    }[operator]


_Linear = tuple[dict[Hashable, int], int]
"""How often each event's time is added, and a constant in microseconds."""


def _linear(part: Expression, event_of: Callable[[Reference], Hashable]) -> _Linear | None:
    match part:
        case Field(reference=reference) if reference.column == "time":
            return {event_of(reference): 1}, 0
        case Literal(type="interval", value=int(amount)):
            return {}, amount
        case Parameter(text=text):
            found = durations.read(text)
            return None if found is None else ({}, found)
        case Call(operator="NEGATE", arguments=(inner,)):
            only = _linear(inner, event_of)
            return None if only is None else _add(({}, 0), only, -1)
        case Call(operator="+" | "-" as sign, arguments=(first, second)):
            left, right = _linear(first, event_of), _linear(second, event_of)
            if left is None or right is None:
                return None
            return _add(left, right, 1 if sign == "+" else -1)
    return _constant(part)


def _constant(part: Expression) -> _Linear | None:
    """A time that is the same for all events, such as ``2 * 5 MIN``; None for anything else."""
    if Predicate(part).references:
        return None
    column = value_of(part, _no_column)
    known = column.type == "interval" and bool(column.known.all())
    return ({}, int(column.values.flat[0])) if known else None


def _no_column(reference: Reference) -> Column:
    raise AssertionError(reference)


def _add(left: _Linear, right: _Linear, by: int) -> _Linear:
    times = dict(left[0])
    for event, often in right[0].items():
        times[event] = times.get(event, 0) + by * often
    return {event: often for event, often in times.items() if often}, left[1] + by * right[1]

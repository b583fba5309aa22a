"""The event names that a pattern takes, and those that it asks for."""

from __future__ import annotations

from collections.abc import Iterable

from patternlake.udfs.language.predicate.predicates import Predicate, names_admitted

Part = tuple[str, Predicate | None]
"""The name that an operand or a primitive is written by, and its DEFINE."""


def names_taken(parts: Iterable[Part]) -> frozenset[str] | None:
    """Names of events that some parts of a pattern take; None where a DEFINE may hold for any name."""
    found: set[str] = set()
    for name, define in parts:
        names = frozenset({name}) if define is None else names_admitted(define)
        if names is None:
            return None
        found |= names
    return frozenset(found)


def names_asked(parts: Iterable[Part]) -> tuple[str, ...]:
    """The event names that some parts of a pattern ask for, in their order, each once."""
    found: dict[str, None] = {}
    for name, define in parts:
        found.update(dict.fromkeys([name] if define is None else sorted(names_admitted(define) or ())))
    return tuple(found)

"""Which event names a predicate can hold for, so that engines read no others."""

from __future__ import annotations

from patternlake.udfs.language.predicate.expressions import Call, Expression, Field, Literal, Parameter
from patternlake.udfs.language.predicate.references import Reference


def names_for(root: Expression, operand: str | None) -> frozenset[str] | None:
    """Names for which a tree can hold; None for any (see `predicates.names_admitted`)."""
    match root:
        case Literal(value=value):
            return None if value is True else frozenset()
        case Call(operator="AND", arguments=arguments):
            known = [names for part in arguments if (names := names_for(part, operand)) is not None]
            return frozenset.intersection(*known) if known else None
        case Call(operator="OR", arguments=arguments):
            sets = [names_for(part, operand) for part in arguments]
            some = [names for names in sets if names is not None]
            return frozenset().union(*some) if len(some) == len(sets) else None
        case Call(operator="=" | "<=>", arguments=(left, right)):
            if not _is_name(left, operand):
                left, right = right, left
            return _constants(left, (right,), operand)
        case Call(operator="IN", arguments=(value, *items)):
            return _constants(value, tuple(items), operand)
    return None


def _is_name(part: Expression, operand: str | None) -> bool:
    return isinstance(part, Field) and part.reference == Reference(operand, None, "name")


def _constants(value: Expression, items: tuple[Expression, ...], operand: str | None) -> frozenset[str] | None:
    if not _is_name(value, operand):
        return None
    names = set()
    for item in items:
        match item:
            case Literal(type="string", value=str(name)) | Parameter(text=name):
                names.add(name)
            case Literal(type="null"):
                pass
            case _:
                return None
    return frozenset(names)

"""References of predicates to attributes of events: ``a.x``, ``b[i-1].x``, ``b[last].x``, ``x``, ``t(3)``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from patternlake.udfs.language.predicate.allowed import RESERVED_WORDS

_PLAIN = re.compile(r"[^\W\d]\w*\Z")


@dataclass(frozen=True, slots=True)
class Reference:
    """One column of one event, as a predicate names it.

    Attributes
    ----------
    operand
        The operand's name, or None for a bare column (the event that a DEFINE judges).
    index
        None, ``"i"`` or ``"i-1"``, ``"last"`` or a number from 1: which event of a repeated operand.
    column
        Attribute or built-in column; ``t(a)`` is column ``time`` of a.
    ordinal
        N of ``t(N)`` until `bind` puts the N-th operand's name in its place, else None.
    """

    operand: str | None
    index: str | None
    column: str
    ordinal: int | None = None

    @property
    def numbered(self) -> bool:
        """Whether it is to one of the events that an operand has collected, as ``b[last].x`` and ``b[2].x`` are."""
        return self.index not in (None, "i", "i-1")

    def sql(self) -> str:
        """Canonical text of the reference."""
        if self.ordinal is not None:
            return f"t({self.ordinal})"
        if self.operand is None:
            return quote(self.column)
        index = "" if self.index is None else f"[{self.index}]"
        # After a dot no word is a keyword.
        column = self.column if _PLAIN.match(self.column) else add_backticks(self.column)
        return f"{quote(self.operand)}{index}.{column}"


def add_backticks(name: str) -> str:
    """`name` in backticks."""
    return "`" + name.replace("`", "``") + "`"


def quote(name: str) -> str:
    """`name` as it must be written in a predicate: in backticks where it is no plain word."""
    if _PLAIN.match(name) and name.upper() not in RESERVED_WORDS:
        return name
    return add_backticks(name)

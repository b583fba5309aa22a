"""Names of columns that PatternLake puts beside those of others: they begin so, and no other column may."""

from __future__ import annotations

from collections.abc import Iterable

from patternlake.udfs.errors import ArgumentError, shorten

OWN = "__patternlake_"
KEPT = f"names that begin with {OWN!r} are kept for PatternLake"


def is_own(name: str) -> bool:
    """Whether a name is kept for PatternLake, in any spelling of case, as SQL ignores it."""
    return name.lower().startswith(OWN)


def check_names(columns: Iterable[str]) -> None:
    """Refuse a table with a column of such a name, by an ArgumentError."""
    for name in columns:
        if is_own(name):
            raise ArgumentError(f"a column of the table is called {shorten(name)}; {KEPT}: rename it")

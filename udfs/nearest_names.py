"""The known name that is meant by one that is not known: most are typed wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

CLOSE = 0.6
"""How alike two names are at least, from 0 to 1, of which one is meant by the other."""


def nearest_name(name: str, known: Iterable[str], close: float = CLOSE) -> str | None:
    """The known name that is nearest to another one, None where none is near.

    Examples
    --------
    >>> nearest_name("Reserch", ["search", "research"])
    'research'

    Notes
    -----
    Upper and lower case count as nearer than other letters.
    """
    folded = {candidate.casefold(): candidate for candidate in known}
    near = difflib.get_close_matches(name.casefold(), folded, 1, close)
    return folded[near[0]] if near else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """What a message adds to a name that is not known; empty where no known one is near.

    Examples
    --------
    >>> did_you_mean("clics", ["clicks", "orders"])
    " (did you mean 'clicks'?)"
    """
    near = nearest_name(name, known)
    return "" if near is None else f" (did you mean {near!r}?)"

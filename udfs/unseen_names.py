"""Names of a pattern that never occurred in a stream, with the nearest that did: most are typed wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from patternlake.udfs.nearest_names import nearest_name

MOST_NAMES = 10_000
"""So many names, the most frequent, are counted for a question; where there are as many, others may have occurred."""


def unseen_names(
    names: Iterable[str], seen: Collection[str], *, names_are_tokens: bool = True
) -> list[tuple[str, str | None]]:
    """The names that never occurred.

    Parameters
    ----------
    names
        Names that a pattern asks for.
    seen
        Event names of the stream that are counted, `MOST_NAMES` at most.
    names_are_tokens
        False where a name may also equal another token of an event than its name: then nothing is known of any.

    Returns
    -------
    list of (name, nearest)
        In the order of `names`, each once; the nearest name that did occur is None where none is near.
    """
    if not names_are_tokens or not seen or len(seen) >= MOST_NAMES:
        return []
    known = dict.fromkeys(sorted(seen))
    return [(name, nearest_name(name, known)) for name in dict.fromkeys(names) if name not in known]


def unseen_text(name: str, nearest: str | None) -> str:
    """What is said of a name that never occurred."""
    hint = "" if nearest is None else f"; did you mean {nearest!r}?"
    return f"{name!r} never occurred in the stream{hint}"

"""Texts of others, as they are shown on one line of a log or a message; and numbers of things."""

from __future__ import annotations


def one_line(text: str, longest: int) -> str:
    """A text on one line of so many characters at the most; what cannot be printed is an escape."""
    shown = printable(" ".join(text.split())[: longest + 1])
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def printable(text: str) -> str:
    r"""A text whose line breaks, commands to terminals and the like are escapes, such as ``\n`` and ``\x1b``."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def plural(count: int, thing: str) -> str:
    """A number of things."""
    return f"{count:,} {thing}{'' if count == 1 else 'es' if thing.endswith('ch') else 's'}"

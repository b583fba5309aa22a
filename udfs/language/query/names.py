"""How a name is written in the language."""

from __future__ import annotations

from patternlake.udfs.language.query.lexer import is_word, keyword


def quote(name: str) -> str:
    """`name` as the language writes it: in quotes where it is a keyword or is not one word."""
    if is_word(name) and keyword(name) is None:
        return name
    return "'" + name.replace("'", "''") + "'"

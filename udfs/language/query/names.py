"""How a name is written in the language."""

from __future__ import annotations

from collections.abc import Collection

from patternlake.udfs.language.query.lexer import is_word, keyword


def key_word(key: str | None, attributes: Collection[str]) -> str:
    """What PARTITION BY calls a stream's key: its expression where that is a word and no attribute, else ``key``."""
    return key if key is not None and quote(key) == key and key not in attributes else "key"


def quote(name: str) -> str:
    """`name` as the language writes it: in quotes where it is a keyword or is not one word."""
    if is_word(name) and keyword(name) is None:
        return name
    return "'" + name.replace("'", "''") + "'"

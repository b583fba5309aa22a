"""What the facts of one column say: its type as an attribute, whether each row has its own value, words of its name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from patternlake.jobs.configuration.values import attribute_type
from patternlake.jobs.starter import role_words
from patternlake.jobs.starter.column_facts import COUNTED, ColumnFacts

_UNIQUE = 0.93
"""Share of different values from which on each row is taken to have its own: counts are approximate."""
_STRAYS = 0.01
"""Share of the values of a column of numbers that may be other texts."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_WHOLE_TYPES = ("tinyint", "smallint", "int", "bigint")


def attribute_type_of(column: ColumnFacts) -> str | None:
    """The attribute's type; None where the column can be none."""
    if column.type != "string":
        kind = "string" if re.match(r"(var)?char\b", column.type) else column.type
        try:
            return attribute_type(kind)
        except ValueError:
            return None
    padded = column.reads.get("padded", 0)
    if column.all_read_as("truth"):
        return "boolean"
    if column.all_read_as("whole") and not padded:
        return "bigint"
    if (column.all_read_as("number") and not padded) or has_commas(column):
        return "double"
    if column.all_read_as("day"):
        return "date"
    if column.all_read_as("moment"):
        return "timestamp"
    if not has_strays(column):
        return "string"
    return "bigint" if column.reads.get("whole") == column.reads["number"] else "double"


def has_strays(column: ColumnFacts) -> bool:
    """Whether a column of texts has numbers but for a few others, or for several words for what is missing."""
    numbers = column.reads.get("number", 0)
    if column.type != "string" or not numbers or column.reads.get("padded") or column.all_read_as("number"):
        return False
    if has_commas(column):
        return False
    return column.strays("number") <= _STRAYS * numbers and hint(column, role_words.CODE) < 0


def has_commas(column: ColumnFacts) -> bool:
    """Whether a column of texts has numbers with decimals behind a comma: for certain, as 1,234 may be a thousand."""
    if column.type != "string" or column.reads.get("padded") or column.all_read_as("number"):
        return False
    return column.all_read_as("comma") and column.reads.get("cents", 0) > 0


def missing_word(columns: Sequence[ColumnFacts]) -> str | None:
    """The text that stands for missing values in most columns whose other texts are of another type."""
    counts: dict[str, int] = {}
    for column in columns:
        word = column.missing_word
        if word and column.type == "string" and attribute_type_of(column) != "string":
            counts[word] = counts.get(word, 0) + 1
    return max(counts, key=lambda word: counts[word]) if counts else None


def is_whole(column: ColumnFacts) -> bool:
    """Whether all values are whole numbers."""
    return column.type in _WHOLE_TYPES or (column.type == "string" and attribute_type_of(column) == "bigint")


def is_unique(column: ColumnFacts) -> bool:
    """Whether each row seems to have its own value."""
    return column.values > 1 and column.distinct >= _UNIQUE * column.values


def share(column: ColumnFacts, kind: str) -> float:
    """Which part of the values can be read as a kind."""
    return column.reads.get(kind, 0) / column.values if column.values else 0.0


def in_words(column: ColumnFacts) -> str:
    """What was found, in a few words."""
    distinct = f"{'about ' if column.distinct > COUNTED else ''}{column.distinct:,} different"
    nulls = f", {column.nulls:,} NULL" if column.nulls else ""
    return f"{column.type}, {distinct}{nulls}"


def words(column: ColumnFacts) -> list[str]:
    """The words of the name, in lower case and without accents: of userName and user_name, user and name."""
    apart = unicodedata.normalize("NFKD", column.name)
    plain = "".join(sign for sign in apart if not unicodedata.combining(sign))
    return [word.lower() for word in _WORD.findall(plain)]


def hint(column: ColumnFacts, known: Sequence[str]) -> int:
    """Place among the known words of the first that the column's name has; -1 for none."""
    there = words(column)
    return next((place for place, word in enumerate(known) if word in there), -1)


def hint_order(column: ColumnFacts, known: Sequence[str]) -> int:
    """The same, but for none behind all."""
    place = hint(column, known)
    return len(known) if place < 0 else place

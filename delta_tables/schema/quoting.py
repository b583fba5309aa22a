"""Names and texts as SQL: the one place where a value becomes part of a statement."""

from __future__ import annotations


def identifier(*parts: str) -> str:
    """Quote the parts of a name with backticks and join them with dots."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def literal(text: str) -> str:
    """Write a text as a SQL string literal (for the few clauses that take no expression: LOCATION, COMMENT)."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

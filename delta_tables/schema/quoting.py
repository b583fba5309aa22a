"""Names and texts as SQL: the one place where a value becomes part of a statement."""

from __future__ import annotations


def identifier(*parts: str) -> str:
    """Quote the parts of a name with backticks and join them with dots."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def literal(text: str) -> str:
    """Write a text as a SQL string literal (for the few clauses that take no expression: LOCATION, COMMENT)."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def shown_text(part: str) -> str:
    """Write SQL for what is shown of a partition: its value, several values joined by a comma, NULL for none."""
    return f"CASE WHEN size({part}) = 1 THEN {part}[0] WHEN size({part}) > 1 THEN array_join({part}, ',', 'NULL') END"

"""What is shown of the values that partition events, in SQL."""

from __future__ import annotations


def shown_text(part: str) -> str:
    """Write SQL for what is shown of a partition: its value, several values joined by a comma, NULL for none."""
    return f"CASE WHEN size({part}) = 1 THEN {part}[0] WHEN size({part}) > 1 THEN array_join({part}, ',', 'NULL') END"

"""The values of a partition as one text."""

from __future__ import annotations


def shown_text(part: str) -> str:
    """Write SQL for what is shown of a partition: its value, of several columns the values joined by a comma."""
    return f"CASE WHEN size({part}) = 1 THEN {part}[0] ELSE array_join({part}, ',', 'NULL') END"

"""What a forecast may ask for."""

from __future__ import annotations

GREATEST_LOOKAHEAD = 10_000
"""Events that a forecast looks ahead, at most: each adds a number to every state of a machine."""

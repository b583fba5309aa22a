"""The kinds of rows of a trend query's graph, as its tables tell them apart."""

from __future__ import annotations

EVENT, ATTRIBUTE, PANE = "event", "attribute", "pane"
"""Of vertices."""
FROM, TO = "from", "to"
"""Of edges."""

"""What a forecast may be asked for."""

from __future__ import annotations

MOST_LOOKAHEAD = 1_000
"""Greatest number of events that a forecast looks ahead."""
MOST_SMOOTHING = 1e9
"""Greatest value of `smoothing`."""

"""What a forecast may be asked for, and be made from."""

from __future__ import annotations

import sys

MOST_LOOKAHEAD = 1_000
"""Greatest number of events that a forecast looks ahead."""
MOST_SMOOTHING = 1e9
"""Greatest value of `smoothing`."""
LEAST_COUNT = sys.float_info.min
"""Counts that have faded below it are none: smaller numbers lose their digits, and quotients of them may be 0."""

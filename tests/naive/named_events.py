"""Events of which no more than their names, and columns, is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.events import Events
from patternlake.udfs.language.predicate.columns import Column


def named_events(names: IntArray, vocabulary: Sequence[str], columns: Mapping[str, Column] | None = None) -> Events:
    """One event after another, of one partition; names as places in the vocabulary."""
    places = np.arange(len(names), dtype=np.int64)
    return Events(
        positions=places + 1,
        times=places,
        names=names,
        vocabulary=vocabulary,
        keys=np.zeros(len(names), np.int64),
        columns=columns or {},
    )

"""Rows of the table `events` as the kernels of groups take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from patternlake.udfs.event_arrays import event_arrays, integers
from patternlake.udfs.groups.automaton.alphabet import IntArray, SmallArray
from patternlake.udfs.groups.kernels.steps import FloatArray
from patternlake.udfs.groups.query import GroupQuery


@dataclass(frozen=True)
class Read:
    """n events.

    Attributes
    ----------
    steps
        int64[n].
    classes
        int32[n]: `Alphabet.classes`.
    probabilities
        float64[n].
    """

    steps: IntArray
    classes: SmallArray
    probabilities: FloatArray


def read(query: GroupQuery, types: Mapping[str, str], rows: Mapping[str, pa.Array]) -> Read:
    """Events in the order of their rows.

    Parameters
    ----------
    query
        The compiled query.
    types
        Spark type of each of the stream's attributes.
    rows
        `EVENT_COLUMNS`, n values each.
    """
    events = event_arrays(rows, query.columns, types)
    classes = query.alphabet.classes(events.names, events.vocabulary, events.columns)
    probabilities = rows["probability"].to_numpy(zero_copy_only=False).astype(np.float64)
    return Read(integers(rows["step"]), classes, probabilities)

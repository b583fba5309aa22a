"""Rows of the table `events` as the kernels of groups take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.groups.automaton.alphabet import IntArray, SmallArray
from patternlake.udfs.groups.kernels.steps import FloatArray
from patternlake.udfs.groups.query import GroupQuery
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.language.predicate.event_columns import event_columns

COLUMNS = ("position", "time", "step", "key", "name", "probability", "attributes")
"""Columns of `events` that are read."""


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
        `COLUMNS`, n values each.
    """
    names = rows["name"].dictionary_encode()
    positions = _integers(rows["position"])
    known = np.ones(len(positions), np.bool_)
    columns = event_columns(rows, query.columns - {"name", "position", "time"}, types)
    columns |= {
        "position": Column(positions, known, "bigint"),
        "time": Column(_integers(pc.cast(rows["time"], pa.int64())), known, "timestamp"),
    }
    classes = query.alphabet.classes(_integers(names.indices.fill_null(-1)), names.dictionary.to_pylist(), columns)
    probabilities = rows["probability"].to_numpy(zero_copy_only=False).astype(np.float64)
    return Read(_integers(rows["step"]), classes, probabilities)


def _integers(values: pa.Array) -> IntArray:
    found: IntArray = values.to_numpy(zero_copy_only=False).astype(np.int64)
    return found

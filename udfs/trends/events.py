"""Events as a trend query takes them, from rows of the table `events`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from patternlake.udfs.attributes import attribute_columns, write_texts
from patternlake.udfs.events import Events, read_events
from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.partitions import distinct_partitions, partition_values
from patternlake.udfs.trends.query import TrendQuery


def event_columns_read(query: TrendQuery, types: Mapping[str, str]) -> list[str]:
    """The columns of `events` that `events_of` reads, given attributes' types; ``key`` aside, which rows of vertices
    hold.
    """
    built_in = [name for name in ("step", "key", "probability") if name in query.columns]
    return ["position", "time", "name", *built_in, *attribute_columns(query.columns, types)]


def events_of(query: TrendQuery, types: Mapping[str, str], rows: Mapping[str, pa.Array]) -> tuple[Events, pa.ListArray]:
    """Read events.

    Parameters
    ----------
    query
        The compiled query.
    types
        Attribute to Spark type.
    rows
        The columns `event_columns_read` of `events`, n values each, in any order.

    Returns
    -------
    Events
        In the order of the rows; their keys are places in the list that follows.
    pyarrow.ListArray
        The values of each partition as texts, in order, NULL first.
    """
    events = read_events(rows, query.columns, types)
    keys, parts = distinct_partitions(partition_values(pa.table(dict(rows)), query.partition))
    return replace(events, keys=keys), parts


def as_texts(column: Column) -> pa.Array:
    """Values as text that reads back to the same values; moments as Spark shows them, in UTC."""
    known = np.broadcast_to(column.known, column.values.shape)
    values = pa.array(column.values, mask=~known)
    if column.type in ("timestamp", "date"):
        return write_texts(values.cast(pa.timestamp("us")))
    return values.cast(pa.string())

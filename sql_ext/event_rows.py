"""Events for exact answers: which rows and columns a question needs, and the values that partition them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from patternlake.delta_tables.parts import shown_text
from patternlake.delta_tables.quoting import literal
from patternlake.delta_tables.state_reader import Condition, among, between, written_in
from patternlake.udfs.partition_values import CAST, TEXTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


PART = "part"
"""The values that partition an event, as a list of texts."""
_MOST_NAMES = 1000
"""So many names are looked for in the files; of more, all events are read."""


def of_stream(
    number: int,
    base: int,
    batch: int,
    *,
    names: Collection[str] | None = None,
    from_time: int | None = None,
    to_time: int | None = None,
) -> list[Condition]:
    """The conditions on the events of the stream of a number that a publication shows, of some names and times."""
    where = [Condition("stream_id", "=", number), *written_in(base, batch)]
    if names is not None and len(names) <= _MOST_NAMES:
        where.append(among("name", sorted(names)))
    where += between("time", from_time, to_time)
    return where


def partitioned(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Events with their `PART`, for Spark's tasks."""
    values = [_sql_value(column) for column in columns]
    return frame.withColumn(PART, F.expr(f"CAST(array({', '.join(values)}) AS ARRAY<STRING>)"))


def _sql_value(column: str) -> str:
    if column in TEXTS:
        return column
    return f"CAST({column} AS STRING)" if column in CAST else f"try_element_at(attributes, {literal(column)})"


def with_key(frame: DataFrame, key: str) -> DataFrame:
    """The events of a partition that is shown as this key."""
    return frame.where(F.expr(shown_text(PART)) == F.lit(key))


def of_key(part: pa.Array, width: int, key: str) -> pa.Array:
    """bool[n]: whether events belong to the partition, of `width` columns, that is shown as a key."""
    flat = pc.list_flatten(part)
    if width == 1:
        return pc.fill_null(pc.equal(flat, key), False)
    numbers = np.arange(len(part), dtype=np.int64) * width
    columns = [flat.take(pa.array(numbers + column)).fill_null("NULL") for column in range(width)]
    if not columns:
        return pa.array(np.zeros(len(part), np.bool_))
    return pc.equal(pc.binary_join_element_wise(*columns, ","), key)

"""Events of one time and key that nothing orders but their names: how many a stream has, and what to say of them.

The stream's `order:` decides between such events, and so do their places where they stand in one file. What is left is
ordered by the file's name and by the event's, so that the alphabet says which of two came first.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import functions as F

from patternlake.jobs.ingest.ranges import ranks
from patternlake.jobs.sources.expressions import deciding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.jobs.configuration.streams import StreamConfiguration

SHARE = 0.01
"""Of a stream's events, so many may be tied without a word."""

_BOUNDS = {"min": F.min, "max": F.max}
_AT_ONCE = 4_000_000
"""Rows that the driver groups at once."""
_MIXING, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


@dataclass(frozen=True)
class Ties:
    """How many events are tied.

    Parameters
    ----------
    tied
        Events that share time, key and the values of `order:` with an event of another name, and of another file where
        events have a place in one.
    events
        All accepted events.
    """

    tied: int = 0
    events: int = 0

    def __add__(self, other: Ties) -> Ties:
        return Ties(self.tied + other.tied, self.events + other.events)

    def told(self, stream: StreamConfiguration) -> str | None:
        """What to say of them; None where they are few."""
        if self.tied <= SHARE * self.events:
            return None
        shared = "time" if stream.key is None else "time and key"
        shared += "" if stream.order is None else " and `order`"
        files = stream.source.kind != "delta"
        where = " in another file" if files else ""
        decides = "the names of the files decide" if files else "their names decide, by the alphabet,"
        return (
            f"{self.tied:,} of {self.events:,} events ({self.tied / self.events:.1%}) share {shared} with an event of "
            f"another name{where}, and {decides} which comes first; write `order:` in the stream with an expression "
            "that says it, such as a sequence number"
        )


def count_tied(prepared: DataFrame, stream: StreamConfiguration) -> int:
    """Count the tied events of prepared rows."""
    found = _choose_columns(prepared.columns, stream)
    if found is None:
        return 0
    shared, differing = found
    spans = [bound(column).alias(f"{column}_{told}") for column in differing for told, bound in _BOUNDS.items()]
    # Spark sorts rows to find the least text of a group, and not to find the least number. A hash passes NULLs by.
    group = F.xxhash64(*shared, *map(F.isnull, shared)).alias("group")
    numbers = prepared.where(F.col("reason").isNull()).select(group, *(F.xxhash64(one).alias(one) for one in differing))
    groups = numbers.groupBy("group").agg(F.count("*").alias("rows"), *spans)
    for column in differing:
        groups = groups.where(F.col(f"{column}_min") < F.col(f"{column}_max"))
    (count,) = groups.agg(F.sum("rows")).collect()
    return int(count[0] or 0)


def count_tied_here(prepared: pa.Table, stream: StreamConfiguration) -> int:
    """Count the same of prepared rows in the driver's process."""
    found = _choose_columns(prepared.column_names, stream)
    if found is None:
        return 0
    shared, _ = found
    places = np.flatnonzero(pc.is_null(prepared["reason"]).to_numpy())
    mixed = np.zeros(len(places), np.uint64)
    # Most events have a time of their own, or a key; what is left after each column is looked at again.
    for column in shared:
        mixed = (mixed ^ ranks(prepared[column], places).astype(np.uint64)) * _MIXING
        mixed ^= mixed >> _HALF
        again = _find_repeated(mixed)
        places, mixed = places[again], mixed[again]
        if not len(places):
            return 0
    parts = -(-len(places) // _AT_ONCE)
    if parts < 2:
        return _count_at(prepared, places, *found)
    # Rows that share all columns are in one part.
    return sum(_count_at(prepared, places[mixed % np.uint64(parts) == part], *found) for part in range(parts))


def _count_at(prepared: pa.Table, places: NDArray[np.int64], shared: Sequence[str], differing: Sequence[str]) -> int:
    numbers = pa.table({column: ranks(prepared[column], places) for column in (*shared, *differing)})
    bounds = [(column, told) for column in differing for told in _BOUNDS]
    groups = numbers.group_by(list(shared)).aggregate([*bounds, ("name", "count")])
    apart = [pc.less(groups[f"{column}_min"], groups[f"{column}_max"]) for column in differing]
    return int(pc.sum(groups.filter(functools.reduce(pc.and_, apart))["name_count"]).as_py() or 0)


def _find_repeated(values: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which values stand twice or more."""
    order = np.argsort(values)
    alike = values[order[1:]] == values[order[:-1]]
    found = np.zeros(len(values), bool)
    found[order[1:][alike]] = True
    found[order[:-1][alike]] = True
    return found


def _choose_columns(columns: Sequence[str], stream: StreamConfiguration) -> tuple[Sequence[str], Sequence[str]] | None:
    """The columns that tied events share, and those in which they differ; None where no events are tied."""
    in_files = "place" in columns
    # Rows of a step are alternatives, and steps have an order; in one file, places decide.
    if stream.probabilistic or (in_files and "file" not in columns):
        return None
    orders = [column for column in deciding(columns) if column not in ("file", "block", "place")]
    return ("time", "key", *orders), ("name", "file") if in_files else ("name",)

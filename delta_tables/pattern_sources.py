"""What matching a kept pattern gathers, whoever does it: events, and where earlier matches end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from patternlake.delta_tables.chosen_attributes import with_chosen_attributes
from patternlake.delta_tables.gathering import Gather
from patternlake.delta_tables.state_reader import Condition, between
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.kleene.state import kept_as_rows
from patternlake.udfs.partitions import PART


def events_of(
    pattern: KleenePattern, where: Sequence[Condition], types: Mapping[str, str], key: str | None = None
) -> Gather:
    """The events of a pattern, with what matching reads of them.

    Parameters
    ----------
    pattern
        The pattern.
    where
        Which events.
    types
        Spark type of each of the stream's attributes.
    key
        Only of this partition; None: of all.
    """
    kept, by_rows, attributes = (PART, *pattern.matched_columns), kept_as_rows(pattern), pattern.attributes(types)

    def make(rows: pa.Table) -> pa.Table:
        rows = rows.select(kept)
        return with_chosen_attributes(rows, attributes) if by_rows else rows

    return Gather("events", pattern.event_columns, tuple(where), pattern.partition, key, make)


def ends_of(pattern: KleenePattern, where: Sequence[Condition], since: int | None, key: str | None = None) -> Gather:
    """Where known matches end, as events without a name.

    Parameters
    ----------
    pattern, key
        As for `events_of`.
    where
        Which rows of `pattern_matches`.
    since
        Only ends at or after this time, in microseconds; None: all.
    """
    names = [PART, "time", "position"]
    conditions = (*where, *between("last_time", since, None))
    columns = (PART, "last_time", "last_position")
    return Gather(
        "pattern_matches", columns, conditions, pattern.partition, key, lambda rows: rows.rename_columns(names)
    )

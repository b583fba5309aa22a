"""What matching a kept pattern gathers, whoever does it: events, and where earlier matches end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from patternlake.delta_tables.gathering.gather import Gather
from patternlake.delta_tables.reading.state_reader import Condition, between
from patternlake.delta_tables.schema.layout import KEY
from patternlake.udfs.attributes import attribute_of, is_attribute, type_of
from patternlake.udfs.kept_attributes import ATTRIBUTES, read_attributes
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.partitions import PART


def events_of(
    pattern: KleenePattern,
    where: Sequence[Condition],
    types: Mapping[str, str],
    key: str | None = None,
    *,
    coded: tuple[str, ...] = (),
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
        Only of this partition, or of this key of the stream where nothing partitions; None: of all.
    coded
        As of `Gather`.
    """
    kept = (PART, *pattern.matched_columns(types))
    columns = pattern.event_columns(types)
    if key is not None and not pattern.partition and KEY not in columns:
        columns = (*columns, KEY)
    return Gather("events", columns, tuple(where), pattern.partition, key, lambda rows: rows.select(kept), coded=coded)


def kept_events_of(
    pattern: KleenePattern, where: Sequence[Condition], types: Mapping[str, str], key: str | None = None
) -> Gather:
    """The events that are kept as rows, as `events_of` gives them.

    Parameters
    ----------
    pattern, types, key
        As for `events_of`.
    where
        Which rows of `pattern_state`.
    """
    columns = pattern.matched_columns(types)
    read = {attribute_of(name): type_of(name) for name in columns if is_attribute(name)}
    stored = [PART, *(name for name in columns if not is_attribute(name)), *([ATTRIBUTES] if read else [])]
    make = partial(read_attributes, types=read)
    return Gather("pattern_state", tuple(stored), tuple(where), pattern.partition, key, make)


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

"""Rows of the table `events` as the kernels of groups take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from patternlake.udfs.arrays import FloatArray, IntArray, SmallArray
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.events import integers, read_events
from patternlake.udfs.groups.kernels.steps import bad_steps
from patternlake.udfs.groups.query import GroupQuery


@dataclass(frozen=True)
class GroupEvents:
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


def read_group_events(query: GroupQuery, types: Mapping[str, str], rows: Mapping[str, pa.Array]) -> GroupEvents:
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
    events = read_events(rows, query.columns, types)
    classes = query.alphabet.classes(events)
    probabilities = rows["probability"].to_numpy(zero_copy_only=False).astype(np.float64)
    return GroupEvents(integers(rows["step"]), classes, probabilities)


def check_keys(
    query: GroupQuery, partitions: IntArray, shown: Sequence[str | None], events: GroupEvents, keys: pa.Array
) -> None:
    """Refuse partitions in which keys meet at a step and have more than a probability of 1 together.

    Parameters
    ----------
    query
        The compiled query.
    partitions, shown
        int64[n]: codes of the events' partitions, and what is shown of each.
    events
        The events.
    keys
        Their keys in the stream.

    Raises
    ------
    ArgumentError
        Naming partition, keys and step. `ingest` has seen to it that no key alone exceeds 1 at a step, but rows of one
        step exclude one another only within a key, and a step that exceeds 1 would count as another event.
    """
    if not query.partition or "key" in query.partition:
        return
    bad = np.flatnonzero(bad_steps(partitions, events.steps, events.probabilities))
    if not len(bad):
        return
    first = bad[np.lexsort((events.steps[bad], partitions[bad]))[0]]
    mine = bad[(partitions[bad] == partitions[first]) & (events.steps[bad] == events.steps[first])]
    found = sorted(keys.take(pa.array(mine)).unique().to_pylist(), key=lambda key: (key is not None, key or ""))
    if len(found) < 2:
        return
    one, other = ("NULL" if key is None else repr(key) for key in found[:2])
    more = "" if len(found) == 2 else f", and {len(found) - 2:,} more,"
    place = shown[partitions[first]]
    raise ArgumentError(
        f"PARTITION BY {', '.join(query.partition)} puts the keys {one} and {other}{more} into one partition, "
        f"{'NULL' if place is None else place}; rows of one step exclude one another, and theirs of step "
        f"{events.steps[first]} have a probability of {events.probabilities[mine].sum():.6g} together: add the "
        "stream's key to PARTITION BY"
    )

"""Which events a pattern with a window reads where one of its names is rare: those around the rare ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patternlake.delta_tables.gathering.gather import Gather
from patternlake.delta_tables.reading.state_reader import Condition, among
from patternlake.sql_ext.answering.answers import collect_apart
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.udfs.events import micros
from patternlake.udfs.kleene.anchors import find_anchors
from patternlake.udfs.kleene.query import KleenePattern
from patternlake.udfs.published import NameCount, count_events

_FEW_EVENTS = 100_000
"""The events of so many are not worth a look of their own."""
_RARE = 100
"""One of so many events, or fewer, is rare."""
_MOST_RANGES = 200
_SPARSE = 10
"""Ranges that cover one of so many parts of the time from the first to the last leave little of what is read."""


def around_anchors(lake: Lake, pattern: KleenePattern, gathered: Gather, counts: Sequence[NameCount]) -> Gather:
    """Leave out the events that lie too far in time from all events of a rare name which every match has.

    Parameters
    ----------
    lake
        Where the question is asked.
    pattern
        The pattern.
    gathered
        The events that it reads.
    counts
        How often each name of the stream occurs.

    Returns
    -------
    Gather
        The same where no name is rare.
    """
    total = count_events(counts)
    anchors = find_anchors(pattern, counts)
    if anchors is None or total <= _FEW_EVENTS or anchors.events * _RARE > total:
        return gathered
    rare = replace(gathered, where=(*gathered.where, among("name", sorted(anchors.names))), make=None)
    if gathered.key is None:
        rare = replace(rare, columns=("time",), partition=())
    small = lake.small(rare.table, rare.conditions, rare.touched)
    found = rare.read(lake.reader) if small else collect_apart(lake, rare)
    ranges = anchors.ranges(micros(found["time"].combine_chunks()), _MOST_RANGES)
    covered = sum(last - first for first, last in ranges)
    sparse = bool(ranges) and covered * _SPARSE <= ranges[-1][1] - ranges[0][0]
    around = (*gathered.where, Condition("time", "in ranges", ranges))
    return replace(gathered, where=around, sparse=sparse or gathered.sparse)

"""The first step of `match_paths`: from arguments and a publication to a checked request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from patternlake.udfs.arguments import check_bounds, check_key, given_or, group_column, window
from patternlake.udfs.attributes import types_of_attributes
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.language.query import extents
from patternlake.udfs.language.query.tree import Extent
from patternlake.udfs.partitions import columns_holding, count_portions
from patternlake.udfs.published import NameCount, Published, count_events, published_stream
from patternlake.udfs.requests import PORTION_EVENTS, PartitionReads

DEFAULT_BEFORE, DEFAULT_AFTER = 2, 3
DEFAULT_TOP = 20
DEFAULT_PATHS = 100
FARTHEST = 100
"""Items before the middle of a path, and behind it, at most."""


@dataclass(frozen=True)
class PathsRequest:
    """What the portions of an answer need to know.

    Attributes
    ----------
    around
        The name that paths lead to and from; None: paths are whole partitions.
    before, after
        Items before and behind it, at most.
    within
        They are less than this away from it, or, in whole partitions, from the first; None: nothing limits it.
    fold
        Whether an event that is called as the one before it joins that one's item.
    by
        The column whose value groups occurrences, of the middle item or, without one, of the first; None: they are one
        group.
    alphabet
        Names that are told apart, ascending; all others are called `result.OTHER`.
    max_paths
        Rows of a group, at most.
    types
        Spark type of each of the stream's attributes.
    partition
        Columns whose values are one path's.
    """

    around: str | None
    before: int
    after: int
    within: Extent | None
    fold: bool
    by: str | None
    alphabet: tuple[str, ...]
    max_paths: int
    types: Mapping[str, str]
    partition: tuple[str, ...] = ("key",)

    @property
    def event_columns(self) -> tuple[str, ...]:
        """Columns of the table of events that are read, those that partition it included."""
        of = self.partition if self.by is None else (*self.partition, self.by)
        return tuple(dict.fromkeys(("position", "time", "name", *columns_holding(of, self.types))))


def check_request(
    arguments: Mapping[str, Any], publication: Published, known: Sequence[str], counts: Sequence[NameCount]
) -> PartitionReads[PathsRequest]:
    """Check a call, and say what is to be read for it.

    Parameters
    ----------
    arguments, publication, known
        As of `published_stream`.
    counts
        Of the stream's names: the most frequent `top` are told apart, by how often they occur in the whole stream.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.
    """
    at, configuration = published_stream(arguments, publication, known, pattern=False)
    check_bounds(arguments, ("from_time", "to_time"))
    check_key(arguments, configuration, partitioned=False)
    around, within = arguments.get("around"), arguments.get("within")
    before, after = given_or(arguments, "before", DEFAULT_BEFORE), given_or(arguments, "after", DEFAULT_AFTER)
    for name, count, plain in (("before", before, DEFAULT_BEFORE), ("after", after, DEFAULT_AFTER)):
        if around is None and count != plain:
            raise ArgumentError(
                f"{name} => {count} without around; give the name that paths lead to and from, or leave {name} out for "
                "whole partitions"
            )
        if not 0 <= count <= FARTHEST:
            raise ArgumentError(f"{name} must be from 0 to {FARTHEST}, not {count}")
    top, most = given_or(arguments, "top", DEFAULT_TOP), given_or(arguments, "max_paths", DEFAULT_PATHS)
    for name, count in (("top", top), ("max_paths", most)):
        if count < 1:
            raise ArgumentError(f"{name} must be 1 or more, not {count}")
    frequent = sorted(counts, key=lambda row: (-row.events, row.name))[:top]
    request = PathsRequest(
        around=around,
        before=before,
        after=after,
        within=None if within is None else extents.clip(window(within)),
        fold=given_or(arguments, "fold", True),
        by=group_column(arguments.get("by"), configuration),
        alphabet=tuple(sorted({row.name for row in frequent} | ({around} if around is not None else set()))),
        max_paths=most,
        types=types_of_attributes(configuration),
        partition=tuple(configuration.get("partition", ["key"])),
    )
    events = count_events(counts)
    return PartitionReads(request, at.rows, count_portions(events, PORTION_EVENTS))

"""What jobs have published, as the functions see it at a moment; `delta_tables.snapshots` reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from patternlake.udfs.arguments import check_given, moment, unknown
from patternlake.udfs.errors import ArgumentError, shorten
from patternlake.udfs.requests import BatchRange

SETTLED = 1 << 61
"""The watermark of what has all arrived: behind every moment."""
_NAME = re.compile(r"[A-Za-z0-9_.]+")
"""Names that a shell takes as they are."""


@dataclass(frozen=True)
class PublishedBatch:
    """A batch that a job has published of an object; moments in microseconds since the epoch.

    Attributes
    ----------
    object_id
        Number of the object.
    base_batch, batch_id
        First and last batch whose rows count.
    configuration, source, state
        JSON texts: as configured, what was read, and what the next batch goes on from.
    job, object, stream_id
        The job, the object's name and the number of its stream.
    published_at
        When.
    source_to
        Position of the last event that was read.
    watermark, horizon
        Below which events are settled, and before which nothing can be asked for; None: there is no such moment.
    """

    object_id: int
    base_batch: int
    batch_id: int
    configuration: str
    source: str = "{}"
    state: str = "{}"
    job: str = ""
    object: str = ""
    stream_id: int = 0
    published_at: int = 0
    source_to: int = 0
    watermark: int | None = None
    horizon: int | None = None

    @property
    def rows(self) -> BatchRange:
        """The rows that it shows."""
        return BatchRange(self.object_id, self.base_batch, self.batch_id)


@dataclass(frozen=True)
class Published:
    """What a job has published of one object, as of a moment.

    Attributes
    ----------
    at
        The publication that was current; None where there was none.
    newest
        The latest one of all.
    newest_of_base
        The latest one with the first batch of `at`: its rows are what there is now of those of `at`.
    first, horizon
        When the object was first published, and the earliest moment that can be asked for; microseconds, or None.
    """

    at: PublishedBatch | None
    newest: PublishedBatch | None = None
    newest_of_base: PublishedBatch | None = None
    first: int | None = None
    horizon: int | None = None

    def check_moment(self, what: str, as_of: int | None) -> None:
        """Refuse a moment that lies before what can be asked for.

        Parameters
        ----------
        what
            The object, for messages.
        as_of
            Microseconds since the epoch, or None for now.

        Raises
        ------
        ArgumentError
            Naming the earliest moment.
        """
        if as_of is None or self.first is None:
            return
        if as_of < self.first:
            raise ArgumentError(
                f"as_of {moment(as_of)} lies before the first publication of {what}, {moment(self.first)}"
            )
        if self.horizon is not None and as_of < self.horizon:
            raise ArgumentError(
                f"as_of {moment(as_of)} lies before the horizon of {what}; the earliest moment that can be asked is "
                f"{moment(self.horizon)}"
            )


NOTHING = Published(None)


def published_stream(
    arguments: Mapping[str, Any], publication: Published, known: Sequence[str], *, pattern: bool = True
) -> tuple[PublishedBatch, dict[str, Any]]:
    """What was published of the stream that a function over events is asked for, and the stream's configuration.

    Parameters
    ----------
    arguments
        The SQL function's arguments by name; times in microseconds since the epoch.
    publication
        What `ingest` published of the stream.
    known
        Names of all streams.
    pattern
        Whether the function takes a pattern.

    Raises
    ------
    ArgumentError
        The stream or the pattern is NULL, there is no such stream, or nothing of it at that moment.
    """
    check_given(arguments, pattern=pattern)
    stream = arguments["stream"]
    publication.check_moment(f"the stream {shorten(stream)}", arguments.get("as_of"))
    if publication.at is None:
        named = stream if _NAME.fullmatch(stream) else "NAME"
        advice = f"a table becomes one by `patternlake init --table {named}` and `patternlake run all`"
        raise unknown("stream", stream, "streams", known, "run `ingest`", otherwise=advice)
    return publication.at, json.loads(publication.at.configuration)


@dataclass(frozen=True)
class NameCount:
    """How often a name occurs in a stream.

    Attributes
    ----------
    name, events
        The name, and how many events have it.
    first, last
        Time of its first and its last event, microseconds; None: not known.
    attributes
        How the values of attributes lie, as rows of `event_statistics` have it; None where nothing was told of them.
    """

    name: str
    events: int
    first: int | None
    last: int | None
    attributes: Sequence[Mapping[str, Any]] | None = None


def known_until(watermark: int | None, to_time: int | None) -> int | None:
    """The watermark, or the end of a question where that is earlier: behind it nothing is known. In microseconds."""
    return watermark if watermark is None or to_time is None else min(watermark, to_time + 1)


def count_events(counts: Iterable[NameCount], names: Collection[str] | None = None) -> int:
    """Count the events of a stream that have some names; None: any."""
    return sum(row.events for row in counts if names is None or row.name in names)

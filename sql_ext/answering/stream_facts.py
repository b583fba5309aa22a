"""What a function over events is told of its stream: what `ingest` published, and how often each name occurs."""

from __future__ import annotations

from dataclasses import dataclass

from patternlake.delta_tables.gathering.snapshots import Snapshot
from patternlake.udfs.published import NameCount, Published
from patternlake.udfs.unseen_names import MOST_NAMES


@dataclass(frozen=True)
class StreamFacts:
    """What is known of a stream.

    Attributes
    ----------
    number
        Its number; None where nothing is published.
    published
        What `ingest` has published of it.
    known
        Names of all streams.
    counts
        As `Snapshot.name_counts` gives them; none where nothing is published.
    """

    number: int | None
    published: Published
    known: list[str]
    counts: list[NameCount]


def facts_of(snapshot: Snapshot, stream: str | None, names: int = 0) -> StreamFacts:
    """What is known of a stream, which may not exist; so many `names` are counted at least, if it has them."""
    found = snapshot.published("ingest", stream or "")
    if found.at is None:
        return StreamFacts(None, found, snapshot.names("ingest"), [])
    counts = snapshot.name_counts(found.at.rows, max(MOST_NAMES, names))
    return StreamFacts(found.at.object_id, found, snapshot.names("ingest"), counts)

"""What a function over events is told of its stream: what `ingest` published, and how often each name occurs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from patternlake.delta_tables.snapshots import Snapshot
from patternlake.delta_tables.stream_names import stream_id

MOST_NAMES = 10_000
"""So many names, the most frequent, are known to the planner."""


@dataclass(frozen=True)
class StreamFacts:
    """What is known of a stream.

    Attributes
    ----------
    published
        As `Published.as_mapping` gives it.
    known
        Names of all streams.
    counts
        As `Snapshot.name_counts` gives them; none where nothing is published.
    """

    published: dict[str, Any]
    known: list[str]
    counts: list[dict[str, Any]]


def facts_of(snapshot: Snapshot, stream: str | None) -> StreamFacts:
    """What is known of a stream, which may not exist."""
    found = snapshot.published("ingest", stream or "")
    counts = []
    if stream is not None and found.at is not None:
        counts = snapshot.name_counts(stream_id(stream), found.at["base_batch"], found.at["batch_id"], MOST_NAMES)
    return StreamFacts(found.as_mapping(), snapshot.names("ingest"), counts)

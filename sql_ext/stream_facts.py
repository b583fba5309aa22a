"""What a function over events is told of its stream: what `ingest` published, and how often each name occurs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from patternlake.delta_tables.snapshots import Snapshot
from patternlake.udfs.unseen_names import MOST_NAMES


@dataclass(frozen=True)
class StreamFacts:
    """What is known of a stream.

    Attributes
    ----------
    number
        Its number; None where nothing is published.
    published
        As `Published.as_mapping` gives it.
    known
        Names of all streams.
    counts
        As `Snapshot.name_counts` gives them; none where nothing is published.
    """

    number: int | None
    published: dict[str, Any]
    known: list[str]
    counts: list[dict[str, Any]]


def facts_of(snapshot: Snapshot, stream: str | None) -> StreamFacts:
    """What is known of a stream, which may not exist."""
    found = snapshot.published("ingest", stream or "")
    if found.at is None:
        return StreamFacts(None, found.as_mapping(), snapshot.names("ingest"), [])
    number = int(found.at["object_id"])
    counts = snapshot.name_counts(number, found.at["base_batch"], found.at["batch_id"], MOST_NAMES)
    return StreamFacts(number, found.as_mapping(), snapshot.names("ingest"), counts)

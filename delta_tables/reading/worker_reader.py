"""Reading state in a worker process of Spark's, for tasks that read what they need for themselves."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from patternlake.delta_tables.reading.direct_reader import DirectReader
from patternlake.delta_tables.reading.file_cache import CACHE

Location = tuple[str, tuple[tuple[str, str], ...], int]
"""Location and storage options of a database, and the bytes that a worker keeps of what it has read."""
_SHARE = 4
"""A worker keeps this part of what the driver's process may keep: there is one for each core."""


@lru_cache(maxsize=4)
def reader_at(place: Location) -> DirectReader:
    """Return what reads a database in a worker process, which keeps it for later tasks."""
    location, storage_options, kept = place
    CACHE.reserve(kept)
    return DirectReader(location, CACHE, dict(storage_options), one_core=True)


def location_of(place: str, storage_options: Mapping[str, str]) -> Location:
    """Return a place as `reader_at` takes it."""
    return place, tuple(sorted(storage_options.items())), CACHE.capacity // _SHARE

"""Reading state in a worker process of Spark's, for tasks that read what they need for themselves."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from patternlake.delta_tables.direct_reader import DirectReader
from patternlake.delta_tables.file_cache import TableCache

Location = tuple[str, tuple[tuple[str, str], ...]]
"""Location and storage options of a database."""

_CACHE = TableCache()
"""Of a worker process: the files that its tasks have read."""


@lru_cache(maxsize=4)
def reader_at(place: Location) -> DirectReader:
    """Return what reads a database in a worker process, which keeps it for later tasks."""
    return DirectReader(place[0], _CACHE, dict(place[1]))


def location_of(place: str, storage_options: Mapping[str, str]) -> Location:
    """Return a place as `reader_at` takes it."""
    return place, tuple(sorted(storage_options.items()))

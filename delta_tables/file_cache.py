"""A cache of Arrow tables in the driver's memory, bounded in bytes; what was used least recently goes first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

import pyarrow as pa

DEFAULT_BYTES = 256 << 20
_OVERHEAD = 4096
"""Bytes that a table takes beside its values, about."""
_LARGEST_SHARE = 4
"""A table larger than this part of the cache is not kept: it would drive out all others."""


class TableCache:
    """Arrow tables by key, as many as fit.

    What a key stands for never changes: a file of a Delta table, or an answer to a question about given versions.

    Parameters
    ----------
    capacity
        Bytes that all tables together may take.
    """

    def __init__(self, capacity: int = DEFAULT_BYTES) -> None:
        self._capacity = capacity
        self._held: OrderedDict[Hashable, pa.Table] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        """Bytes of all tables that are kept."""
        return self._bytes

    def reserve(self, capacity: int) -> None:
        """Let the cache take so many bytes, if it takes fewer; who asks for less does not empty it for others."""
        with self._lock:
            self._capacity = max(self._capacity, capacity)

    def get(self, key: Hashable, make: Callable[[], pa.Table]) -> pa.Table:
        """Return the table of a key; made, and kept if it is not too large, where it is not there.

        Two threads may make the same table at once; one of the two is kept.
        """
        found = self.peek(key)
        if found is None:
            found = make()
            self.put(key, found)
        return found

    def peek(self, key: Hashable) -> pa.Table | None:
        """Return the table of a key, if it is there."""
        with self._lock:
            found = self._held.get(key)
            if found is not None:
                self._held.move_to_end(key)
            return found

    def put(self, key: Hashable, table: pa.Table) -> None:
        """Keep the table of a key, if it is not too large and none is there."""
        size = table.nbytes + _OVERHEAD
        with self._lock:
            if key not in self._held and size <= self._capacity // _LARGEST_SHARE:
                self._held[key] = table
                self._bytes += size
                self._shrink()

    def drop(self, wanted: Callable[[Hashable], bool]) -> None:
        """Let go of the tables whose keys are wanted."""
        with self._lock:
            for key in [key for key in self._held if wanted(key)]:
                self._bytes -= self._held.pop(key).nbytes + _OVERHEAD

    def _shrink(self) -> None:
        while self._bytes > self._capacity:
            _, dropped = self._held.popitem(last=False)
            self._bytes -= dropped.nbytes + _OVERHEAD

"""The cache of a process: files of tables, rows that it wrote, and answers; bounded in bytes.

What was used least recently goes first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Protocol

import pyarrow as pa

DEFAULT_BYTES = 64 << 20
"""Of a process that nobody gave more: one that runs jobs, or a worker of Spark's."""
_OVERHEAD = 4096
"""Bytes that a table takes beside its values, about."""
_LARGEST_SHARE = 4
"""A table larger than this part of the cache is not kept: it would drive out all others."""


class Sized(Protocol):
    """What can be kept: an Arrow table, or something that says as well how many bytes it takes."""

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""


class TableCache:
    """Arrow tables, and what holds some, by key; as many as fit.

    What a key stands for never changes, a file of a Delta table or an answer about given versions, unless `replace`
    says so.

    Parameters
    ----------
    capacity
        Bytes that all tables together may take.
    """

    def __init__(self, capacity: int = DEFAULT_BYTES) -> None:
        self._capacity = capacity
        self._held: OrderedDict[Hashable, Sized] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def capacity(self) -> int:
        """Bytes that all tables together may take."""
        return self._capacity

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

    def peek(self, key: Hashable) -> Any:
        """Return what is kept by a key; None where nothing is."""
        with self._lock:
            found = self._held.get(key)
            if found is not None:
                self._held.move_to_end(key)
            return found

    def put(self, key: Hashable, table: Sized) -> None:
        """Keep the table of a key, if it is not too large and none is there."""
        with self._lock:
            if key not in self._held:
                self._keep(key, table)

    def replace(self, key: Hashable, table: Sized | None) -> None:
        """Keep what a key stands for from now on, if it is not too large; None: nothing."""
        with self._lock:
            self._let_go(key)
            if table is not None:
                self._keep(key, table)

    def drop(self, wanted: Callable[[Hashable], bool]) -> None:
        """Let go of the tables whose keys are wanted."""
        with self._lock:
            for key in [key for key in self._held if wanted(key)]:
                self._let_go(key)

    def _keep(self, key: Hashable, table: Sized) -> None:
        size = table.nbytes + _OVERHEAD
        if size <= self._capacity // _LARGEST_SHARE:
            self._held[key] = table
            self._bytes += size
            while self._bytes > self._capacity:
                self._let_go(next(iter(self._held)))

    def _let_go(self, key: Hashable) -> None:
        held = self._held.pop(key, None)
        self._bytes -= 0 if held is None else held.nbytes + _OVERHEAD


CACHE = TableCache()
"""Of this process, whatever runs in it: as large as the greatest that one of its sessions asked for."""

"""Rows of files that this process has written lately: whoever reads them next needs no file for it.

The jobs of a process read what the one before them has written, a row of `publications` or what is kept of a batch,
and to open a file takes longer than to write its rows. The files of a Delta table never change.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from patternlake.delta_tables.file_cache import TableCache

_SMALL = 256 << 10
_few = TableCache(16 << 20)
"""Rows by path of their file, those that take up to `_SMALL` bytes."""
_many = TableCache(32 << 20)
"""Others, which would drive out many small ones; none takes more than a quarter of all these bytes."""


def hold(file: str, rows: pa.Table) -> None:
    """Keep all rows of a file, with the columns by which its table is partitioned."""
    small = rows.nbytes <= _SMALL
    if small and rows.get_total_buffer_size() > 2 * _SMALL:
        # A few rows of many would keep the others.
        rows = rows.take(pa.array(np.arange(rows.num_rows)))
    (_few if small else _many).put(file, rows)


def few(file: str) -> pa.Table | None:
    """Return the rows of a file, if they are kept and few."""
    return _few.peek(file)


def many(file: str) -> pa.Table | None:
    """Return the rows of a file, if they are kept and not few."""
    return _many.peek(file)

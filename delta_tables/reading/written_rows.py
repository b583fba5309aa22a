"""Rows of files that this process has written lately: whoever reads them next needs no file for it.

The jobs of a process read what the one before them has written, a row of `publications` or what is kept of a batch,
and to open a file takes longer than to write its rows. The files of a Delta table never change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from patternlake.delta_tables.reading.file_cache import CACHE

_SMALL = 256 << 10
_FEW, _MANY = "few rows written", "many rows written"


def hold(file: str, rows: pa.Table) -> None:
    """Keep all rows of a file, with the columns by which its table is partitioned."""
    small = rows.nbytes <= _SMALL
    if small and rows.get_total_buffer_size() > 2 * _SMALL:
        # A few rows of many would keep the others.
        rows = rows.take(pa.array(np.arange(rows.num_rows)))
    CACHE.put((_FEW if small else _MANY, file), rows)


def few(file: str) -> Any:
    """Return the rows of a file, if they are kept and few; else None."""
    return CACHE.peek((_FEW, file))


def many(file: str) -> Any:
    """Return the rows of a file, if they are kept and not few; else None."""
    return CACHE.peek((_MANY, file))

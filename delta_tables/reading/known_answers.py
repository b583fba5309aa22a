"""Rows that were read of tables, kept by what was asked: of a later version only the files that have come are read."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from patternlake.delta_tables.reading.file_cache import TableCache
from patternlake.delta_tables.reading.state_reader import Fold
from patternlake.delta_tables.reading.table_logs import TableVersion

_LARGEST = 1 << 20
"""Bytes that an answer may take."""
_PATH = 200
"""Bytes of the path of a file, about."""
_MOST_PIECES = 16
_MOST_ROWS = _LARGEST // 4
"""Rows of an answer that is kept, at most: to add up the bytes of a thousand pieces takes longer than to read them."""


@dataclass(frozen=True)
class _Answer:
    paths: frozenset[str]
    """Of all files of the version."""
    rows: pa.Table

    @cached_property
    def nbytes(self) -> int:
        return int(self.rows.nbytes) + _PATH * len(self.paths)


class KnownAnswers:
    """Answers to questions about the tables of a database, by question.

    Parameters
    ----------
    cache
        What keeps them.
    location
        Of the database.
    """

    def __init__(self, cache: TableCache, location: str) -> None:
        self._cache = cache
        self._location = location

    def get(
        self,
        question: Hashable,
        version: TableVersion,
        read: Callable[[pa.Table], pa.Table],
        fold: Fold | None = None,
    ) -> pa.Table:
        """Return the answer of a version of a table, in any order.

        Parameters
        ----------
        question
            What is asked: the table, the columns, the conditions on rows. What it leaves of a file never changes.
        version
            The version.
        read
            Gives what the question leaves of some of the version's files.
        fold
            What is to be made of the rows before they are kept.
        """
        key = (self._location, "what is known", question)
        known: _Answer | None = self._cache.peek(key)
        if known is not None and known.paths is version.paths:
            return known.rows
        if known is not None and known.paths <= version.paths:
            come = version.files.filter(pa.array([path not in known.paths for path in version.order], pa.bool_()))
            rows = pa.concat_tables([known.rows, read(come)]) if come.num_rows else known.rows
            if rows.num_columns and rows.column(0).num_chunks > _MOST_PIECES:
                rows = rows.combine_chunks()
        else:
            rows = read(version.files)
        rows = rows if fold is None else fold(rows)
        answer = _Answer(version.paths, rows)
        small = rows.num_rows <= _MOST_ROWS and answer.nbytes <= _LARGEST
        self._cache.replace(key, answer if small else None)
        return rows

"""Rows that were read of tables, kept by what was asked: of a later version only the files that have come are read."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from patternlake.delta_tables.state_reader import Fold
from patternlake.delta_tables.table_logs import TableVersion

_BYTES, _LARGEST = 16 << 20, 1 << 20
"""Bytes that all answers together may take, and one of them."""
_OVERHEAD, _PATH = 1024, 200
"""Bytes that an answer takes beside its values, and those of the path of a file, about."""
_MOST_PIECES = 16
_MOST_ROWS = _LARGEST // 4
"""Rows of an answer that is kept, at most: to add up the bytes of a thousand pieces takes longer than to read them."""


@dataclass(frozen=True)
class _Answer:
    paths: frozenset[str]
    """Of all files of the version."""
    rows: pa.Table

    @cached_property
    def bytes(self) -> int:
        return int(self.rows.nbytes) + _OVERHEAD + _PATH * len(self.paths)


class KnownAnswers:
    """Answers to questions about tables, by question; those that were asked least recently go first."""

    def __init__(self) -> None:
        self._held: OrderedDict[Hashable, _Answer] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

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
        with self._lock:
            known = self._held.get(question)
            if known is not None:
                self._held.move_to_end(question)
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
        self._keep(question, _Answer(version.paths, rows))
        return rows

    def _keep(self, question: Hashable, answer: _Answer) -> None:
        with self._lock:
            former = self._held.pop(question, None)
            self._bytes -= 0 if former is None else former.bytes
            if answer.rows.num_rows > _MOST_ROWS or answer.bytes > _LARGEST:
                return
            self._held[question] = answer
            self._bytes += answer.bytes
            while self._bytes > _BYTES:
                self._bytes -= self._held.popitem(last=False)[1].bytes

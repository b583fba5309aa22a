"""The rows that conditions leave of files of a Delta table: which they are, and what is read of a file to find them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from patternlake.delta_tables.reading.file_choice import truth
from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.schema.layout import Part, lies_by_key
from patternlake.udfs.record_batches import in_schema

_TOLD = ("path", "size_bytes", "num_records")
OF_PARTITION = "partition."
"""What the names of partition columns begin with in what delta-rs tells of files."""
_MOST_APART = 0.8
"""Of a file whose rows lie in no more than this part of its row groups, these are read, and not all of it."""
_MOST_VALUES = 64
"""Of a condition with more values it is not kept which rows satisfy it: it will hardly come again."""


class ColumnReader(Protocol):
    """Reads columns of the files of tables."""

    def columns(
        self, table: str, file: Mapping[str, Any], columns: Sequence[str], schema: pa.Schema, part: Part | None
    ) -> dict[str, pa.ChunkedArray]:
        """Return columns of a file."""

    def count(self, table: str, file: Mapping[str, Any], part: Part | None) -> int:
        """Return how many rows a file has."""

    def row_groups(self, table: str, file: Mapping[str, Any]) -> pa.Table | None:
        """Return what `describe_groups` tells of a file by key; None where all of its rows are in memory."""

    def judged(
        self, table: str, path: str, part: Part | None, condition: Condition, judge: Callable[[], NDArray[np.bool_]]
    ) -> NDArray[np.bool_]:
        """Return which rows of a file satisfy a condition, judged where that is not known yet."""


class FileColumns:
    """What is read of one file: only the columns that are asked for, those of conditions first.

    Parameters
    ----------
    reader, table, file
        Reads the file, of those of a table, as `describe_files` tells of it.
    schema
        Of the table.
    part
        As of `columns_of_file`.
    """

    def __init__(
        self, reader: ColumnReader, table: str, file: Mapping[str, Any], schema: pa.Schema, part: Part | None = None
    ) -> None:
        self._reader, self._table, self._file, self._schema = reader, table, file, schema
        self._part = part
        self._columns: dict[str, pa.ChunkedArray] = {}

    def holding(self, where: Sequence[Condition]) -> pa.Array | None:
        """The numbers of the rows that satisfy all conditions; None: all of them."""
        named = [condition.column for condition in where]
        return _numbers([self._truth(condition, named) for condition in where])

    def _truth(self, condition: Condition, together: Sequence[str]) -> NDArray[np.bool_]:
        """Which rows satisfy a condition; `together`: as of `_column`."""

        def judge() -> NDArray[np.bool_]:
            return truth(self._column(condition.column, together), condition)

        # Bounds move with each batch, and are quickly judged; names stay, and each has to be looked at.
        if condition.operator == "in" and len(condition.value) <= _MOST_VALUES:
            return self._reader.judged(self._table, self._file["path"], self._part, condition, judge)
        return judge()

    def rows(self, numbers: pa.Array | None, schema: pa.Schema) -> pa.Table:
        """Some columns of rows of these numbers, which ascend, or of all."""
        if numbers is not None and self._is_unread(schema.names):
            apart = self._apart(numbers.to_numpy())
            if apart is not None:
                return apart[0].rows(apart[1], schema)
        found = [_take(self._column(field.name, schema.names), numbers, field.type) for field in schema]
        return pa.Table.from_arrays(found, schema=schema)

    def _is_unread(self, names: Sequence[str]) -> bool:
        return any(name not in self._columns and f"{OF_PARTITION}{name}" not in self._file for name in names)

    def _apart(self, numbers: NDArray[np.int64]) -> tuple[FileColumns, pa.Array] | None:
        """What is read of the row groups that rows of these numbers are of, and their numbers there.

        None where the file does not lie by key, or so many are wanted that to read all of it costs no more.
        """
        if self._part is not None or not lies_by_key(self._file["path"]):
            return None
        groups = self._reader.row_groups(self._table, self._file)
        if groups is None:
            return None
        sizes = groups["rows"].to_numpy()
        ends = np.cumsum(sizes)
        wanted, of = np.unique(np.searchsorted(ends, numbers, "right"), return_inverse=True)
        if len(wanted) > _MOST_APART * len(ends):
            return None
        begins, counts = (ends - sizes)[wanted], sizes[wanted]
        part = FileColumns(self._reader, self._table, self._file, self._schema, Part(groups=tuple(wanted.tolist())))
        for name, column in self._columns.items():
            pieces = [column.slice(*place) for place in zip(begins.tolist(), counts.tolist(), strict=True)]
            part._columns[name] = pa.chunked_array([chunk for piece in pieces for chunk in piece.chunks])
        return part, pa.array(numbers - (begins - (np.cumsum(counts) - counts))[of])

    def _column(self, name: str, together: Sequence[str]) -> pa.ChunkedArray:
        """A column; where the file has to be opened for it, the others of `together` are read as well."""
        if name not in self._columns:
            partition = f"{OF_PARTITION}{name}"
            if partition in self._file:
                count = self._reader.count(self._table, self._file, self._part)
                value = pa.scalar(self._file[partition], self._schema.field(name).type)
                self._columns[name] = pa.chunked_array([pa.repeat(value, count)])
            else:
                stored = [other for other in dict.fromkeys(together) if f"{OF_PARTITION}{other}" not in self._file]
                wanted = [other for other in stored if other not in self._columns]
                self._columns |= self._reader.columns(self._table, self._file, wanted, self._schema, self._part)
        return self._columns[name]


def describe_files(files: pa.Table) -> list[dict[str, Any]]:
    """What the reading of each file needs of what the log tells of it."""
    told = [name for name in files.column_names if name in _TOLD or name.startswith(OF_PARTITION)]
    return files.select(told).to_pylist()  # type: ignore[no-any-return]


def holding(columns: Sequence[pa.ChunkedArray], where: Sequence[Condition]) -> pa.Array | None:
    """The numbers of the rows whose columns, one for each condition, satisfy all of them; None: all rows."""
    return _numbers([truth(column, each) for column, each in zip(columns, where, strict=True)])


def _numbers(truths: Sequence[NDArray[np.bool_]]) -> pa.Array | None:
    """The numbers of the rows of which all is true; None: of all rows."""
    if not truths:
        return None
    keep = np.logical_and.reduce(truths)
    return None if keep.all() else pa.array(np.flatnonzero(keep))


def in_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Some columns of all rows of a file, NULL where it was written before they came."""
    if {*schema.names} <= {*rows.column_names}:
        selected = rows.select(schema.names)
        return selected if selected.schema.equals(schema) else selected.cast(schema)
    return in_schema(rows, schema)


def _take(column: pa.ChunkedArray, rows: pa.Array | None, type_: pa.DataType) -> pa.ChunkedArray:
    """Some rows of a column, or all, in a type: as texts, or as numbers of a dictionary."""
    found = column if rows is None else column.take(rows)
    return found if found.type == type_ else found.cast(type_)

"""How functions read state in the driver's process: rows of Delta tables as Arrow, by conditions on single columns."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

import pyarrow as pa

Fold = Callable[[pa.Table], pa.Table]
"""Makes fewer rows of rows that say the same to whoever asks; what it made may be folded again, with others."""
Made = TypeVar("Made")
Operator = Literal["=", "in", "in ranges", ">=", "<=", "null or >"]


@dataclass(frozen=True)
class Condition:
    """A condition on one column.

    Attributes
    ----------
    column
        Its name.
    operator
        ``null or >`` holds where the column is NULL or greater than the value.
    value
        A number, a text or a moment in microseconds; of ``in``, a tuple of them; of ``in ranges``, of pairs of them,
        bounds that are both included, ascending and apart from each other.
    """

    column: str
    operator: Operator
    value: Any


@dataclass(frozen=True)
class ListedFiles:
    """What a process needs to read the rows of a table for itself, whoever looked into the log.

    Attributes
    ----------
    location, storage_options
        Of the database.
    table
        Plain name.
    schema
        All columns of the table.
    files
        A row for each file that may hold rows that are wanted, as delta-rs flattens what the log says of it.
    """

    location: str
    storage_options: tuple[tuple[str, str], ...]
    table: str
    schema: pa.Schema
    files: pa.Table
    buckets: tuple[int, ...] = ()
    """Of files by key, those of which rows are read, see `layout`; none: all."""
    coded: tuple[str, ...] = ()
    """Columns of texts that are given as numbers of a dictionary."""


class StateReader(Protocol):
    """Reads a database's Delta tables, in the version that is current when it is asked."""

    @property
    def on_disk(self) -> bool:
        """Whether it reads from a local disk, which may lose commits, and where a version is looked up at once."""

    def version(self, table: str) -> int:
        """Return the number of a table's current version; what was read of an equal one is the same."""

    def identity(self, table: str) -> Hashable:
        """Return what tells a table's current version from any other, also of a table that was there before it."""

    def size(
        self, table: str, where: Sequence[Condition] = (), columns: Sequence[str] = (), few: int | None = None
    ) -> int:
        """Return the bytes of the files that may hold rows which satisfy all conditions, before any row is read.

        Of some columns alone it is about what they take, by the footer of one file; of `few` rows, where no more
        satisfy all conditions, about what has to be read for them.
        """

    def rows(
        self, table: str, columns: Sequence[str], where: Sequence[Condition] = (), fold: Fold | None = None
    ) -> pa.Table:
        """Return columns of the rows that satisfy all conditions, in any order; moments are in UTC.

        With `fold`, what it makes of them, or of some of them, or the rows as they are.
        """

    def list_files(self, table: str, where: Sequence[Condition] = ()) -> ListedFiles | None:
        """Return the files that may hold rows which satisfy all conditions; None where only Spark can read them."""

    def once(self, table: str, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what is made of a table's rows, once for a version where that can be told; nobody may change it."""


def among(column: str, values: Sequence[Any]) -> Condition:
    """The condition that a column has one of some values."""
    return Condition(column, "in", tuple(values))


def between(column: str, low: Any | None, high: Any | None) -> list[Condition]:
    """The conditions that a column lies within bounds, both included; None: there is no such bound."""
    lower = [] if low is None else [Condition(column, ">=", low)]
    return lower if high is None else [*lower, Condition(column, "<=", high)]


def list_touched(columns: Sequence[str], where: Sequence[Condition]) -> tuple[str, ...]:
    """The columns that are read of rows which satisfy conditions, those of the conditions among them."""
    return tuple(dict.fromkeys([*columns, *(condition.column for condition in where)]))

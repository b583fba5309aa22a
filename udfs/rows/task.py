"""What a task does with rows whose partitions are in order: it finds the matches and the values of their measures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.arrays import IntArray
from patternlake.udfs.errors import ArgumentError, shorten
from patternlake.udfs.measures.translation import AggregateAtom, Atom
from patternlake.udfs.measures.values import LISTS, AtomValues, rows_shown
from patternlake.udfs.record_batches import ROWS_AT_ONCE
from patternlake.udfs.rows.kernel_columns import KernelColumn, encode_columns
from patternlake.udfs.rows.matches import TooManyStepsError, match_rows
from patternlake.udfs.rows.query import RowPattern

SIZE = "__size"
"""Column of the task's rows: of the first row of a partition how many it has, NULL of the others."""


@dataclass(frozen=True)
class Limits:
    """How much a task may take, and the settings that say so.

    Attributes
    ----------
    partition_bytes
        Of the rows of a partition that are handed to a task.
    steps
        Of the search in a partition.
    rows
        Of all matches of some partitions that are searched together.
    settings
        The settings' names, in this order.
    """

    partition_bytes: int
    steps: int
    rows: int
    settings: tuple[str, str, str]


@dataclass(frozen=True)
class RowsTask:
    """What a task is told.

    Attributes
    ----------
    pattern
        The program and the conditions that look at the match.
    holding
        By variables the column that says where the row's own part of a condition holds; None: everywhere.
    kernel_columns
        What the conditions compare, with the column of each.
    columns
        By the expressions of measures, the column of each.
    shown
        By the names of the answer's columns, those that are handed on as they are.
    shown_once
        The same of columns that are the same in a partition, whose first row alone may have them.
    atoms
        By the names of the answer's columns, what measures are made of and is computed here.
    limits
        How much it may take.
    folded
        Aggregates that Spark computes.
    folded_columns
        By the names that these use, the columns.
    """

    pattern: RowPattern
    holding: tuple[str | None, ...]
    kernel_columns: tuple[tuple[KernelColumn, str], ...]
    columns: dict[str, str]
    shown: dict[str, str]
    atoms: dict[str, Atom]
    limits: Limits
    shown_once: dict[str, str] = field(default_factory=dict)
    folded: tuple[AggregateAtom, ...] = ()
    folded_columns: dict[str, str] = field(default_factory=dict)

    def portions(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
        """Whole partitions, some hundred thousand rows at a time.

        Raises
        ------
        ArgumentError
            A partition is larger than a task may hold.
        """
        held: list[pa.RecordBatch] = []
        count = number = 0
        for batch in batches:
            begins = _find_begins(batch.column(SIZE))
            self._check_sizes(batch)
            held.append(batch)
            count += batch.num_rows
            if count < ROWS_AT_ONCE or not len(begins) or (len(held) == 1 and not begins[-1]):
                continue
            cut = int(begins[-1])
            held[-1] = batch.slice(0, cut)
            yield number, pa.Table.from_batches(held)
            held, number = [batch.slice(cut)], number + 1
            count = batch.num_rows - cut
        if count:
            yield number, pa.Table.from_batches(held)

    def _check_sizes(self, batch: pa.RecordBatch) -> None:
        width = batch.nbytes / max(batch.num_rows, 1)
        size = pc.max(batch.column(SIZE)).as_py() or 0
        most = self.limits.partition_bytes
        if size * width > most:
            raise ArgumentError(
                f"a partition has {size:,} rows, about {size * width / 1e6:,.0f} MB for one task, which "
                f"may hold {most / 1e6:,.0f} MB ({self.limits.settings[0]}); partition by more columns, take fewer "
                "columns or rows, or raise the setting"
            )

    def answers(self, rows: pa.Table) -> pa.Table:
        """The answer's rows for some partitions: what is handed on, a column for each atom, and what Spark folds.

        Raises
        ------
        PatternError
            A match cannot be skipped as AFTER MATCH says.
        ArgumentError
            The search takes more steps, or the matches have more rows, than is allowed.
        """
        rows = rows.combine_chunks()
        count, clause = rows.num_rows, self.pattern.clause
        begins = _find_begins(rows[SIZE].chunk(0))
        partitions = np.append(begins, count).astype(np.int64)
        holding = np.full((len(self.holding), count), True)
        for number, name in enumerate(self.holding):
            if name is not None:
                holding[number] = rows[name].fill_null(False).to_numpy()
        encoded = encode_columns(
            [column for column, _ in self.kernel_columns], [rows[name] for _, name in self.kernel_columns]
        )
        try:
            found = match_rows(
                self.pattern, holding, partitions, encoded, most_steps=self.limits.steps, most_rows=self.limits.rows
            )
        except TooManyStepsError as error:
            steps, most = self.limits.settings[1:]
            raise ArgumentError(f"{error} ({steps} = {self.limits.steps}, {most} = {self.limits.rows})") from None
        shown = rows_shown(found, clause)
        values = AtomValues(clause, found, partitions, {sql: rows[name] for sql, name in self.columns.items()}, shown)
        take = pa.array(shown.rows, pa.int64())
        first = pa.array(begins[np.searchsorted(begins, shown.rows, "right") - 1])
        made = {name: rows[column].take(first) for name, column in self.shown_once.items()}
        made |= {name: rows[column].take(take) for name, column in self.shown.items()}
        made |= {name: values.of(atom) for name, atom in self.atoms.items()}
        if self.folded:
            self._check_folded(values)
            made[LISTS] = values.lists_of(self.folded, {name: rows[at] for name, at in self.folded_columns.items()})
        return pa.table(made)

    def _check_folded(self, values: AtomValues) -> None:
        """Refuse what would list more rows than matches may have: RUNNING, each row lists those before."""
        counts = [values.count_folded(atom) for atom in self.folded]
        if sum(counts) > self.limits.rows:
            atom = self.folded[int(np.argmax(counts))]
            raise ArgumentError(
                f"{shorten(atom.sql)} is computed by Spark, which takes {max(counts):,} rows for it, those of each row "
                f"that is shown, and {self.limits.rows:,} at most are handed on together ({self.limits.settings[2]}); "
                "show ONE ROW PER MATCH, or write it over integers, doubles or sums, which are counted on"
            )


def _find_begins(sizes: pa.Array) -> IntArray:
    """The first rows of partitions, by their `SIZE`."""
    return np.flatnonzero(sizes.is_valid().to_numpy(zero_copy_only=False))

"""What a batch of `predict` has made of its events: kept by Spark, or in columns that the driver holds or reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from patternlake.delta_tables.batches import Batch
from patternlake.jobs import few, spilling
from patternlake.udfs.machines.state import (
    BATCH_SCHEMA,
    COUNTS,
    INSTANCE,
    INSTANCE_COLUMNS,
    MATCH,
    TOTALS_COLUMNS,
    WAITS,
)

INSTANCES, MATCHES = "machine_instances", "subscription_matches"

FOUND_SCHEMA = BATCH_SCHEMA.append(pa.field("partitioned_by", pa.string()))
"""What `Batches` makes, with the PARTITION BY of its pass."""
Rows: TypeAlias = pa.Table | Sequence[Callable[[], pa.Table]]
"""Rows of a table: few, or portion by portion."""

_MATCH = ("subscription", "last_time", "first_position", "last_position", "first_time", "part", "bindings")
_INSTANCE = ("partitioned_by", "part", *INSTANCE_COLUMNS, "age")


class Found(Protocol):
    """Rows of `FOUND_SCHEMA`, ``group`` counted through all passes."""

    def counts(self) -> dict[str, int]:
        """How many rows there are by kind."""

    def totals(self) -> Iterator[Mapping[str, Any]]:
        """The rows of counts: ``group`` and `TOTALS_COLUMNS`."""

    def waits(self) -> Iterator[Mapping[str, Any]]:
        """The rows of times between events: ``group`` and ``keys``."""

    def matches(self) -> DataFrame | Rows:
        """Rows of `subscription_matches`."""

    def instances(self) -> DataFrame | Rows:
        """Rows of `machine_instances`."""

    def advanced(self, roots: Sequence[str]) -> DataFrame | pa.Array:
        """The partitions that have an instance in one of some states: as a column ``part``, distinct, or as values."""


class KeptFound:
    """Rows that Spark keeps.

    Parameters
    ----------
    batch
        The batch that writes them.
    rows
        The rows.
    """

    def __init__(self, batch: Batch, rows: DataFrame) -> None:
        self._batch, self._rows = batch, rows

    def counts(self) -> dict[str, int]:
        """As `Found` has it."""
        return {row["kind"]: row["count"] for row in self._rows.groupBy("kind").count().collect()}

    def totals(self) -> Iterator[Mapping[str, Any]]:
        """As `Found` has it."""
        for row in self._rows.where(F.col("kind") == COUNTS).select("group", *TOTALS_COLUMNS).toLocalIterator():
            yield row.asDict()

    def waits(self) -> Iterator[Mapping[str, Any]]:
        """As `Found` has it."""
        for row in self._rows.where(F.col("kind") == WAITS).select("group", "keys").toLocalIterator():
            yield row.asDict()

    def matches(self) -> DataFrame:
        """As `Found` has it."""
        return self._rows.where(F.col("kind") == MATCH).select(*_MATCH, *self._batch.marks(MATCHES))

    def instances(self) -> DataFrame:
        """As `Found` has it."""
        return self._rows.where(F.col("kind") == INSTANCE).select(*_INSTANCE, *self._batch.marks(INSTANCES))

    def advanced(self, roots: Sequence[str]) -> DataFrame:
        """As `Found` has it, of what was written."""
        return _find_advanced(self._batch, roots)


class FoundHere:
    """Rows that the driver holds, or reads from files.

    Parameters
    ----------
    batch
        The batch that writes them.
    rows
        The rows, in `FOUND_SCHEMA`.
    """

    def __init__(self, batch: Batch, rows: pa.Table) -> None:
        self._batch, self._rows = batch, rows

    def counts(self) -> dict[str, int]:
        """As `Found` has it."""
        return {row["values"]: row["counts"] for row in self._rows["kind"].value_counts().to_pylist()}

    def totals(self) -> Iterator[Mapping[str, Any]]:
        """As `Found` has it."""
        yield from self._of(COUNTS, ["group", *TOTALS_COLUMNS]).to_pylist()

    def waits(self) -> Iterator[Mapping[str, Any]]:
        """As `Found` has it."""
        yield from self._of(WAITS, ["group", "keys"]).to_pylist()

    def matches(self) -> Rows:
        """As `Found` has it."""
        return self._table_rows(MATCHES, MATCH, _MATCH)

    def instances(self) -> Rows:
        """As `Found` has it."""
        return self._table_rows(INSTANCES, INSTANCE, _INSTANCE)

    def advanced(self, roots: Sequence[str]) -> DataFrame | pa.Array:
        """As `Found` has it."""
        if self._rows.num_rows > few.FEW_EVENTS:
            return _find_advanced(self._batch, roots)
        mine = self._of(INSTANCE, ["state_id", "part"])
        return mine.filter(pc.is_in(mine["state_id"], pa.array(roots, pa.string())))["part"].combine_chunks()

    def _table_rows(self, table: str, kind: str, columns: Sequence[str]) -> Rows:
        def made(rows: pa.Table) -> pa.Table:
            chosen = rows.select(list(columns)).filter(pc.equal(rows["kind"], kind))
            return self._batch.marked(table, chosen)

        few_rows = self._rows.num_rows <= few.FEW_EVENTS
        return made(self._rows) if few_rows else spilling.portions(self._rows, made)

    def _of(self, kind: str, columns: Sequence[str]) -> pa.Table:
        return self._rows.select(list(columns)).filter(pc.equal(self._rows["kind"], kind))


def _find_advanced(batch: Batch, roots: Sequence[str]) -> DataFrame:
    """The partitions with an instance that the batch has written in one of some states."""
    return batch.written(INSTANCES).where(F.col("state_id").isin(list(roots))).select("part").distinct()

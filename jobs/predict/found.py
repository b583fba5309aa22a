"""What a batch of `predict` has made of its events: on the executors' disks, or of few events in the driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from patternlake.delta_tables.batches import Batch
from patternlake.udfs.machines.state import COUNTS, INSTANCE, INSTANCE_COLUMNS, MATCH, TOTALS_COLUMNS, WAITS

INSTANCES, MATCHES = "machine_instances", "subscription_matches"

_MATCH = ("subscription", "last_time", "first_position", "last_position", "first_time", "part", "bindings")
_INSTANCE = ("partitioned_by", "part", *INSTANCE_COLUMNS, "age")


class Found(Protocol):
    """Rows of `state.BATCH_SCHEMA` with ``partitioned_by``, and ``group`` counted through all passes."""

    def counts(self) -> dict[str, int]:
        """How many rows there are by kind."""

    def totals(self) -> Iterator[Mapping[str, Any]]:
        """The rows of counts: ``group`` and `TOTALS_COLUMNS`."""

    def waits(self) -> Iterator[Mapping[str, Any]]:
        """The rows of times between events: ``group`` and ``keys``."""

    def matches(self) -> DataFrame | pa.Table:
        """Rows of `subscription_matches`."""

    def instances(self) -> DataFrame | pa.Table:
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
        return self._batch.written(INSTANCES).where(F.col("state_id").isin(list(roots))).select("part").distinct()


class FewFound:
    """Rows that the driver holds.

    Parameters
    ----------
    batch
        The batch that writes them.
    rows
        The rows.
    """

    def __init__(self, batch: Batch, rows: pa.Table) -> None:
        self._batch, self._rows = batch, rows

    def counts(self) -> dict[str, int]:
        """As `Found` has it."""
        return {row["values"]: row["counts"] for row in self._rows["kind"].value_counts().to_pylist()}

    def totals(self) -> Iterator[Mapping[str, Any]]:
        """As `Found` has it."""
        yield from self._of(COUNTS).select(["group", *TOTALS_COLUMNS]).to_pylist()

    def waits(self) -> Iterator[Mapping[str, Any]]:
        """As `Found` has it."""
        yield from self._of(WAITS).select(["group", "keys"]).to_pylist()

    def matches(self) -> pa.Table:
        """As `Found` has it."""
        return self._batch.marked(MATCHES, self._of(MATCH).select(list(_MATCH)))

    def instances(self) -> pa.Table:
        """As `Found` has it."""
        return self._batch.marked(INSTANCES, self._of(INSTANCE).select(list(_INSTANCE)))

    def advanced(self, roots: Sequence[str]) -> pa.Array:
        """As `Found` has it."""
        mine = self._of(INSTANCE)
        return mine.filter(pc.is_in(mine["state_id"], pa.array(roots, pa.string())))["part"].combine_chunks()

    def _of(self, kind: str) -> pa.Table:
        return self._rows.filter(pc.equal(self._rows["kind"], kind))

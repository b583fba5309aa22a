"""Which rows of a state table a publication makes visible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import Column
from pyspark.sql import functions as F

from patternlake.delta_tables.quoting import literal

if TYPE_CHECKING:
    from patternlake.delta_tables.table import Table


def of_object(table: Table, stream_id: int, object_id: int) -> Column:
    """Build the condition on the rows of one object, of any batch."""
    found = F.col("stream_id") == F.lit(stream_id)
    return found & (F.col(table.object_column) == F.lit(object_id)) if table.object_column else found


class Batches(Protocol):
    """The batches of an object that count: a publication has them, and a batch that is going to be one."""

    @property
    def stream_id(self) -> int:
        """Number of the stream."""

    @property
    def object_id(self) -> int:
        """Number of the object."""

    @property
    def base_batch(self) -> int:
        """First batch whose rows count."""

    @property
    def batch_id(self) -> int:
        """The last one."""

    @property
    def source(self) -> Mapping[str, Any]:
        """What was read."""


def first_batch(table: Table, source: Mapping[str, Any], base_batch: int) -> int:
    """The first batch whose rows of a table count, by what a publication says it has read, and its base."""
    return int(source.get(table.counted_from, base_batch)) if table.counted_from else base_batch


def visible(table: Table, publication: Batches) -> Column:
    """Build the condition on a table's rows that a publication makes visible, or is going to; its stream included."""
    written = "from_batch" if table.changing else "batch_id"
    shown = of_object(table, publication.stream_id, publication.object_id)
    first = first_batch(table, publication.source, publication.base_batch)
    shown = shown & F.col(written).between(first, publication.batch_id)
    if table.changing:
        shown = shown & (F.col("to_batch").isNull() | (F.col("to_batch") > publication.batch_id))
    return shown


def visible_text(table: Table, rows: str, publication: str) -> str:
    """Write the same condition as SQL, given the two aliases."""
    written = "from_batch" if table.changing else "batch_id"
    first = f"{publication}.base_batch"
    if table.counted_from:
        told = f"get_json_object({publication}.source, {literal(f'$.{table.counted_from}')})"
        first = f"coalesce(CAST({told} AS BIGINT), {first})"
    text = f"{rows}.stream_id = {publication}.stream_id AND {rows}.{written} BETWEEN {first} AND {publication}.batch_id"
    if table.object_column:
        text += f" AND {rows}.{table.object_column} = {publication}.object_id"
    if table.changing:
        text += f" AND ({rows}.to_batch IS NULL OR {rows}.to_batch > {publication}.batch_id)"
    return text

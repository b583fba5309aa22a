"""Which rows of a state table a publication makes visible: one list of conditions, for whoever reads it.

`StateReader` takes conditions as they are, and so does `file_rows` of rows in Arrow; `spark_reader.all_of` makes a
Column of them, and `text_of` SQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import Column

from patternlake.delta_tables.reading.spark_reader import all_of
from patternlake.delta_tables.reading.state_reader import Condition, between
from patternlake.delta_tables.schema.quoting import literal

if TYPE_CHECKING:
    from patternlake.delta_tables.schema.table import Table


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


def of_object(table: Table, stream_id: Any, object_id: Any) -> list[Condition]:
    """List the conditions on the rows of one object, of any batch."""
    mine = [Condition("stream_id", "=", stream_id)]
    return [*mine, Condition(table.object_column, "=", object_id)] if table.object_column else mine


def visible_rows(table: Table, stream_id: Any, object_id: Any, first: Any, batch: Any) -> list[Condition]:
    """List the conditions on the rows of an object that count at a batch, if those of a first batch and later ones do.

    Rows that are written once count from their batch on, rows that are closed until the batch that closes them.
    """
    written = "from_batch" if table.changing else "batch_id"
    shown = [*of_object(table, stream_id, object_id), *between(written, first, batch)]
    return [*shown, Condition("to_batch", "null or >", batch)] if table.changing else shown


def published_rows(table: Table, publication: Batches, after: int | None = None) -> list[Condition]:
    """List the conditions on the rows that a publication makes visible, or is going to.

    With `after`, those that later batches than this one wrote.
    """
    first = first_batch(table, publication.source, publication.base_batch)
    first = first if after is None else max(first, after + 1)
    return visible_rows(table, publication.stream_id, publication.object_id, first, publication.batch_id)


def visible(table: Table, publication: Batches) -> Column:
    """Build the same as a Column."""
    return all_of(published_rows(table, publication), table.moments)


def visible_text(table: Table, rows: str, publication: str) -> str:
    """Write the same as SQL, given the two aliases."""
    first = f"{publication}.base_batch"
    if table.counted_from:
        told = f"get_json_object({publication}.source, {literal(f'$.{table.counted_from}')})"
        first = f"coalesce(CAST({told} AS BIGINT), {first})"
    stream, object, batch = (f"{publication}.{name}" for name in ("stream_id", "object_id", "batch_id"))
    return text_of(visible_rows(table, stream, object, first, batch), rows)


def text_of(where: Sequence[Condition], rows: str) -> str:
    """Write conditions as SQL over the columns of an alias; their values are SQL."""

    def text(one: Condition) -> str:
        column = f"{rows}.{one.column}"
        if one.operator == "null or >":
            return f"({column} IS NULL OR {column} > {one.value})"
        return f"{column} {one.operator} {one.value}"

    return " AND ".join(map(text, where))

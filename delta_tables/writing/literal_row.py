"""One row of a state table, which the driver holds: no Spark job, no Python worker, no pasted text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from patternlake.delta_tables.schema import timestamps
from patternlake.delta_tables.schema.table import Table
from patternlake.delta_tables.writing.arrow_rows import FewRows

if TYPE_CHECKING:
    from patternlake.delta_tables.committing.database import Database


def literal_row(database: Database, table: Table, values: Mapping[str, Any]) -> FewRows:
    """Build one row, typed as the table is.

    Parameters
    ----------
    database, table
        Where the row will be, and the table that gives the types.
    values
        One value per column of the table: None, texts, numbers, moments, and mappings of texts.
    """
    columns = {column.name: _value(values[column.name], column.arrow) for column in table.columns}
    return FewRows(pa.table(columns), database)


def _value(value: Any, type_: pa.DataType) -> pa.Array:
    if isinstance(value, datetime):
        return pa.array([timestamps.to_micros(value)], pa.int64()).cast(type_)
    return pa.array([list(value.items()) if isinstance(value, Mapping) else value], type_)

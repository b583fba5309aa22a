"""Rows of earlier batches that a batch ends, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from patternlake.delta_tables.committing.direct_commits import TableFolder
from patternlake.delta_tables.reading.state_reader import Condition
from patternlake.delta_tables.reading.visibility import published_rows
from patternlake.delta_tables.schema.table import Table
from patternlake.delta_tables.tables.intents import Intent
from patternlake.delta_tables.writing import direct_rewriting

FEW_BYTES = 64 << 20
"""Files of up to so many bytes are read and written anew in the driver's process; of more, Spark's tasks do it."""


def closing(
    table: Table,
    intent: Intent,
    any_of: Sequence[Sequence[Condition]],
    only: Callable[[pa.Table], NDArray[np.bool_]] | None = None,
) -> Callable[[TableFolder], bool]:
    """What ends rows of earlier batches.

    Parameters
    ----------
    table
        With columns from_batch and to_batch.
    intent
        Of the batch, whose object's rows are meant.
    any_of, only
        The rows: those that satisfy all conditions of one of these lists, and of them those for which `only` says so.

    Returns
    -------
    callable
        Given the table, ends the rows, or tells by False that they may be more than `FEW_BYTES`.
    """
    before = published_rows(table, replace(intent, batch_id=intent.batch_id - 1))

    def still_open(rows: pa.Table) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = rows["to_batch"].is_null().to_numpy()
        return found if only is None else found & only(rows)

    def close(given: TableFolder) -> bool:
        wanted = [[*before, *where] for where in any_of]
        values = {"to_batch": intent.batch_id}
        return direct_rewriting.update(
            given, wanted, values, only=still_open, most_bytes=FEW_BYTES, layout=table.layout
        )

    return close

"""Rows of earlier batches that a batch ends, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from patternlake.delta_tables import direct_rewriting
from patternlake.delta_tables.state_reader import Condition, between
from patternlake.delta_tables.table import Table
from patternlake.delta_tables.tables.intents import Intent
from patternlake.delta_tables.visibility import first_batch

FEW_BYTES = 64 << 20
"""Files of up to so many bytes are read and written anew in the driver's process; of more, Spark's tasks do it."""


def closing(
    table: Table,
    intent: Intent,
    any_of: Sequence[Sequence[Condition]],
    only: Callable[[pa.Table], NDArray[np.bool_]] | None = None,
) -> Callable[[str], bool]:
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
        Given the table's folder, ends the rows, or tells by False that they may be more than `FEW_BYTES`.
    """
    mine = [
        Condition("stream_id", "=", intent.stream_id),
        *between("from_batch", first_batch(table, intent.source, intent.base_batch), intent.batch_id - 1),
        Condition("to_batch", "null or >", intent.batch_id - 1),
    ]
    if table.object_column:
        mine.append(Condition(table.object_column, "=", intent.object_id))

    def still_open(rows: pa.Table) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = rows["to_batch"].is_null().to_numpy()
        return found if only is None else found & only(rows)

    def close(folder: str) -> bool:
        wanted = [[*mine, *where] for where in any_of]
        values = {"to_batch": intent.batch_id}
        return direct_rewriting.update(
            folder, wanted, values, only=still_open, most_bytes=FEW_BYTES, packed=table.packed
        )

    return close

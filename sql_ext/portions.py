"""What a grouped Python function gets: the rows of a portion, and in one more row the text of the question."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc


def told_apart(text: pa.Array, columns: Mapping[str, pa.Array]) -> tuple[str, dict[str, pa.Array]]:
    """The text of the question, and the columns without its row.

    Parameters
    ----------
    text
        NULL but in one row.
    columns
        Columns of the same rows.
    """
    known = pc.is_valid(text)
    rows = pc.invert(known)
    return text.filter(known)[0].as_py(), {name: column.filter(rows) for name, column in columns.items()}

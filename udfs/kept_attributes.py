"""Attributes of events that a job keeps in its state: a map of texts, as all its objects share a table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.attributes import attribute_of, column_of, is_attribute, write_texts
from patternlake.udfs.measures.event_values import typed_values
from patternlake.udfs.partitions import lists_of

ATTRIBUTES = "attributes"


def keep_attributes(rows: pa.Table) -> pa.Table:
    """Put the map in the place of the columns of attributes."""
    columns = [name for name in rows.column_names if is_attribute(name)]
    count, width = rows.num_rows, len(columns)
    texts = lists_of([write_texts(rows[name].combine_chunks()) for name in columns], count)
    names = pa.array(map(attribute_of, columns), pa.string()).take(pa.array(np.tile(np.arange(width), count)))
    kept = pa.MapArray.from_arrays(texts.offsets, names, texts.values)
    return rows.drop_columns(columns).append_column(ATTRIBUTES, kept)


def read_attributes(rows: pa.Table, types: Mapping[str, str]) -> pa.Table:
    """Put the columns of some attributes, of these types, in the place of the map."""
    if ATTRIBUTES not in rows.column_names:
        return rows
    kept = rows[ATTRIBUTES].combine_chunks()
    for name, type_ in sorted(types.items()):
        values = typed_values(pc.map_lookup(kept, name, "first"), type_)
        rows = rows.append_column(column_of(name, type_), values)
    return rows.drop_columns([ATTRIBUTES])

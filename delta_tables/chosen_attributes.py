"""Some of the attributes of events, in one order: of rows from several tables, each has the same ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.partitions import lists_of


def with_chosen_attributes(events: pa.Table, names: Sequence[str]) -> pa.Table:
    """Events of which the column ``attributes``, if they have it, holds these alone; NULL for what an event has not."""
    if "attributes" not in events.column_names:
        return events
    count, width = events.num_rows, len(names)
    values = [pc.map_lookup(events["attributes"], name, "first").combine_chunks() for name in names]
    texts = lists_of(values, count)
    keys = pa.array(names, pa.string()).take(pa.array(np.tile(np.arange(width), count)))
    column = pa.MapArray.from_arrays(texts.offsets, keys, texts.values)
    return events.set_column(events.column_names.index("attributes"), "attributes", column)

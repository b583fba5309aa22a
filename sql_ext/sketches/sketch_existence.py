"""Whether a pattern occurs, from as few nodes of the sketch as tell it.

The tops say "no" at once, and which segments can take part at all. These are read from the first one on, twice as many
each time, until a match is found: a match among the first segments is one of the stream, for nothing that comes later
changes it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.sql_ext.sketches.sketch_descent import (
    Place,
    descend,
    nodes_below,
    tops_hit,
    tops_taking_part,
    tops_tell,
)
from patternlake.udfs.sketch.reads import SketchReads
from patternlake.udfs.sketch.result import exists

FIRST_SEGMENTS = 8
"""So many are read at first: about as many bytes as a query's planning is worth."""


def anywhere(place: Place, reads: SketchReads) -> bool | None:
    """Whether the pattern of a call occurs; None: only aged, coarse or dropped ranges could hold it.

    Parameters
    ----------
    place
        Where the sketch is.
    reads
        The call.
    """
    request = reads.request
    if not tops_tell(request):
        return exists(request, descend(place, reads)).anywhere
    tops = tops_taking_part(request, tops_hit(place, reads))
    # Neighbours lie in one file, and are read together.
    bucket = pc.divide(tops["segment"], reads.segments_together).to_numpy()
    begins = np.append(np.flatnonzero(np.diff(bucket, prepend=-1)), len(bucket))
    found: list[pa.Array] = []
    begin, count = 0, FIRST_SEGMENTS
    while begin < tops.num_rows:
        behind = int(np.searchsorted(begins, begin + count))
        end = int(begins[min(len(begins) - 1, behind)])
        found.append(nodes_below(place, reads, tops.slice(begin, end - begin)))
        if exists(request, pa.concat_arrays(found)).anywhere:
            return True
        begin, count = end, 2 * count
    return False

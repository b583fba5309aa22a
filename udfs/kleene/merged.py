"""Matches that are kept and matches that are open as one answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from patternlake.udfs.kleene.kernels.bindings import sort_rows
from patternlake.udfs.kleene.request import KleeneRequest
from patternlake.udfs.kleene.result import ROWS
from patternlake.udfs.limits import too_many
from patternlake.udfs.measures.of_matches import kept_columns, with_columns
from patternlake.udfs.partitions import number_partitions, ranks


def merge_matches(request: KleeneRequest, rows: pa.Table) -> pa.Table:
    """Matches in order, numbered and limited.

    Parameters
    ----------
    request
        The request.
    rows
        Rows of `result.MATCHES`, in any order.

    Returns
    -------
    Rows of `result.ROWS`, with what measures need.

    Raises
    ------
    ArgumentError
        A partition has more matches than are asked for.
    """
    rows = rows.combine_chunks()
    codes, shown = number_partitions(rows["part"].combine_chunks())
    if not request.pattern.partition:
        shown = [request.key]
    positions = rows["positions"].combine_chunks()
    operands = pc.list_flatten(rows["operands"].combine_chunks()).to_numpy(zero_copy_only=False).astype(np.int64)
    bound = pc.list_flatten(positions).to_numpy(zero_copy_only=False).astype(np.int64)
    sizes = pc.list_value_length(positions).to_numpy(zero_copy_only=False).astype(np.int64)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
    first = bound[offsets[:-1]]
    order, _ = sort_rows(np.lexsort((first, codes)), codes, offsets, bound, operands)
    codes = codes[order]
    number = ranks(codes) + 1
    counts = np.bincount(codes, minlength=len(shown))
    more = counts > request.max_matches
    if more.any() and not request.truncate:
        raise too_many(int(counts.max()), request.max_matches, complete=False)
    wanted = np.flatnonzero(number <= request.max_matches)
    taken = rows.take(pa.array(order[wanted]))
    own = {
        "match_no": pa.array(number[wanted]),
        "key": pa.array(shown, pa.string()).take(pa.array(codes[wanted])),
        "truncated": pa.array(more[codes[wanted]]),
    }
    columns = [own[field.name] if field.name in own else taken[field.name].cast(field.type) for field in ROWS]
    answer = pa.Table.from_arrays(columns, schema=ROWS)
    measures = request.pattern.measures
    return answer if measures is None else with_columns(answer, kept_columns(measures, taken))

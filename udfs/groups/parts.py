"""One portion of an answer: the groups of some partitions, from their events."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from patternlake.udfs.errors import PatternLakeError
from patternlake.udfs.exact_parts import part, refused
from patternlake.udfs.groups.asking import GroupsAsked
from patternlake.udfs.groups.reading import read
from patternlake.udfs.partitions import partitions

ROW_TYPE = pa.struct(
    [
        ("key", pa.string()),
        ("t_start", pa.int64()),
        ("t_first", pa.int64()),
        ("t_end", pa.int64()),
        ("probability", pa.float64()),
        ("final", pa.bool_()),
    ]
)


def groups_part(question: GroupsAsked, rows: Mapping[str, pa.Array]) -> pa.StructScalar:
    """The groups of one portion.

    Parameters
    ----------
    question
        The question.
    rows
        ``part`` (list of the values that the stream is partitioned by), ``position``, ``time``, ``step``, ``key``,
        ``name``, ``probability``, ``attributes`` of all `events` of some partitions, in any order.

    Returns
    -------
    A `exact_parts.PART_TYPE` with rows of `ROW_TYPE`, by partition and t_first.
    """
    compiled = question.groups.question
    keys, shown = partitions(rows["part"], max(1, len(compiled.partition)))
    try:
        events = read(compiled, question.types, rows)
        found = question.groups.answer(keys, events.steps, events.classes, events.probabilities)
    except PatternLakeError as error:
        return refused(str(error))
    wanted = np.ones(len(found), np.bool_)
    if question.from_step is not None:
        wanted &= found.t_end >= question.from_step
    if question.to_step is not None:
        wanted &= found.t_end <= question.to_step
    columns_found = [
        pa.array(shown, pa.string()).take(pa.array(found.key[wanted])),
        *(pa.array(getattr(found, name)[wanted]) for name in ROW_TYPE.names[1:]),
    ]
    return part(None, int(wanted.sum()), pa.StructArray.from_arrays(columns_found, fields=list(ROW_TYPE)))

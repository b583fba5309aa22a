"""Exact answers about sequences: the events that can matter are read back, and the pattern is matched on them.

The sketch says which events can matter, where that takes fewer bytes than to read them all. What is small is matched in
the driver's process, the rest by Spark's tasks: by key, or in one task.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from patternlake.delta_tables.gathering.gather import Gather
from patternlake.delta_tables.reading.state_reader import Condition, StateReader, list_touched
from patternlake.sql_ext.answering.answers import SPARSE, Dealt, by_tasks, leave_little
from patternlake.sql_ext.answering.event_conditions import event_conditions, in_blocks
from patternlake.sql_ext.declarations.declaration import parse_columns
from patternlake.sql_ext.declarations.measured_rows import found_schema
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.sql_ext.sketches.sketch_descent import Place, descend, shown_in
from patternlake.udfs.attributes import attribute_columns
from patternlake.udfs.blocks import BLOCK_BITS
from patternlake.udfs.errors import ArgumentError
from patternlake.udfs.limits import WHOLE_EVENTS
from patternlake.udfs.partitions import ByPartition, count_portions
from patternlake.udfs.published import NameCount, count_events
from patternlake.udfs.record_batches import columns_of
from patternlake.udfs.sketch.reads import SketchReads
from patternlake.udfs.sketch.request import SketchRequest
from patternlake.udfs.sketch.result import Candidates, candidates, everywhere
from patternlake.udfs.sketch.task import match_exactly
from patternlake.udfs.sketch.windows import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TASK_EVENTS = 100_000
"""Events of one portion of an exact answer of every key, about; the events of a key are never divided."""
_FEW_BYTES = 1 << 20
"""So many bytes of events are read from a store as fast as the log of the sketch, which would say how large it is."""
_BESIDE = 2
"""So many times the sketch's bytes are read where it is asked, about: the events that it names have to be read besides.
Measured for four rare names of 10^7 events: 38 MB of events take 0.55 times what 34 MB of a sketch and these do."""
_ALWAYS = ("position", "time", "name")
COLUMNS = parse_columns(
    "match_no BIGINT, key STRING, first_position BIGINT, last_position BIGINT, first_time TIMESTAMP, "
    "last_time TIMESTAMP, steps ARRAY<STRUCT<operand: STRING, from_position: BIGINT, to_position: BIGINT>>, "
    "level INT, exact BOOLEAN, fp_bound DOUBLE, truncated BOOLEAN"
)
"""Of the rows of `match_seq`, by name: their Spark types."""


def events_that_matter(place: Place, reads: SketchReads, counts: Sequence[NameCount] = ()) -> Candidates:
    """What an exact answer reads back: what the sketch names, or everything where that takes fewer bytes.

    Parameters
    ----------
    place
        Where the sketch and the events are.
    reads
        A call with verify.
    counts
        How often names occur, where that is known: of events that are few, little is read.
    """
    request, wanted = reads.request, everywhere(reads.request)
    few = _about(request, wanted, counts) if counts else None
    if request.every_key or (request.one_key and not request.keyed):
        return wanted
    if _cheaper_than_the_sketch(place, reads, wanted, few):
        return wanted
    return candidates(request, descend(place, reads))


def matched_here(reader: StateReader, reads: SketchReads, wanted: Candidates) -> pa.Table | None:
    """The answer from the events that matter, in this process; None where these are more than it may hold at once."""
    request = reads.request
    rows = reader.rows("events", columns_read(request), conditions(reads, wanted))
    if is_undivided(request) and rows.num_rows > WHOLE_EVENTS:
        return None
    return pa.concat_tables(match_exactly(request, columns_of(rows)))


def conditions(reads: SketchReads, wanted: Candidates, request: SketchRequest | None = None) -> list[Condition]:
    """Those on the events that an exact answer reads; of another request than the call's own, if one is given."""
    request = reads.request if request is None else request
    names = wanted.names if request.tokens_are_names else None
    where = event_conditions(reads.events, names=names)
    where += in_blocks(wanted.blocks)
    if request.one_key:
        where.append(Condition("key", "=", request.key))
    return where


def exact_rows(lake: Lake, reads: SketchReads, wanted: Candidates, counts: Sequence[NameCount]) -> DataFrame | pa.Table:
    """The answer from the events that can matter, as rows of `match_seq`, with what measures need."""
    request, where = reads.request, conditions(reads, wanted)
    about = _about(request, wanted, counts)
    most = SPARSE if leave_little(about, request.events) else 1
    columns = list_touched(columns_read(request), where)
    if about <= WHOLE_EVENTS and lake.small("events", where, columns, about, most=most):
        answer = matched_here(lake.reader, reads, wanted)
        if answer is not None:
            return answer
    if is_undivided(request) and about > WHOLE_EVENTS:
        raise too_many_events(about)
    portions = count_portions(about, TASK_EVENTS) if request.every_key else 1
    partition = ("key",) if request.every_key else ()
    gathered = Gather(
        "events",
        columns_read(request),
        tuple(where),
        partition,
        make=partial(_that_matter, request, wanted),
        coded=("name",),
    )
    work = Dealt([ByPartition(portions)], portions, lambda _, rows: match_exactly(request, columns_of(rows[0])))
    return by_tasks(lake, [gathered], work, found_schema(COLUMNS, request.pattern.measures))


def _that_matter(request: SketchRequest, wanted: Candidates, rows: pa.Table) -> pa.Table:
    """Events, of other tokens than names those that have one of the pattern's."""
    if wanted.names is None or request.tokens_are_names:
        return rows
    tokens = rows["tokens"].combine_chunks()
    named = pc.is_in(tokens.flatten(), pa.array(wanted.names, pa.string()))
    return rows.take(pc.unique(pc.list_parent_indices(tokens).filter(named)))


def is_undivided(request: SketchRequest) -> bool:
    """Whether nothing divides the events of a question, so that one task has to hold those that matter."""
    return not request.every_key and not request.one_key


def too_many_events(about: int | None = None) -> ArgumentError:
    """The error of a question whose events one task cannot hold; of a task, which knows that there are more."""
    count = f"more than {WHOLE_EVENTS:,}" if about is None else f"about {about:,}"
    return ArgumentError(
        f"{count} events carry names of the pattern in the parts that can hold a match, and without "
        f"PARTITION BY one task would hold them all, {WHOLE_EVENTS:,} at most; partition the pattern, narrow the "
        "question with key, from_position, to_position, from_time or to_time, or ask the sketch alone with "
        "verify => false"
    )


def _cheaper_than_the_sketch(lake: Place, reads: SketchReads, wanted: Candidates, few: int | None) -> bool:
    """Whether to read every event takes less than to ask the sketch which of them can matter, and to read these."""
    if reads.request.one_key or reads.request.window != Window():
        return False
    where = conditions(reads, wanted)
    columns = list_touched(columns_read(reads.request), where)
    if not lake.small("events", where, columns, few):
        return False
    size = lake.reader.size("events", where, columns, few)
    if size <= _FEW_BYTES and not lake.reader.on_disk:
        return True
    return size <= _BESIDE * lake.reader.size("sketch_nodes", shown_in(reads))


def columns_read(request: SketchRequest) -> tuple[str, ...]:
    """The columns of events that are read: attributes and keys are most of an event's bytes."""
    read = request.pattern.columns | request.pattern.measured
    built_in = [name for name in ("step", "probability") if name in read]
    key = ["key"] if request.every_key or "key" in read else []
    tokens = [] if request.tokens_are_names else ["tokens"]
    return (*_ALWAYS, *tokens, *built_in, *key, *attribute_columns(read, request.types))


def _about(request: SketchRequest, wanted: Candidates, counts: Sequence[NameCount]) -> int:
    """About how many events can matter, by how often each name occurs."""
    # Names tell nothing of events that have other tokens.
    names = wanted.names if request.tokens_are_names else None
    mine = request.events if names is None else count_events(counts, names)
    return int(mine * min(1.0, (len(wanted.blocks) << BLOCK_BITS) / max(1, request.events)))

"""Whether a pattern occurs, exactly: on as few events as tell it.

A match among the first events of a stream is one of the stream, for nothing that comes later changes it. So blocks of
events are read from the first one on, twice as many each time, until a match is found; the sketch is asked which of
them matter once the first block has none. Of a pattern that another engine matches all that matter are read at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from patternlake.delta_tables.gathering.snapshots import Publications
from patternlake.delta_tables.reading.state_reader import among
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.sql_ext.sketches.exact_sequences import (
    columns_read,
    conditions,
    events_that_matter,
    exact_rows,
    matched_here,
    too_many_events,
)
from patternlake.sql_ext.sketches.sketch_descent import Place, descend
from patternlake.udfs.limits import MAX_MATCHES
from patternlake.udfs.measures.pattern_measures import refuse_measures
from patternlake.udfs.published import NameCount
from patternlake.udfs.record_batches import columns_of
from patternlake.udfs.sequences.lent_patterns import compile_asked
from patternlake.udfs.sketch.reads import SketchReads, check_request
from patternlake.udfs.sketch.result import Candidates, blocks_touched, everywhere
from patternlake.udfs.sketch.task import match_exactly
from patternlake.udfs.sketch.windows import Window


def as_sequences(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The call of `match_seq` whose rows tell whether a pattern occurs."""
    # Under skip_till_any one of perhaps very many is enough; otherwise there are no more than events to begin at.
    most = 1 if arguments.get("policy") == "skip_till_any" else MAX_MATCHES
    return {**arguments, "verify": True, "after_match": "past_last", "max_matches": most, "truncate": True}


def occurs(lake: Lake, reads: SketchReads, counts: Sequence[NameCount]) -> bool:
    """Whether the pattern of a call, checked as one of `as_sequences`, occurs, given how often names do.

    Raises
    ------
    ArgumentError
        More events carry names of the pattern than one task holds, and no match is among the first of them.
    """

    def found(wanted: Candidates) -> bool:
        rows = exact_rows(lake, reads, wanted, counts)
        if not isinstance(rows, pa.Table):
            # Spark's analyser holds its session's catalog while it plans, so the rows are worked out in another one.
            rows = exact_rows(lake.apart(), reads, wanted, counts).limit(1).toArrow()
        return bool(rows.num_rows)

    return _grows(lake, reads, found)


def occurs_here(place: Place, reads: SketchReads) -> bool:
    """The same in a task, which reads for itself."""

    def found(wanted: Candidates) -> bool:
        rows = matched_here(place.reader, reads, wanted)
        if rows is None:
            raise too_many_events()
        return bool(rows.num_rows)

    return _grows(place, reads, found)


def _grows(place: Place, reads: SketchReads, found: Callable[[Candidates], bool]) -> bool:
    """Whether a match is found among events that matter, of which more and more are looked at."""
    request = reads.request
    if request.pattern.lent is not None:
        # What comes later may come before, in time, and may be what must be absent.
        wanted = events_that_matter(place, reads)
        return bool(wanted.blocks) and found(wanted)
    whole = everywhere(request)
    if len(whole.blocks) > 1 and request.window == Window() and found(replace(whole, blocks=whole.blocks[:1])):
        return True
    wanted = events_that_matter(place, reads)
    count = 2
    while count < len(wanted.blocks):
        if found(replace(wanted, blocks=wanted.blocks[:count])):
            return True
        count *= 2
    return bool(wanted.blocks) and found(wanted)


def occurs_by_key(
    place: Place, publications: Publications, arguments: Mapping[str, Any], keys: Sequence[str]
) -> dict[str, bool]:
    """Whether a pattern occurs for each of several keys, in one walk through the sketch and one look at the events.

    Parameters
    ----------
    place
        Of a task, which reads for itself.
    publications
        Of sketches.
    arguments
        Of the call, but for its key.
    keys
        The keys, each once.
    """
    published = publications.published("sketch", arguments["stream"] or "", arguments["as_of"])
    of_one = {**as_sequences(arguments), "key": keys[0]}
    reads = check_request(of_one, published, publications.names("sketch"), compile_asked)
    refuse_measures(reads.request.pattern.measures, "match_exists")
    every = replace(reads.request, key=None, one_key=False, every_key=True)
    wanted = everywhere(every)
    if wanted.names is not None and every.keyed:
        touched = set(blocks_touched(every, descend(place, reads, every, keys=keys)))
        # What ageing has dropped, no node tells of.
        wanted = replace(wanted, blocks=tuple(b for b in wanted.blocks if b in touched or every.dropped is not None))
    where = [*conditions(reads, wanted, every), among("key", keys)]
    rows = place.reader.rows("events", columns_read(every), where)
    there: set[str | None] = set()
    for part in match_exactly(every, columns_of(rows)):
        there |= set(part["key"].to_pylist())
    return {key: key in there for key in keys}

"""Where an answer is worked out: in the driver's process, where few bytes have to be read, else by Spark's tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from patternlake.delta_tables.gathering.gather import Deal, Gather, collect, deal
from patternlake.sql_ext.answering import tasks
from patternlake.udfs.errors import PatternLakeError
from patternlake.udfs.record_batches import as_blob, rows_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.sql_ext.lakes.lake import Lake


SPARSE = 4
"""Of what is sparse, so many times as many bytes are read here as of other rows. Measured for the hours around fifty
events of 10^7: 89 MB of merged files take 2.3 s by tasks, and a quarter of that here."""
_ADDED = "added"
"""The column of what a portion adds to an answer, as Arrow writes rows."""
_FEW_OF = 16
"""One of so many rows, or fewer, leave little of what is read. Measured: 24,000 events of three names among
10^7 take 0.2 s of the driver's processors, and 1.0 s by tasks."""


def leave_little(rows: int, of: int) -> bool:
    """Whether rows are so few of all that whoever reads all for them keeps little: they are sparse."""
    return rows * _FEW_OF <= of


@dataclass(frozen=True)
class Dealt:
    """How tasks work out an answer.

    Attributes
    ----------
    deals
        How the rows of each source are dealt out to portions.
    portions
        How many portions there are.
    work
        From a portion's number and its rows of each source to rows of the answer, some at a time; is pickled.
    finish
        What is left to do with the rows of all portions.
    """

    deals: Sequence[Deal]
    portions: int
    work: Callable[[int, list[pa.Table]], Iterable[pa.Table]]
    finish: Callable[[DataFrame], DataFrame] | None = None


def answer(
    lake: Lake,
    sources: Sequence[Gather],
    here: Callable[[list[pa.Table]], pa.Table | None],
    dealt: Callable[[], Dealt],
    schema: str,
) -> pa.Table | DataFrame:
    """Work out an answer from what is gathered.

    Parameters
    ----------
    lake
        Where it is asked.
    sources
        What is gathered.
    here
        From the rows of each source to the answer; None where one process does not do it.
    dealt
        How tasks do; asked for where they are to.
    schema
        Columns of the answer, as DDL.
    """
    if all(_is_small(lake, source) for source in sources):
        found = here([source.read(lake.reader) for source in sources])
        if found is not None:
            return found
    return by_tasks(lake, sources, dealt(), schema)


def _is_small(lake: Lake, source: Gather) -> bool:
    """Whether the driver's process may read what is gathered; of what is sparse, it keeps little."""
    return lake.small(source.table, source.conditions, source.touched, most=SPARSE if source.sparse else 1)


def by_tasks(lake: Lake, sources: Sequence[Gather], dealt: Dealt, schema: str) -> DataFrame:
    """Work out an answer by Spark's tasks; parameters as of `answer`."""
    blobs, portions = deal(lake.database, lake.reader, list(zip(sources, dealt.deals, strict=True)), dealt.portions)
    found = tasks.answer_portions(blobs, portions.read, dealt.work, schema)
    return found if dealt.finish is None else dealt.finish(found)


def answer_in_parts(
    lake: Lake, source: Gather, dealt: Dealt, merge: Callable[[pa.Table], pa.Table], none: pa.Table, schema: str
) -> pa.Table | DataFrame:
    """Work out an answer that one task makes of what all portions add to it.

    Parameters
    ----------
    lake, source, schema
        As of `answer`.
    dealt
        How tasks work out what a portion adds.
    merge
        From what all portions add to rows of the answer; is pickled.
    none
        What no portion adds, without rows.
    """
    if lake.small(source.table, source.conditions, source.touched):
        return merge(pa.concat_tables(dealt.work(0, [source.read(lake.reader)])))

    # Spark hands lists from one task to another number by number: as one blob they take no time.
    def pack(portion: int, rows: list[pa.Table]) -> Iterator[pa.Table]:
        for added in dealt.work(portion, rows):
            yield pa.table({_ADDED: pa.array([as_blob(added)], pa.binary())})

    def together(batches: Iterable[pa.RecordBatch]) -> list[tuple[int, pa.Table]]:
        added = [none]
        for batch in batches:
            for error in batch.column(tasks.ERROR).drop_null().to_pylist():
                raise PatternLakeError(error)
            added += map(rows_in, batch.column(_ADDED))
        return [(0, pa.concat_tables(added))]

    (dealing,) = dealt.deals
    blobs, portions = deal(lake.database, lake.reader, [(source, dealing)], dealt.portions)
    added = tasks.answers_or_errors(blobs, portions.read, pack, f"{_ADDED} BINARY")
    return tasks.answer_portions(added.repartition(1), together, lambda _, rows: [merge(rows)], schema)


def collect_apart(lake: Lake, gather: Gather) -> pa.Table:
    """Collect what is gathered while a question is planned, whose session's analyser waits for it."""
    apart = lake.apart()
    return collect(apart.database, apart.reader, gather)

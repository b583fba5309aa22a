"""The function `cet_trends`: the complete event trends of each window, one row for each.

They are counted first. The counts tell whether there are too many, and deal the trends out to tasks in equal shares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from patternlake.delta_tables.reading.state_reader import StateReader
from patternlake.delta_tables.reading.worker_reader import Location
from patternlake.delta_tables.spark.measure_columns import check_names, needed_schema
from patternlake.sql_ext.answering import reading_tasks, tasks
from patternlake.sql_ext.answering.reading_tasks import place_of
from patternlake.sql_ext.calls.declaring import table_function
from patternlake.sql_ext.declarations.declaration import Answer, explicit, parse_columns
from patternlake.sql_ext.declarations.measured_rows import names_found, with_measures
from patternlake.sql_ext.functions.cet_count import count_by_tasks
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.sql_ext.trends.trend_vertices import TrendCall, VerticesRead, trend_call, with_ends
from patternlake.udfs.digits import number_of
from patternlake.udfs.equal_shares import equal_shares
from patternlake.udfs.record_batches import columns_of
from patternlake.udfs.trends.result import no_trends
from patternlake.udfs.trends.sharing import Cell, Share, picks, shares
from patternlake.udfs.trends.task import count_trends, list_trends, pick_trends

HERE_TRENDS = 200_000
"""So many trends the driver's own process lists; more are dealt out to tasks."""
_LISTED = explicit(
    "key STRING, window BIGINT, window_start TIMESTAMP, window_end TIMESTAMP, positions ARRAY<BIGINT>, length INT, "
    "first_time TIMESTAMP, last_time TIMESTAMP, final BOOLEAN"
)


def _plan(lake: Lake, arguments: dict[str, Any]) -> Answer:
    call = trend_call(lake, arguments)
    query = call.request.layout.query
    check_names(query.measures, COLUMNS)
    if query.measured:
        call = trend_call(lake, arguments, query.measured)
    rows = _rows(call)
    return with_measures(rows, COLUMNS, query.measures, lasting=call.tell_unseen_key(rows))


def _rows(call: TrendCall) -> DataFrame | pa.Table:
    """The trends, with what measures need."""
    vertices = call.vertices() if call.here else None
    cells = _cells(call, vertices)
    allowed = set(call.ends()["window"].to_pylist()) if call.windows.counted else None
    asked = call.request
    if asked.sample is not None:
        drawn, truncated = picks(cells, asked.sample, asked.seed, allowed)
        here = vertices is not None or not drawn
        rows = _pick_here(call, vertices or {}, drawn) if here else _pick(call, drawn)
        return _finish(call, rows, truncated)
    passed = asked.from_trend - 1
    dealt, truncated = shares(cells, asked.max_trends, truncate=asked.truncate, allowed=allowed, passed=passed)
    if not dealt or (vertices is not None and sum(share.high - share.low for share in dealt) <= HERE_TRENDS):
        ranges = [(share.low, share.high) for share in dealt]
        rows = list_trends(asked, vertices or {}, ranges) if dealt else ()
        found = pa.concat_tables([no_trends(asked), *rows])
        return _finish(call, found, truncated)
    place = None if vertices is None else place_of(call.lake)
    listed = _list_trends(call, dealt) if place is None else _list_by_reading(call, place, dealt)
    return _finish(call, listed, truncated)


def _listed_columns(call: TrendCall) -> str:
    """What tasks give, as DDL."""
    needed = needed_schema(call.request.layout.query.measures)
    return f"{_LISTED}, {needed}" if needed else _LISTED


def _finish(call: TrendCall, rows: DataFrame | pa.Table, truncated: bool) -> DataFrame | pa.Table:
    """Rows of trends as the answer has them."""
    if isinstance(rows, pa.Table):
        rows = rows.append_column("truncated", pa.array([truncated] * rows.num_rows, pa.bool_()))
    else:
        rows = rows.withColumn("truncated", F.lit(truncated))
    return with_ends(call, rows).select(names_found(COLUMNS, call.request.layout.query.measures))


@dataclass(frozen=True)
class _Listing:
    """What a task does that reads all vertices, few as they are, and lists trends by their numbers."""

    reading: VerticesRead

    def __call__(self, reader: StateReader, ranges: Sequence[tuple[int, int]]) -> Iterator[pa.Table]:
        yield from list_trends(self.reading.request, self.reading.vertices(reader), ranges)


def _list_by_reading(call: TrendCall, place: Location, dealt: Sequence[Share]) -> DataFrame:
    """The trends, by a task for each core: shares that are neighbours to one of them."""
    lake = call.lake
    count = min(len(dealt), lake.spark.sparkContext.defaultParallelism)
    ranges = [[(one.low, one.high) for one in dealt[low:high]] for low, high in equal_shares(len(dealt), count)]
    return reading_tasks.deal_ranges(lake, place, ranges, _Listing(call.reading), _listed_columns(call))


def _cells(call: TrendCall, vertices: Mapping[str, pa.Array] | None) -> list[Cell]:
    """How many trends each partition and window has, in the order in which its portion numbers them."""
    if vertices is not None:
        rows = count_trends(call.request, vertices)
        rows = rows.append_column(tasks.PORTION, pa.array([0] * rows.num_rows, pa.int32()))
    else:
        elsewhere = replace(call, lake=call.lake.apart())
        rows = count_by_tasks(elsewhere).select("key", "window", "trends", tasks.PORTION).toArrow()
    return [
        Cell(portion, key, window, number_of(trends))
        for portion, key, window, trends in zip(
            *(rows[name].to_pylist() for name in (tasks.PORTION, "key", "window", "trends")), strict=True
        )
    ]


def _pick_here(call: TrendCall, vertices: Mapping[str, pa.Array], drawn: Mapping[int, Sequence[int]]) -> pa.Table:
    """The trends of some numbers, in this process."""
    rows = [table for numbers in drawn.values() for table in pick_trends(call.request, vertices, numbers)]
    return pa.concat_tables([no_trends(call.request), *rows])


def _pick(call: TrendCall, drawn: Mapping[int, Sequence[int]]) -> DataFrame:
    """The trends of some numbers, by Spark's tasks: one for each portion that has any."""
    asked, portions = call.request, sorted(drawn)
    numbers = [drawn[portion] for portion in portions]

    def work(share: int, rows: list[pa.Table]) -> Iterator[pa.Table]:
        yield from pick_trends(asked, columns_of(rows[0]), numbers[share])

    return call.by_shares(portions, work, _listed_columns(call))


def _list_trends(call: TrendCall, dealt: Sequence[Share]) -> DataFrame:
    """The trends, by Spark's tasks."""
    asked, ranges = call.request, [(share.low, share.high) for share in dealt]

    def work(share: int, rows: list[pa.Table]) -> Iterator[pa.Table]:
        yield from list_trends(asked, columns_of(rows[0]), [ranges[share]])

    return call.by_shares([share.part for share in dealt], work, _listed_columns(call))


COLUMNS = parse_columns(
    "key STRING, window_start TIMESTAMP, window_end TIMESTAMP, positions ARRAY<BIGINT>, length INT, "
    "first_time TIMESTAMP, last_time TIMESTAMP, final BOOLEAN, truncated BOOLEAN"
)


@table_function(plan=_plan, columns=COLUMNS)
def cet_trends(
    spark: SparkSession,
    query: str,
    key: str | None = None,
    from_time: datetime | str | None = None,
    to_time: datetime | str | None = None,
    max_trends: int = 1_000_000,
    truncate: bool = False,
    as_of: datetime | str | None = None,
    stream: str | DataFrame | None = None,
    params: Mapping[str, object] | None = None,
    from_trend: int = 1,
    sample: int | None = None,
    name: str | None = None,
    time: str | None = None,
) -> DataFrame:
    """List the complete event trends of each window.

    Parameters
    ----------
    spark
        An enabled session.
    query
        Name of a configured trend query, or the text of a query, which begins with PATTERN.
    key
        Only this partition; of a query without PARTITION BY, only events of this key.
    from_time, to_time
        Only windows that lie wholly inside; moments without a zone are in the session's.
    max_trends
        More than so many are an error that names their number.
    truncate
        Give the first `max_trends` instead, by key, window and positions.
    as_of
        Moment whose state answers.
    stream, params
        Of a text alone: the stream that it asks, or a table, a row an event (in SQL ``TABLE(t) PARTITION BY user ORDER
        BY (at)``, in Python a DataFrame, of which `key` is the column that partitions it); and the values of the
        parameters that it mentions.
    from_trend
        Number of the first trend that is listed, by key, window and positions; with `max_trends`, a page.
    sample
        So many trends instead, drawn at random from all: each set of them is as likely as any other. Equal calls draw
        the same, until something is published.
    name, time
        Of a table in the place of the stream: the columns of events' names and times.

    Returns
    -------
    DataFrame
        ``key STRING, window_start TIMESTAMP, window_end TIMESTAMP, positions ARRAY<BIGINT>, length INT, first_time
        TIMESTAMP, last_time TIMESTAMP, final BOOLEAN, truncated BOOLEAN``, then a column for each of the query's
        MEASURES, of the type that Spark gives it.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.

    Examples
    --------
    ```sql
    SELECT window_start, positions FROM cet_trends('ab')
    ```
    """

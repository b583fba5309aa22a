"""Table `trend_vertices`: event and attribute vertices of every trend query, by pane and partition.

Event vertices stand on their own and are written once; attribute vertices and panes are written again whenever a batch
adds to their pane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from patternlake.delta_tables.schema.layout import Layout
from patternlake.delta_tables.schema.table import Column, Table
from patternlake.delta_tables.tables.plain_view import plain_view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


TABLE: Table = Table(
    name="trend_vertices",
    comment="Event vertices, attribute vertices and panes of every trend query.",
    columns=(
        Column("trend_id", "INT", "number of the query, as object_numbers gave it out"),
        Column("kind", "STRING", "event, attribute or pane"),
        Column("stream_id", "INT", "number of the stream"),
        Column("pane", "BIGINT", "number of the pane; 0 without WITHIN"),
        Column("part", "ARRAY<STRING>", "values of the PARTITION BY columns; empty without"),
        Column("from_batch", "BIGINT", "the batch that wrote the row"),
        Column("to_batch", "BIGINT", "the batch that replaced the row; NULL: none did"),
        Column("position", "BIGINT", "event: its position; pane: its first position"),
        Column("time", "TIMESTAMP", "event: its time; pane: the time of its first event"),
        Column("last_time", "TIMESTAMP", "pane: the time of its last event"),
        Column("greatest_time", "TIMESTAMP", "pane: the greatest time of its events"),
        Column("term", "INT", "event: number of the pattern's term that takes it, from 0"),
        Column("key", "STRING", "event: the stream's key"),
        Column("left", "ARRAY<STRING>", "event: for each comparison the value of the later side"),
        Column("right", "ARRAY<STRING>", "event: for each comparison the value of the earlier side"),
        Column("along", "ARRAY<STRING>", "event: the values that are equal along a trend"),
        Column("carried", "ARRAY<STRING>", "event: further values that pairs are judged by"),
        Column("step", "INT", "attribute: number of the step between terms, from 0"),
        Column("number", "BIGINT", "attribute: its number in its pane, partition and step, in the order of values"),
        Column("low", "STRING", "attribute: lower end of its range; NULL: open"),
        Column("high", "STRING", "attribute: upper end of its range; NULL: open"),
        Column("holds_low", "BOOLEAN", "attribute: whether the range holds its lower end"),
        Column("holds_high", "BOOLEAN", "attribute: whether the range holds its upper end"),
    ),
    keys=("trend_id", "kind", "pane", "part", "position", "term", "step", "number", "from_batch"),
    view=lambda log: plain_view(TABLE, log),
    seen=(
        "stream trend=publications.object kind pane partition:STRING key position time last_time greatest_time term "
        "left right along carried step number low high holds_low holds_high from_batch"
    ),
    job="trends",
    object_column="trend_id",
    partitions=("trend_id", "kind"),
    properties={"delta.dataSkippingStatsColumns": "pane,from_batch,to_batch,position,time,key"},
    layout=Layout.PACKED,
)


def pane_ends(events: DataFrame, width: int) -> DataFrame:
    """First and last event of panes of `width` positions, of all events given.

    Returns
    -------
    DataFrame
        ``pane``, ``position`` and ``time`` of its first event, ``last_time`` of its last one by position, and
        ``greatest_time``.
    """
    pane = F.floor((F.col("position") - 1) / width).cast("bigint")
    return events.groupBy(pane.alias("pane")).agg(
        F.min("position").alias("position"),
        F.min_by("time", "position").alias("time"),
        F.max_by("time", "position").alias("last_time"),
        F.max("time").alias("greatest_time"),
    )

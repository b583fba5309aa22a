"""Table `pattern_matches`: the final matches of every kept pattern, each written once."""

from __future__ import annotations

from patternlake.delta_tables.schema.table import DIRECT_CHECKPOINT_INTERVAL, Column, Table
from patternlake.delta_tables.tables.plain_view import plain_view

TABLE: Table = Table(
    name="pattern_matches",
    comment="Final matches of every kept pattern.",
    columns=(
        Column("pattern_id", "INT", "number of the pattern, as object_numbers gave it out"),
        Column("stream_id", "INT", "number of the stream"),
        Column("part", "ARRAY<STRING>", "values of the PARTITION BY columns; empty without"),
        Column("batch_id", "BIGINT", "the batch that wrote the row: the first at which the match was final"),
        Column("first_position", "BIGINT", "position of the first event, by time"),
        Column("last_position", "BIGINT", "position of the last event"),
        Column("first_time", "TIMESTAMP", "time of the first event"),
        Column("last_time", "TIMESTAMP", "time of the last event"),
        Column("positions", "ARRAY<BIGINT>", "positions of all events, in the order of events"),
        Column("operands", "ARRAY<INT>", "number of the operand that binds each of them, from 0 in text order"),
        Column("bindings", "MAP<STRING,ARRAY<BIGINT>>", "operand to the positions of its events; empty: has none"),
        Column(
            "values",
            "MAP<STRING,STRING>",
            "what MEASURES read: column to a JSON list of texts, as positions",
        ),
    ),
    keys=("pattern_id", "part", "positions", "operands"),
    view=lambda log: plain_view(TABLE, log),
    seen=(
        "stream pattern=publications.object partition:STRING first_position last_position first_time last_time "
        "bindings batch_id"
    ),
    job="patterns",
    object_column="pattern_id",
    partitions=("pattern_id",),
    properties={
        "delta.checkpointInterval": str(DIRECT_CHECKPOINT_INTERVAL),
        "delta.dataSkippingStatsColumns": "batch_id,first_position,last_position,first_time,last_time",
    },
)

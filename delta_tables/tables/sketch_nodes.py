"""Table `sketch_nodes`: the nodes of every sketch, one row per segment and level with its nodes packed."""

from __future__ import annotations

from patternlake.delta_tables.reading.visibility import visible_text
from patternlake.delta_tables.schema.table import Column, LogName, Table
from patternlake.delta_tables.tables.publications import current


def _view(log: LogName) -> str:
    return f"""SELECT stream, segment, level, node[i] AS node, pos_lo[i] AS pos_lo, pos_hi[i] AS pos_hi,
  timestamp_micros(time_lo[i]) AS min_time, timestamp_micros(time_hi[i]) AS max_time,
  ones[i] / CAST(m AS DOUBLE) AS density, m, k, substring(bits, i * (m DIV 8) + 1, m DIV 8) AS bits,
  finished, from_batch
FROM (
  SELECT p.stream, n.*, explode(sequence(0, size(n.node) - 1)) AS i
  FROM {log("sketch_nodes")} n JOIN ({current(log, "sketch")}) p ON {visible_text(TABLE, "n", "p")}
  WHERE size(n.node) > 0
)"""


TABLE = Table(
    name="sketch_nodes",
    comment="The nodes of every sketch: one row per segment and level, its nodes packed into arrays.",
    columns=(
        Column("stream_id", "INT", "number of the stream"),
        Column("tier", "STRING", "top, or body for the levels below: what a descent reads together"),
        Column("bucket", "INT", "group of neighbouring segments: what a descent skips together"),
        Column("segment", "BIGINT", "number of the segment, from 0"),
        Column("level", "INT", "level in the segment's tree; leaves are 0"),
        Column("from_batch", "BIGINT", "the batch that wrote the row"),
        Column("to_batch", "BIGINT", "the batch that replaced or aged the row; NULL: none did"),
        Column("plan", "INT", "number of the sizing that the segment was built with, in the publication's state"),
        Column("finished", "BOOLEAN", "whether the segment is full"),
        Column("m", "INT", "bits per node, a multiple of 8"),
        Column("k", "INT", "hash functions"),
        Column("node", "ARRAY<INT>", "index of each node in its segment and level"),
        Column("pos_lo", "ARRAY<BIGINT>", "least position under each node"),
        Column("pos_hi", "ARRAY<BIGINT>", "greatest position under each node"),
        Column("time_lo", "ARRAY<BIGINT>", "least event time under each node, microseconds since the epoch"),
        Column("time_hi", "ARRAY<BIGINT>", "greatest event time under each node, microseconds since the epoch"),
        Column("ones", "ARRAY<INT>", "bits set in each node"),
        Column("distinct", "ARRAY<INT>", "distinct tokens inserted in each node"),
        Column("topmost", "ARRAY<BOOLEAN>", "whether each node has no parent"),
        Column("keys", "ARRAY<STRING>", "sorted distinct keys of the segment, on the top row of a keyed sketch"),
        Column("bits", "BINARY", "the nodes' filters, m / 8 bytes each, one after another"),
    ),
    keys=("stream_id", "segment", "level", "from_batch"),
    view=_view,
    seen=(
        "stream segment level node:INT pos_lo:BIGINT pos_hi:BIGINT min_time:TIMESTAMP max_time:TIMESTAMP "
        "density:DOUBLE m k bits:BINARY finished from_batch"
    ),
    job="sketch",
    partitions=("stream_id", "tier", "bucket"),
    properties={"delta.dataSkippingStatsColumns": "segment,level,from_batch,to_batch"},
)

"""Table `machine_instances`: partial matches that some continuation can still complete, and how far partitions are."""

from __future__ import annotations

from patternlake.delta_tables.reading.visibility import visible_text
from patternlake.delta_tables.schema.quoting import shown_text
from patternlake.delta_tables.schema.table import Column, LogName, Table
from patternlake.delta_tables.tables.publications import current


def _view(log: LogName) -> str:
    return f"""SELECT p.stream, s.subscription, {shown_text("i.part")} AS partition, s.state,
  transform(i.operands, number -> c.operands[number]) AS operands, i.positions, i.times, i.joins, i.age, i.from_batch
FROM {log("machine_instances")} i JOIN ({current(log, "predict")}) p ON {visible_text(TABLE, "i", "p")}
JOIN {log("machine_states")} s ON s.state_id = i.state_id AND {_visible("s")}
JOIN {log("subscriptions")} c ON c.subscription = s.subscription AND {_visible("c")}"""


def _visible(rows: str) -> str:
    """The condition on the rows of another table of the job that the same publication shows."""
    return visible_text(TABLE, rows, "p")


TABLE = Table(
    name="machine_instances",
    comment="Live partial matches of subscriptions; a row without operands says how far a partition has come.",
    columns=(
        Column("stream_id", "INT", "number of the stream"),
        Column("partitioned_by", "STRING", "columns of PARTITION BY, joined by a comma"),
        Column("part", "ARRAY<STRING>", "their values"),
        Column("state_id", "STRING", "the state, as in machine_states"),
        Column("from_batch", "BIGINT", "the batch that wrote the row"),
        Column("to_batch", "BIGINT", "the batch that replaced the row; NULL: none did"),
        Column("operands", "ARRAY<INT>", "numbers of the operands that are bound, from 0 in text order"),
        Column("positions", "ARRAY<BIGINT>", "positions of their events"),
        Column("times", "ARRAY<TIMESTAMP>", "times of their events: the time lists"),
        Column("joins", "ARRAY<STRING>", "values of the join variables; NULL: not bound"),
        Column("age", "INT", "how much of its deadline is gone: number of a slice, as in machine_transitions; 0: none"),
        Column("first_rank", "BIGINT", "rank of the first event in its partition, from 0"),
        Column("taken", "BIGINT", "of a row without operands: events that the partition has taken"),
        Column("last_time", "TIMESTAMP", "of a row without operands: time of the last of them"),
        Column("first_time", "TIMESTAMP", "of a row without operands: time of the first of them"),
    ),
    keys=("stream_id", "partitioned_by", "part", "state_id", "positions", "from_batch"),
    view=_view,
    seen=(
        "stream subscription=machine_states.subscription partition:STRING state=machine_states.state "
        "operands:ARRAY<STRING> positions times joins age from_batch"
    ),
    job="predict",
    partitions=("stream_id",),
    properties={"delta.dataSkippingStatsColumns": "partitioned_by,state_id,from_batch,to_batch"},
)

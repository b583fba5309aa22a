"""Table `machine_transitions`: how often each state of each machine was followed by which, over all partitions."""

from __future__ import annotations

from patternlake.delta_tables.reading.visibility import visible_text
from patternlake.delta_tables.schema.table import Column, LogName, Table
from patternlake.delta_tables.tables.publications import current

MOVE_COLUMNS = ("left_state", "age", "following_state", "following_age")
"""What tells the moves of a subscription apart."""


def _view(log: LogName) -> str:
    return f"""SELECT p.stream, t.subscription, t.left_state AS state, t.age, t.following_state AS next_state,
  t.following_age AS next_age, t.moves, try_divide(t.moves, sum(t.moves) OVER (
    PARTITION BY p.stream, t.subscription, t.left_state, t.age)) AS probability, t.from_batch
FROM {log("machine_transitions")} t JOIN ({current(log, "predict")}) p ON {visible_text(TABLE, "t", "p")}
WHERE t.left_state IS NOT NULL"""


TABLE = Table(
    name="machine_transitions",
    comment="Counts of the moves of every subscription's states, from which forecasts are made.",
    columns=(
        Column("stream_id", "INT", "number of the stream"),
        Column("subscription", "STRING", "name of the subscription"),
        Column("from_batch", "BIGINT", "the batch that wrote the row"),
        Column("to_batch", "BIGINT", "the batch that replaced the row; NULL: none did"),
        Column("left_state", "STRING", "name of the state that was left, such as N1(N1, N0)"),
        Column("age", "INT", "how much of its deadline was gone: number of a slice; 0: it has none"),
        Column("following_state", "STRING", "name of the state that followed; dead: the partial match was gone"),
        Column("following_age", "INT", "age of the state that followed"),
        Column("moves", "DOUBLE", "how often; with decay, weighted by age"),
    ),
    keys=("stream_id", "subscription", "left_state", "age", "following_state", "following_age", "from_batch"),
    view=_view,
    seen=(
        "stream subscription state=machine_transitions.left_state age next_state=machine_transitions.following_state "
        "next_age=machine_transitions.following_age moves probability:DOUBLE from_batch"
    ),
    job="predict",
    partitions=("stream_id",),
    properties={"delta.dataSkippingStatsColumns": "subscription,from_batch,to_batch"},
)
"""Before schema version 4 rows counted other things, in columns that a database of that time still has: their
`left_state` is NULL."""

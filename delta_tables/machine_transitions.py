"""Table `machine_transitions`: how often each state of each machine was followed by which, over all partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patternlake.delta_tables.publications import current
from patternlake.delta_tables.table import Column, LogName, Table
from patternlake.delta_tables.visibility import visible, visible_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from patternlake.delta_tables.database import Database
    from patternlake.delta_tables.publications import Publication


def _view(log: LogName) -> str:
    return f"""SELECT p.stream, t.subscription, t.machine, concat('N', t.state) AS state,
  CASE WHEN t.next_state < 0 THEN 'dead' ELSE concat('N', t.next_state) END AS next_state, t.moves,
  try_divide(t.moves, sum(t.moves) OVER (PARTITION BY p.stream, t.subscription, t.machine, t.state)) AS probability,
  t.from_batch
FROM {log("machine_transitions")} t JOIN ({current(log, "predict")}) p ON {visible_text(TABLE, "t", "p")}"""


TABLE = Table(
    name="machine_transitions",
    comment="Counts of the moves of every subscription's machines, from which forecasts are made.",
    columns=(
        Column("stream_id", "INT", "number of the stream"),
        Column("subscription", "STRING", "name of the subscription"),
        Column("from_batch", "BIGINT", "the batch that wrote the row"),
        Column("to_batch", "BIGINT", "the batch that replaced the row; NULL: none did"),
        Column("machine", "STRING", "path of a child machine: item, child, item, child, …; empty: the whole"),
        Column("state", "INT", "number of the state that was left"),
        Column("next_state", "INT", "number of the state that followed; -1: the copy was dead"),
        Column("moves", "DOUBLE", "how often; with decay, weighted by age"),
    ),
    keys=("stream_id", "subscription", "machine", "state", "next_state", "from_batch"),
    view=_view,
    job="predict",
    partitions=("stream_id",),
    properties={"delta.dataSkippingStatsColumns": "subscription,from_batch,to_batch"},
)


class MachineTransitionsReader:
    """Reads counts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def moves(self, publication: Publication) -> DataFrame:
        """Return ``subscription``, ``machine``, ``state``, ``next_state`` and ``moves`` as of a publication."""
        rows = self._database.table(TABLE.name).where(visible(TABLE, publication))
        return rows.select("subscription", "machine", "state", "next_state", "moves")

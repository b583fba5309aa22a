"""The function `predict_match`: how likely live partial matches of a subscription are to be completed."""

from __future__ import annotations

from dataclasses import astuple
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from patternlake.delta_tables.gathering.gather import Gather
from patternlake.delta_tables.reading.state_reader import Condition, among
from patternlake.delta_tables.reading.visibility import visible_rows
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.sql_ext.answering.answers import Dealt, answer
from patternlake.sql_ext.answering.unseen import tell_unseen_key
from patternlake.sql_ext.calls.declaring import table_function
from patternlake.sql_ext.declarations.declaration import Answer, parse_columns, schema_of
from patternlake.sql_ext.lakes.lake import Lake
from patternlake.udfs.machines.passing_time import rows_read, standing_rows
from patternlake.udfs.machines.request import MOVE_NAMES, check_request, forecast
from patternlake.udfs.machines.result import INSTANCE_COLUMNS, live_rows
from patternlake.udfs.machines.wanted_precision import EVALUATION_COLUMNS, WantedPrecision, threshold_for
from patternlake.udfs.partitions import ByPartition, count_portions
from patternlake.udfs.published import PublishedBatch
from patternlake.udfs.record_batches import columns_of

TASK_BYTES = 16 << 20
"""Bytes of instances' files for one portion, about; the instances of a partition are never divided."""


def _plan(lake: Lake, arguments: dict[str, Any]) -> Answer:
    snapshot = lake.snapshot(arguments["as_of"])
    reads = check_request(arguments, snapshot.of_job("predict"))
    question, key, now = reads.question, arguments["key"], reads.now
    moved = visible_rows(TABLES["machine_transitions"], reads.rows.number, *astuple(reads.rows))
    of_subscription = [*moved, Condition("subscription", "=", arguments["subscription"])]
    moves = lake.reader.rows("machine_transitions", tuple(MOVE_NAMES), of_subscription)
    moves = moves.filter(pc.is_valid(moves["left_state"])).rename_columns(list(MOVE_NAMES.values()))
    told = forecast(question, moves.to_pylist(), reads.waited, reads.time)
    more, others = rows_read(question, timed=reads.time is not None)
    read = (*INSTANCE_COLUMNS, *more)
    where = visible_rows(TABLES["machine_instances"], reads.rows.number, *astuple(reads.rows))
    where.append(among("state_id", [*(one["state_id"] for one in told.states), *others]))
    operands, threshold, partition = question.operands, reads.threshold, question.group.partition
    if isinstance(threshold, WantedPrecision):
        threshold = _threshold(lake, snapshot.published("evaluate", reads.stream).at, threshold)
    gathered = Gather("machine_instances", read, tuple(where), tuple(partition), key)

    def live(rows: list[pa.Table]) -> pa.Table:
        return live_rows(standing_rows(question, columns_of(rows[0]), now), told, operands, threshold)

    def by_portions() -> Dealt:
        portions = count_portions(lake.reader.size("machine_instances", where), TASK_BYTES)
        return Dealt([ByPartition(portions)], portions, lambda _, rows: [live(rows)])

    rows = answer(lake, [gathered], live, by_portions, schema_of(COLUMNS))
    told_key = tell_unseen_key(lake, key, reads.events, rows, partition)
    return Answer(rows, lasting=not told_key)


def _threshold(lake: Lake, judged: PublishedBatch | None, wanted: WantedPrecision) -> float:
    """The threshold of a subscription that wants a precision, by an evaluation."""
    rows: list[dict[str, Any]] = []
    if judged is not None:
        mine = visible_rows(TABLES["forecast_evaluation"], judged.stream_id, *astuple(judged.rows))
        mine.append(Condition("subscription", "=", wanted.subscription))
        rows = lake.reader.rows("forecast_evaluation", EVALUATION_COLUMNS, mine).to_pylist()
    return threshold_for(wanted, judged, rows)


COLUMNS = parse_columns(
    "key STRING, state STRING, bindings MAP<STRING, ARRAY<BIGINT>>, alpha DOUBLE, probability DOUBLE, "
    "trained_on BIGINT, is_best BOOLEAN"
)


@table_function(plan=_plan, columns=COLUMNS)
def predict_match(
    spark: SparkSession,
    subscription: str,
    lookahead: int | str | None = None,
    threshold: float | None = None,
    key: str | None = None,
    as_of: datetime | str | None = None,
) -> DataFrame:
    """Say how likely live partial matches of a subscription are to be completed.

    Parameters
    ----------
    spark
        An enabled session.
    subscription
        Its name.
    lookahead
        Events to look ahead, or a time such as ``2 HOURS``; None: the subscription's own.
    threshold
        Only rows with a greater probability; None: the subscription's own.
    key
        Only this partition.
    as_of
        Moment whose state answers; without a zone it is in the session's.

    Returns
    -------
    DataFrame
        ``key STRING, state STRING, bindings MAP<STRING, ARRAY<BIGINT>>, alpha DOUBLE, probability DOUBLE, trained_on
        BIGINT, is_best BOOLEAN``.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.

    Examples
    --------
    ```sql
    SELECT bindings, probability FROM predict_match('chain')
    ```
    """

"""The function `explain_pattern`: the plan that `match_pattern` would take, with what it is expected to cost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from patternlake.sql_ext.lake import Lake
from patternlake.sql_ext.planned_functions import call
from patternlake.sql_ext.stream_facts import facts_of
from patternlake.sql_ext.table_function import Answer, Parameter, TableFunction
from patternlake.udfs.kleene.request import explain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS = pa.schema([("line", pa.int32()), ("plan", pa.string()), ("cost", pa.float64()), ("rows", pa.float64())])


def _plan(lake: Lake, arguments: dict[str, Any]) -> Answer:
    facts = facts_of(lake.snapshot(arguments["as_of"]), arguments["stream"])
    lines = explain(arguments, facts.published, facts.known, facts.counts)
    rows = [
        {"line": number, "plan": line.text, "cost": line.cost, "rows": line.rows}
        for number, line in enumerate(lines, start=1)
    ]
    # What `maintain` tells of attributes changes costs, and is no publication.
    return Answer(pa.Table.from_pylist(rows, _ROWS), lasting=False)


FUNCTION = TableFunction(
    name="explain_pattern",
    parameters=(
        Parameter("stream", "STRING"),
        Parameter("pattern", "STRING"),
        Parameter("params", "MAP<STRING, STRING>", None),
        Parameter("plan", "STRING", None),
        Parameter("as_of", "TIMESTAMP", None),
    ),
    columns={"line": "INT", "plan": "STRING", "cost": "DOUBLE", "rows": "DOUBLE"},
    comment="The plan of a pattern, and its costs",
    plan=_plan,
)


def explain_pattern(
    spark: SparkSession,
    stream: str,
    pattern: str,
    params: Mapping[str, object] | None = None,
    plan: str | None = None,
    as_of: datetime | str | None = None,
) -> DataFrame:
    """Show the plan that `match_pattern` would take.

    Parameters
    ----------
    spark
        An enabled session.
    stream
        Name of the stream.
    pattern
        Text of the pattern.
    params
        Values of the parameters that it mentions.
    plan
        A plan to take instead of the cheapest.
    as_of
        Moment whose state answers; without a zone it is in the session's.

    Returns
    -------
    DataFrame
        ``line INT, plan STRING, cost DOUBLE, rows DOUBLE``.

    Raises
    ------
    PatternLakeError
        What is wrong with the call.
    """
    return call(FUNCTION, spark, {"stream": stream, "pattern": pattern, "params": params, "plan": plan, "as_of": as_of})

"""Aggregates of measures that Spark computes, over the rows that tasks list for each row of the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from patternlake.udfs.measures.translation import AggregateAtom
from patternlake.udfs.measures.values import LISTS, NUMBER
from patternlake.udfs.own_names import OWN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ID, _ROW = f"{OWN}id", f"{OWN}row"
_NULLS = re.compile(r"\s+(?:IGNORE|RESPECT)\s+NULLS\s*$", re.IGNORECASE)


def fold_aggregates(answer: DataFrame, aggregates: Sequence[AggregateAtom], names: Sequence[str]) -> DataFrame:
    """Compute aggregates.

    Parameters
    ----------
    answer
        The tasks' rows, with their `LISTS`.
    aggregates
        Of which the n-th is over the rows whose `NUMBER` is n.
    names
        The columns to make of them.

    Returns
    -------
    DataFrame
        The rows with a column for each aggregate in the place of the lists.
    """
    others = [name for name in answer.columns if name != LISTS]
    # In one step the rows would be numbered once the lists are taken apart.
    numbered = answer.select(F.monotonically_increasing_id().alias(_ID), F.struct(*others).alias(_ROW), LISTS)
    apart = numbered.select(_ID, _ROW, F.inline_outer(F.col(LISTS)))
    values = [
        F.expr(_filter_rows(aggregate, number)).alias(name)
        for number, (aggregate, name) in enumerate(zip(aggregates, names, strict=True))
    ]
    folded = apart.groupBy(_ID).agg(F.first(_ROW).alias(_ROW), *values)
    return folded.select(F.col(f"{_ROW}.*"), *names)


def _filter_rows(aggregate: AggregateAtom, number: int) -> str:
    condition = f"{NUMBER} = {number}" + (f" AND ({aggregate.filter})" if aggregate.filter else "")
    nulls = _NULLS.search(aggregate.sql)
    sql = aggregate.sql[: nulls.start()] if nulls else aggregate.sql
    return f"{sql} FILTER (WHERE {condition}){nulls[0] if nulls else ''}"

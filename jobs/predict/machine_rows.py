"""Rows of the catalogue of subscriptions, of their states and of the moves of their machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from patternlake.udfs.machines.forecasts.passage import DEAD
from patternlake.udfs.machines.forecasts.totals import counts_of
from patternlake.udfs.machines.from_config import Group
from patternlake.udfs.machines.graph.composite_states import complete, state_name
from patternlake.udfs.machines.request import DEAD_NAME

MoveKey = tuple[str, str, int, str, int]
"""Subscription, state, age, next state, its age."""


def subscription_rows(spark: SparkSession, entries: Mapping[str, Any], groups: Sequence[Group]) -> DataFrame:
    """Rows of `subscriptions`, without marks."""
    made = {name: one for group in groups for name, one in zip(group.names, group.compiled.subscriptions, strict=True)}
    rows = [
        (
            name,
            int(entry["lookahead"]),
            None if isinstance(entry["threshold"], Mapping) else float(entry["threshold"]),
            float(entry["smoothing"]),
            float(entry["decay"]),
            [primitive.name for primitive in made[name].primitives],
            list(made[name].partition),
            entry["query"],
            dict(entry["params"]),
        )
        for name, entry in entries.items()
    ]
    columns = (
        "subscription string, lookahead int, threshold double, smoothing double, decay double, "
        "operands array<string>, partitioned_by array<string>, query string, params map<string,string>"
    )
    return spark.createDataFrame(rows, columns)


def state_rows(spark: SparkSession, groups: Sequence[Group]) -> DataFrame:
    """Rows of `machine_states`, without marks."""
    rows = []
    for group in groups:
        graph = group.compiled.graph
        for number, (name, one) in enumerate(zip(group.names, group.compiled.subscriptions, strict=True)):
            for composite_state, state in graph.states[number].items():
                bound = [one.primitives[operand].name for operand in sorted(graph.bound[state])]
                ends = complete(one.master, composite_state)
                rows.append(
                    (name, graph.ids[state], state_name(one.master, composite_state), graph.waits[state], ends, bound)
                )
    columns = (
        "subscription string, state_id string, state string, waits boolean, completes boolean, operands array<string>"
    )
    return spark.createDataFrame(rows, columns)


def move_rows(
    spark: SparkSession, former: Mapping[MoveKey, float], groups: Sequence[Group], totals: Sequence[Any]
) -> DataFrame:
    """Rows of `machine_transitions`, without marks.

    Parameters
    ----------
    spark
        The session.
    former
        The counts so far.
    groups
        All subscriptions.
    totals
        `Machines.totals` of each group, None where nothing was taken.
    """
    found = dict(former)
    for group, own in zip(groups, totals, strict=True):
        if own is None:
            continue
        for number, name in enumerate(group.names):
            chain = group.compiled.subscriptions[number].master
            for (composite_state, age), moves in counts_of(group.compiled, own, number).items():
                for after, count in moves.items():
                    following = DEAD_NAME if after == DEAD else state_name(chain, after[0])
                    key = name, state_name(chain, composite_state), age, following, after[1]
                    found[key] = found.get(key, 0.0) + count
    columns = "subscription string, left_state string, age int, following_state string, following_age int, moves double"
    return spark.createDataFrame([(*key, moves) for key, moves in found.items()], columns)

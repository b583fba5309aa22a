"""Rows of the catalogue of subscriptions, of their states and of the moves of their machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.delta_tables.writing.arrow_rows import of_tuples
from patternlake.udfs.machines.forecasts.limits import LEAST_COUNT
from patternlake.udfs.machines.forecasts.passage import DEAD
from patternlake.udfs.machines.forecasts.totals import counts_of
from patternlake.udfs.machines.from_config import Group
from patternlake.udfs.machines.graph.composite_states import complete, state_name
from patternlake.udfs.machines.request import DEAD_NAME

MoveKey = tuple[str, str, int, str, int]
"""Subscription, state, age, next state, its age."""


def subscription_rows(entries: Mapping[str, Any], groups: Sequence[Group]) -> pa.Table:
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
            list(dict(entry["params"]).items()),
        )
        for name, entry in entries.items()
    ]
    return of_tuples(rows, TABLES["subscriptions"].unmarked)


def state_rows(groups: Sequence[Group]) -> pa.Table:
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
    return of_tuples(rows, TABLES["machine_states"].unmarked)


def move_rows(former: Mapping[MoveKey, float], groups: Sequence[Group], totals: Sequence[Any]) -> pa.Table:
    """Rows of `machine_transitions`, without marks.

    Parameters
    ----------
    former
        The counts so far.
    groups
        All subscriptions.
    totals
        `Machines.totals` of each group, None where nothing was taken.
    """
    found = {key: moves for key, moves in former.items() if moves >= LEAST_COUNT}
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
    return of_tuples([(*key, moves) for key, moves in found.items()], TABLES["machine_transitions"].unmarked)

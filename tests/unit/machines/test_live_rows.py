"""Rows of `predict_match`, of instances that several batches have written."""

from __future__ import annotations

import pyarrow as pa

from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.machines.forecasts.passage import Forecaster
from patternlake.udfs.machines.graph.composite_states import CompositeState
from patternlake.udfs.machines.query import compile_subscription
from patternlake.udfs.machines.request import Told
from patternlake.udfs.machines.result import live_rows

MOMENT = pa.timestamp("us", "UTC")
N1 = CompositeState(1)
SUBSCRIPTION = compile_subscription(parse("a ; b"))
PASSAGE = Forecaster(SUBSCRIPTION, {(N1, 0): {(CompositeState(2), 0): 1.0, (N1, 0): 1.0}}, 1).passage
TOLD = Told([{"state_id": "n1", "state": "N1", "composite_state": N1, "trained_on": 4}], PASSAGE)


def instances(joins: list[list[str | None]]) -> dict[str, pa.Array]:
    """Instances of one state that bind operand 0, at positions 1, 2, …, with these values of join variables."""
    count = len(joins)
    positions = list(range(1, count + 1))
    return {
        "part": pa.array([["k"]] * count, pa.list_(pa.string())),
        "state_id": pa.array(["n1"] * count),
        "operands": pa.array([[0]] * count, pa.list_(pa.int32())),
        "positions": pa.array([[each] for each in positions], pa.list_(pa.int64())),
        "times": pa.array([[each] for each in positions], pa.list_(pa.int64())).cast(pa.list_(MOMENT)),
        "joins": pa.array(joins, pa.list_(pa.string())),
    }


def shown(joins: list[list[str | None]]) -> list[int]:
    rows = live_rows(instances(joins), TOLD, ["a", "b"], 0.0)
    return sorted(dict(row)["a"][0] for row in rows["bindings"].to_pylist())


def test_instances_with_equal_join_values_are_one_row_shown_by_the_smallest() -> None:
    assert shown([["x"], ["y"], ["x"]]) == [1, 2]


def test_instances_written_when_there_were_fewer_join_variables_count_as_those_that_bind_no_more() -> None:
    # Between the batches a subscription with a second variable came to share the state.
    assert shown([["x"], ["y"], ["x", None], ["z", None]]) == [1, 2, 4]
    assert shown([["x", None], ["y"], ["z"], ["y", None]]) == [1, 2, 3]
    assert shown([[], ["x"], [None]]) == [1, 2]

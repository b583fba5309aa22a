"""Rows of instances are read back, whatever other subscriptions there were when they were written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from unit.machines.running_cases import asked

from patternlake.udfs.language.predicate.columns import Column
from patternlake.udfs.machines.kernels.matching_primitives import Codes
from patternlake.udfs.machines.kernels.tables import compiled
from patternlake.udfs.machines.state import InstanceRows

JOINED = "p ; q DEFINE p AS name = 'a' AND x = $v, q AS name = 'b' AND x = $v"


def test_equal_values_and_no_others_have_one_number() -> None:
    codes = Codes()
    texts = ["a", "a\0", "a\0b", "a", ""]
    known = np.array([True] * 4 + [False])
    assert codes.of(Column(np.array(texts, object), known)).tolist() == [0, 1, 2, 0, -1]
    assert codes.of(Column(np.array(["a\0b", "c"], object), known[:2])).tolist() == [2, 4]
    zero, minus_zero, nan, one, minus_nan = codes.of(
        Column(np.array([0.0, -0.0, np.nan, 1.0, -np.nan]), np.ones(5, bool))
    )
    assert (zero, nan) == (minus_zero, minus_nan)
    assert sorted([zero, nan, one]) == [5, 6, 7]


@pytest.mark.parametrize(
    ("joins", "values"),
    [([["1"], ["2"]], ["1", "2"]), ([[], ["2"]], [None, "2"]), ([["1", None], ["2"]], ["1", "2"])],
    ids=["as many variables", "fewer before", "more before"],
)
def test_values_of_joins_stay_with_their_rows(joins: list[list[str | None]], values: list[str | None]) -> None:
    made, codes = compiled([asked(JOINED)]), Codes()
    state_id = made.graph.ids[1]
    rows = {
        "state_id": pa.array([state_id, state_id]),
        "operands": pa.array([[0], [0]], pa.list_(pa.int32())),
        "positions": pa.array([[1], [2]]),
        "times": pa.array([[1], [2]]).cast(pa.list_(pa.timestamp("us", "UTC"))),
        "joins": pa.array(joins, pa.list_(pa.string())),
        "first_rank": pa.array([0, 1]),
        "taken": pa.array([None, None], pa.int64()),
        "last_time": pa.array([None, None], pa.timestamp("us", "UTC")),
        "first_time": pa.array([None, None], pa.timestamp("us", "UTC")),
    }
    held = InstanceRows(made, codes).held(rows, np.zeros(2, np.int64), 1)
    assert [None if code < 0 else codes.texts[code] for code in held.joins[:, 0]] == values

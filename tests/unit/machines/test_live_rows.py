"""Rows of `predict_match`, of instances that several batches have written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from unit.machines.forecasters import trained

from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.machines.forecasts.passage import Waited
from patternlake.udfs.machines.forecasts.waiting_times import counted
from patternlake.udfs.machines.graph.ages import NEVER
from patternlake.udfs.machines.graph.composite_states import CompositeState
from patternlake.udfs.machines.query import compile_subscription
from patternlake.udfs.machines.request import Told
from patternlake.udfs.machines.result import live_rows

MOMENT = pa.timestamp("us", "UTC")
N1 = CompositeState(1)
SUBSCRIPTION = compile_subscription(parse("a ; b"))
PASSAGE = trained(SUBSCRIPTION, {(N1, 0): {(CompositeState(2), 0): 1.0, (N1, 0): 1.0}}, 1).passage
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


@pytest.mark.parametrize("bound", [61, 62])
def test_partitions_keep_their_own_row_where_many_operands_are_bound(bound: int) -> None:
    count = 9
    rows = instances([[]] * count) | {
        "part": pa.array([[f"k{each}"] for each in range(count)], pa.list_(pa.string())),
        "operands": pa.array([list(range(bound))] * count, pa.list_(pa.int32())),
        "positions": pa.array([list(range(bound))] * count, pa.list_(pa.int64())),
        "times": pa.array([list(range(bound))] * count, pa.list_(pa.int64())).cast(pa.list_(MOMENT)),
    }
    found = live_rows(rows, TOLD, [f"e{number}" for number in range(62)], 0.0)
    assert found["key"].to_pylist() == [f"k{each}" for each in range(count)]


@pytest.mark.parametrize("ahead", [None, 3_000_000])
def test_each_row_goes_by_the_quiet_time_and_the_deadline_of_its_partition(ahead: int | None) -> None:
    # Half of the events are b, one comes after 1 s or after 2 s, and each partition has its own a and its own silence.
    second = 1_000_000
    times = np.cumsum([0, *[second, 2 * second] * 50])
    new = np.zeros(1, np.int64)
    now = int(times[-1])
    waited = Waited(counted(times, np.array([0, len(times)]), new, new, new, now), now)
    timed = compile_subscription(parse("a ; b @(t(b) - t(a) <= 4 SEC)"))
    counts = {(N1, 30): {(CompositeState(2), 0): 1.0, (N1, 30): 1.0}}
    forecaster = trained(timed, counts, 9, waited=waited, time=ahead)
    told = Told([{"state_id": "n1", "state": "N1", "composite_state": N1, "trained_on": 2}], forecaster.passage)
    # Quiet for so many half seconds, of a deadline of four seconds that began with the last event.
    quiet = np.array([0, 1, 2, 3, 3, 0]) * second // 2
    rows = instances([[]] * len(quiet)) | {
        "part": pa.array([[str(part)] for part in range(len(quiet))], pa.list_(pa.string())),
        "left": pa.array(np.full(len(quiet), 4 * second)),
        "events": pa.array(np.full(len(quiet), NEVER)),
        "closed": pa.array(np.zeros(len(quiet), np.int64)),
        "quiet": pa.array(quiet),
        "pace": pa.array(np.zeros(len(quiet), np.int64)),
    }
    found = live_rows(rows, told, ["a", "b"], 0.0)
    chances = dict(zip(found["key"].to_pylist(), found["probability"].to_pylist(), strict=True))
    # Waits after each other that end in so many seconds: three seconds from now, or at the deadline.
    for part, since in enumerate(quiet.tolist()):
        until = 4 * second if ahead is None else min(4 * second, since + ahead)
        assert chances[str(part)] == pytest.approx(by_definition(since / second, until / second), abs=1e-9)


def by_definition(quiet: float, until: float) -> float:
    """Each event is b with probability 1/2, and comes 1 s or 2 s after the last one; the first, after the quiet."""

    def completed(at: float, waits: list[float]) -> float:
        chances = [0.5 + 0.5 * completed(at + wait, [1, 2]) if at + wait <= until else 0.0 for wait in waits]
        return sum(chances) / len(chances)

    return completed(0.0, [wait for wait in (1, 2) if wait > quiet])

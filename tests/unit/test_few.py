"""Batches that the driver takes in: rows partition by partition, and the steps that may still be closed."""

from __future__ import annotations

import pyarrow as pa

from patternlake.jobs.batches.few import in_partition_order
from patternlake.jobs.ingest.steps import of_last_steps

PART = pa.list_(pa.string())


def events(*rows: tuple[list[str | None], int, int]) -> pa.Table:
    parts, times, positions = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            "part": pa.array(parts, PART),
            "time": pa.array(times, pa.timestamp("us", "UTC")),
            "position": pa.array(positions, pa.int64()),
        }
    )


def remembered(*rows: tuple[list[str | None], str]) -> pa.Table:
    parts, states = zip(*rows, strict=True)
    return pa.table({"part": pa.array(parts, PART), "state": pa.array(states, pa.string())})


def told(rows: pa.Table) -> list[tuple[list[str | None], int | None, str | None]]:
    columns = (rows[name].to_pylist() for name in ("part", "position", "state"))
    return list(zip(*columns, strict=True))


def test_of_each_partition_comes_first_what_is_remembered_then_its_events_in_order() -> None:
    new = events((["b"], 5, 4), (["a"], 7, 2), (["b"], 1, 9), ([None], 3, 3), (["b"], 5, 1))
    found = told(in_partition_order(new, remembered((["b"], "x"), (["c"], "y"), (["b"], "z")), ("time", "position")))
    assert found == [
        ([None], 3, None),
        (["a"], 2, None),
        (["b"], None, "x"),
        (["b"], None, "z"),
        (["b"], 9, None),
        (["b"], 1, None),
        (["b"], 4, None),
    ]


def test_partitions_without_events_are_left_out_and_without_any_there_are_no_rows() -> None:
    assert told(in_partition_order(events(), remembered((["b"], "x")), ("time",))) == []


def test_several_values_and_none_partition_as_well() -> None:
    two = events((["a", None], 2, 2), (["a", "b"], 1, 1), (["a", None], 1, 3))
    order = in_partition_order(two, None, ("time", "position"))
    assert order["position"].to_pylist() in ([1, 3, 2], [3, 2, 1])
    whole = events(([], 2, 2), ([], 1, 1))
    assert in_partition_order(whole, None, ("time",))["position"].to_pylist() == [1, 2]


def test_the_events_of_the_greatest_step_of_each_key_are_those_that_later_rows_meet() -> None:
    published = pa.table(
        {
            "key": pa.array(["a", None, "a", "a", None, "b"], pa.string()),
            "step": pa.array([1, 4, 3, 3, 2, 0], pa.int64()),
            "probability": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        }
    )
    assert of_last_steps(published)["probability"].to_pylist() == [0.2, 0.3, 0.4, 0.6]

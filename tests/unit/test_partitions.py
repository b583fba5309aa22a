"""Partitions of events by the values of some columns."""

from __future__ import annotations

import pyarrow as pa

from patternlake.udfs.partitions import first_rows, partitions

TEXTS = pa.list_(pa.string())


def test_partitions_begin_where_a_value_changes_and_null_is_a_value() -> None:
    values = pa.array([["b", None], ["b", None], ["b", "x"], ["a", "x"], [None, "x"], [None, None]], TEXTS)
    assert first_rows(values).tolist() == [0, 2, 3, 4, 5]


def test_without_columns_all_is_one_partition() -> None:
    assert first_rows(pa.array([[], [], []], TEXTS)).tolist() == [0]


def test_partitions_are_numbered_by_what_is_shown_of_them_null_first() -> None:
    numbers, shown = partitions(pa.array([["b"], [None], ["a"], ["b"]], TEXTS), 1)
    assert (numbers.tolist(), shown) == ([2, 0, 1, 2], [None, "a", "b"])

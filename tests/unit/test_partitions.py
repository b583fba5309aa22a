"""Partitions of events by the values of some columns."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternlake.udfs.ordering import order_in_partitions
from patternlake.udfs.partitions import (
    first_rows,
    lists_of,
    number_partitions,
    number_values,
    order_of,
    partition_texts,
    portions_by_partition,
    same_partitions,
    up_to_last_value,
)

TEXTS = pa.list_(pa.string())


def test_partitions_begin_where_a_value_changes_and_null_is_a_value() -> None:
    values = pa.array([["b", None], ["b", None], ["b", "x"], ["a", "x"], [None, "x"], [None, None]], TEXTS)
    assert first_rows(values).tolist() == [0, 2, 3, 4, 5]


def test_without_columns_all_is_one_partition() -> None:
    assert first_rows(pa.array([[], [], []], TEXTS)).tolist() == [0]


def test_partitions_are_numbered_by_what_is_shown_of_them_null_first() -> None:
    numbers, shown = number_partitions(pa.array([["b"], [None], ["a"], ["b"]], TEXTS))
    assert (numbers.tolist(), shown) == ([2, 0, 1, 2], [None, "a", "b"])


def test_of_numbers_of_a_dictionary_only_the_values_that_rows_have_are_partitions() -> None:
    texts = ["c", "b", None, "b", "a", "c"]
    rows = pa.table({"part": lists_of([pa.array(texts).dictionary_encode()], len(texts))})
    part = rows.filter(pa.array([False, True, True, True, True, False]))["part"].combine_chunks()
    numbers, shown = number_partitions(part)
    assert (numbers.tolist(), shown) == ([2, 0, 2, 1], [None, "a", "b"])
    assert partition_texts(part).to_pylist() == texts[1:-1]
    assert portions_by_partition(part, 8).tolist() == portions_by_partition(part.cast(TEXTS), 8).tolist()


@given(st.lists(st.tuples(st.sampled_from([None, "", "a", "b", "\0"]), st.integers(1, 4)), max_size=12))
def test_values_are_numbered_alike_in_runs_and_mixed(runs: list[tuple[str | None, int]]) -> None:
    values = [value for value, count in runs for _ in range(count)]
    texts = pa.array(values, pa.string())
    for column in (texts, texts.dictionary_encode()):
        numbers, shown = number_values(column)
        assert [shown[number] for number in numbers] == values
        assert shown == sorted({*values}, key=lambda value: (value is not None, value))


@pytest.mark.parametrize("width", [0, 1, 2, 3])
def test_lists_are_found_among_others_of_the_same_length(width: int) -> None:
    rng = random.Random(width)
    values = [[rng.choice([None, "", "a", "b"]) for _ in range(rng.choice([width, width, 1]))] for _ in range(80)]
    for count in (0, 1, 7):
        wanted = [[rng.choice([None, "", "a", "b"]) for _ in range(width)] for _ in range(count)]
        found = same_partitions(pa.array(values, TEXTS), pa.array(wanted, TEXTS))
        assert found.tolist() == [value in wanted for value in values]


def test_nulls_behind_the_last_value_of_a_list_go_and_others_stay() -> None:
    values = pa.array([["a", None, "b", None], [None, None], [], [None, "c"], None, ["d"]], TEXTS)
    assert up_to_last_value(values).to_pylist() == [["a", None, "b"], [], [], [None, "c"], None, ["d"]]
    assert up_to_last_value(values.slice(2)).to_pylist() == [[], [None, "c"], None, ["d"]]
    assert up_to_last_value(values.slice(0, 0)).to_pylist() == []


@given(st.lists(st.tuples(st.integers(0, 2**34), st.integers(0, 3), st.integers(-2, 2)), max_size=40))
def test_rows_are_ordered_by_partition_and_then_by_each_key(rows: list[tuple[int, int, int]]) -> None:
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    found = order_of(*columns)
    assert found.tolist() == sorted(range(len(rows)), key=lambda row: rows[row])


@pytest.mark.parametrize("lie", ["by batch", "by key", "as they come"])
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=30), st.randoms(use_true_random=False))
def test_events_are_ordered_by_partition_time_and_position_however_they_lie(
    lie: str, drawn: list[tuple[int, int]], rng: random.Random
) -> None:
    events = [(partition, time, position) for position, (partition, time) in enumerate(drawn, 1)]
    if lie == "by batch":
        events.sort(key=lambda event: event[1:])
    elif lie == "by key":
        events.sort()
    else:
        rng.shuffle(events)
    found, offsets = order_in_partitions(*np.array(events, np.int64).reshape(-1, 3).T)
    assert [events[row] for row in found] == sorted(events)
    numbers = [partition for partition, _, _ in sorted(events)]
    assert offsets.tolist() == np.searchsorted(numbers, np.arange(max(numbers, default=-1) + 2)).tolist()

"""Windows, their panes, and when they are final."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from naive.trend_cases import compiled

from patternlake.udfs.record_batches import columns_of
from patternlake.udfs.trends.batch import pane_rows
from patternlake.udfs.trends.ends import window_ends
from patternlake.udfs.trends.panes import Windows

SIZES = st.integers(1, 12)


def array(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@given(SIZES, SIZES, st.lists(st.integers(-40, 40), max_size=20))
def test_every_row_stands_in_the_windows_that_hold_it(width: int, slide: int, times: list[int]) -> None:
    windows = Windows(width, slide, False)
    at = np.array(times, np.int64)
    panes = windows.panes(at, at)
    row, window = windows.spread(panes)
    wanted = [
        (number, k)
        for number, time in enumerate(times)
        for k in range(-60, 61)
        if k * slide <= time < k * slide + width
    ]
    assert list(zip(row.tolist(), window.tolist(), strict=True)) == wanted
    for number, k in wanted:
        assert panes[number] in windows.panes_of(k)


def test_windows_of_events_run_over_positions_minus_one() -> None:
    windows = Windows.of(compiled("E WITHIN 4 EVENTS SLIDE 2 EVENTS"))
    assert windows.panes(array(1, 2, 3, 4, 5), array(0, 0, 0, 0, 0)).tolist() == [0, 0, 1, 1, 2]
    row, window = windows.spread(array(0, 1))
    assert list(zip(row.tolist(), window.tolist(), strict=True)) == [(0, -1), (0, 0), (1, 0), (1, 1)]


def test_without_within_everything_is_one_pane_and_one_window() -> None:
    windows = Windows.of(compiled("E"))
    assert windows.panes(array(5, 6), array(-1, 10**15)).tolist() == [0, 0]
    assert [part.tolist() for part in windows.spread(array(0, 0))] == [[0, 1], [0, 0]]
    assert list(windows.panes_of(0)) == [0]
    assert windows.final(array(0), 10**18).tolist() == [False]


def test_a_window_of_time_is_final_once_the_watermark_has_reached_its_end() -> None:
    windows = Windows(10, 5, False)
    assert windows.bounds(array(-1, 0, 1))[1].tolist() == [5, 10, 15]
    assert windows.final(array(-1, 0, 1), 10).tolist() == [True, True, False]
    assert windows.final(array(0), None).tolist() == [False]


def test_a_window_of_events_is_final_once_it_is_full_and_none_of_its_times_can_come_again() -> None:
    windows = Windows(4, 2, True)
    final = windows.final(array(0, 0, 1, 1), 100, 5, array(99, 100, 99, 100))
    assert final.tolist() == [True, False, False, False]


def inside(times: Sequence[int], from_time: int | None = None, to_time: int | None = None) -> list[int]:
    """Which windows of two events lie inside the asked times, of events at positions 1, 2, …"""
    windows = Windows(2, 2, True)
    at = np.array(times, np.int64)
    panes = columns_of(pa.Table.from_batches(pane_rows(windows, np.arange(1, len(times) + 1), at)))
    found = window_ends(
        windows, panes, watermark=None, last_position=len(times), from_time=from_time, to_time=to_time
    )  # fmt: skip
    rows: list[int] = found["window"].to_pylist()
    return rows


def test_a_window_whose_last_event_came_late_lies_inside_times_that_hold_both_its_ends() -> None:
    late = [50, 10, 60, 70]
    assert inside(late) == [0, 1]
    assert inside(late, from_time=10) == [0, 1]
    assert inside(late, from_time=11) == [1]
    assert inside(late, to_time=50) == [0]
    assert inside(late, to_time=49) == []

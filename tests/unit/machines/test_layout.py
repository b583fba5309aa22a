"""Arrays side by side: the same values, in one block, of one type whatever their length."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from patternlake.udfs.machines.kernels.layout import side_by_side


def test_columns_hold_the_values_of_the_arrays() -> None:
    given = {
        "flag": np.array([True, False, True]),
        "number": np.array([7, 8, 9, 10]),
        "wide": np.arange(6.0).reshape(3, 2),
        "time": np.array([2**62, -1, 5]),
    }
    made = side_by_side(given, {"number"})
    for name, array in given.items():
        assert np.array_equal(made[name], array)
    assert [made[name].dtype for name in given] == [np.bool_, np.int32, np.float64, np.int64]


def test_what_belongs_to_one_number_lies_within_one_row() -> None:
    made = side_by_side({"one": np.arange(4), "other": np.arange(8).reshape(4, 2)})
    start = made["one"].__array_interface__["data"][0]
    assert made["other"].__array_interface__["data"][0] - start == 8
    assert made["one"].strides == (24,)
    assert made["other"].strides == (24, 8)


@pytest.mark.parametrize("length", [0, 1, 2, 5])
def test_numba_takes_arrays_of_any_length_for_one_type(length: int) -> None:
    made = side_by_side({"one": np.arange(length), "other": np.zeros((length, 1))})
    assert [numba.typeof(array).layout for array in made.values()] == ["A", "A"]

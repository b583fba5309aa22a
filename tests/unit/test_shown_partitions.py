"""Which rows belong to the partition that is shown as a key."""

from __future__ import annotations

import pyarrow as pa
import pytest

from patternlake.udfs.partitions import are_shown_as, text_of_partition

PARTS = {
    0: [[], []],
    1: [["a"], [None], ["NULL"], ["a,b"], [""]],
    2: [["a", "b"], ["a", None], [None, "b"], ["a,b", "c"], ["a", "b,c"], ["NULL", "b"], [None, None]],
    3: [["a", "b", "c"], ["a", None, "c"]],
}


@pytest.mark.parametrize("width", PARTS)
@pytest.mark.parametrize("key", ["a", "NULL", "", "a,b", "a,NULL", "NULL,b", "a,b,c", "a,NULL,c", "NULL,NULL", "x"])
def test_a_key_is_the_text_that_is_shown(width: int, key: str) -> None:
    part = pa.array(PARTS[width], pa.list_(pa.string()))
    assert are_shown_as(part, width, key).to_pylist() == [text_of_partition(values) == key for values in PARTS[width]]


def test_no_rows_belong_to_no_partition() -> None:
    assert are_shown_as(pa.array([], pa.list_(pa.string())), 2, "a").to_pylist() == []

"""Which rows belong to the partition that is shown as a key."""

from __future__ import annotations

import pyarrow as pa
import pytest

from patternlake.udfs.partitions import are_shown_as, partition_texts

PARTS = {
    0: [[], []],
    1: [["a"], [None], ["NULL"], ["a,b"], [""]],
    2: [["a", "b"], ["a", None], [None, "b"], ["a,b", "c"], ["a", "b,c"], ["NULL", "b"], [None, None]],
    3: [["a", "b", "c"], ["a", None, "c"]],
}


def shown(values: list[str | None]) -> str | None:
    if len(values) < 2:
        return values[0] if values else None
    return ",".join("NULL" if value is None else value for value in values)


@pytest.mark.parametrize("width", PARTS)
@pytest.mark.parametrize("key", ["a", "NULL", "", "a,b", "a,NULL", "NULL,b", "a,b,c", "a,NULL,c", "NULL,NULL", "x"])
def test_a_key_is_the_text_that_is_shown(width: int, key: str) -> None:
    part = pa.array(PARTS[width], pa.list_(pa.string()))
    assert are_shown_as(part, key).to_pylist() == [shown(values) == key for values in PARTS[width]]


def test_lists_of_several_lengths_are_shown_each_as_it_is() -> None:
    some = [values for width in PARTS for values in PARTS[width]]
    part = pa.array([["x"], *some], pa.list_(pa.string()))
    assert partition_texts(part.slice(1)).to_pylist() == [shown(values) for values in some]


def test_no_rows_belong_to_no_partition() -> None:
    assert are_shown_as(pa.array([], pa.list_(pa.string())), "a").to_pylist() == []

"""Rows of an answer travel to Spark in chunks."""

from __future__ import annotations

import pyarrow as pa
import pytest

from patternlake.udfs.sketch import answering


def rows(count: int) -> pa.StructArray:
    return pa.array(
        [{"match_no": number, "key": f"k{number}", "steps": []} for number in range(count)], answering.ROW_TYPE
    )


@pytest.mark.parametrize("sizes", [[], [0], [3], [2, 0, 5]])
def test_chunks_give_back_their_rows(sizes: list[int]) -> None:
    given = [rows(size) for size in sizes]
    lists = answering.rows_of([answering._sealed(part) for part in given])
    assert lists.type == answering.ROWS_TYPE
    assert lists.to_pylist() == [part.to_pylist() for part in given]

"""Rows of an exact answer in chunks."""

from __future__ import annotations

import pyarrow as pa
import pytest

from patternlake.udfs import exact_parts

ROW = pa.struct([("match_no", pa.int64()), ("key", pa.string()), ("steps", pa.list_(pa.int64()))])


def rows(count: int) -> pa.StructArray:
    return pa.array([{"match_no": number, "key": f"k{number}", "steps": [number]} for number in range(count)], ROW)


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (1, [1]), (3, [3]), (5, [3, 2]), (6, [3, 3])])
def test_chunks_give_back_their_rows(count: int, sizes: list[int]) -> None:
    given = rows(count)
    lists = exact_parts.rows_of(exact_parts.chunks(given, 3), ROW)
    assert lists.type == pa.list_(ROW)
    assert [len(part) for part in lists] == sizes
    assert [row for part in lists.to_pylist() for row in part] == given.to_pylist()


def test_a_part_has_its_rows_or_an_error() -> None:
    assert exact_parts.part(None, 2, rows(2)).as_py()["total"] == 2
    told = exact_parts.part("too many", 2, rows(2)).as_py()
    assert (told["error"], told["chunks"]) == ("too many", None)
    assert exact_parts.refused("no").as_py() == {"error": "no", "total": 0, "chunks": None}

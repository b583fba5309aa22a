"""Events that only their names order, counted from numbers of what they share, beside every pair of events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from patternlake.jobs.ingest import ties


def naive(rows: list[dict[str, Any]], shared: list[str], differing: list[str]) -> int:
    """Rows among whose equals, in the shared columns, there are several values in each of the differing ones."""

    def apart(row: dict[str, Any]) -> bool:
        alike = [other for other in rows if all(other[column] == row[column] for column in shared)]
        return all(len({other[column] for other in alike}) > 1 for column in differing)

    return sum(map(apart, rows))


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("seed", range(25))
def test_tied_events_are_those_that_share_a_number_under_several_names(seed: int, parts: int) -> None:
    rng = np.random.default_rng(seed)
    count, in_files = int(rng.integers(0, 40)), seed % 3 == 0
    rows = [
        {
            ties.SHARED: int(rng.integers(-5, 6)),
            ties.NAMED: int(rng.integers(2)),
            **({"file": int(rng.integers(2)), "place": number} if in_files else {}),
        }
        for number in range(count)
    ]
    types = {ties.SHARED: pa.int64(), ties.NAMED: pa.int64()}
    types |= {"file": pa.int32(), "place": pa.int64()} if in_files else {}
    numbers = ties.numbers_of(pa.Table.from_pylist(rows, pa.schema(list(types.items()))))
    part = ties.part_of(numbers, parts)
    found = [ties.count_tied(numbers.filter(pa.array(part == number))) for number in range(parts)]
    assert sum(found) == naive(rows, [ties.SHARED], [ties.NAMED, *(["file"] if in_files else [])])


def test_rows_that_are_not_numbered_are_never_tied() -> None:
    assert ties.count_tied(ties.numbers_of(pa.table({"time": [1, 1], "name": ["a", "b"]}))) == 0

"""Events that only their names order, counted by the driver, beside every pair of events."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from patternlake.jobs.ingest import ties


def naive(rows: list[dict[str, Any]], shared: list[str], differing: list[str]) -> int:
    """Rows among whose equals, in the shared columns, there are several values in each of the differing ones."""
    good = [row for row in rows if row["reason"] is None]

    def apart(row: dict[str, Any]) -> bool:
        alike = [other for other in good if all(other[column] == row[column] for column in shared)]
        return all(len({other[column] for other in alike}) > 1 for column in differing)

    return sum(map(apart, good))


@pytest.mark.parametrize("at_once", [4, 1_000_000])
@pytest.mark.parametrize("seed", range(25))
def test_tied_events_are_those_of_one_time_and_key_with_several_names(
    seed: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ties, "_AT_ONCE", at_once)
    rng = np.random.default_rng(seed)
    count, ordered, in_files = int(rng.integers(0, 40)), seed % 2 == 0, seed % 3 == 0
    rows = [
        {
            "time": int(rng.integers(-2, 3)) * 86_400_000_000,
            "key": [None, "", "k"][rng.integers(3)],
            "name": ["a", "b"][rng.integers(2)],
            "reason": [None, None, "late"][rng.integers(3)],
            **({"o0": [None, 0.5, float("inf")][rng.integers(3)]} if ordered else {}),
            **({"file": int(rng.integers(2)), "place": number} if in_files else {}),
        }
        for number in range(count)
    ]
    types = {"time": pa.timestamp("us"), "key": pa.string(), "name": pa.string(), "reason": pa.string()}
    types |= {"o0": pa.float64()} if ordered else {}
    types |= {"file": pa.int32(), "place": pa.int64()} if in_files else {}
    prepared = pa.Table.from_pylist(rows, pa.schema(list(types.items())))
    shared, differing = ["time", "key", *(["o0"] if ordered else [])], ["name", *(["file"] if in_files else [])]
    stream: Any = SimpleNamespace(probabilistic=False)
    assert ties.count_tied_here(prepared, stream) == naive(rows, shared, differing)


def test_rows_of_one_file_or_of_steps_are_never_tied() -> None:
    rows = {"time": [1, 1], "key": ["k", "k"], "name": ["a", "b"], "reason": pa.nulls(2, pa.string())}
    stepped: Any = SimpleNamespace(probabilistic=True)
    certain: Any = SimpleNamespace(probabilistic=False)
    assert ties.count_tied_here(pa.table(rows), stepped) == 0
    assert ties.count_tied_here(pa.table({**rows, "place": [1, 2]}), certain) == 0
    assert ties.count_tied_here(pa.table(rows), certain) == 2

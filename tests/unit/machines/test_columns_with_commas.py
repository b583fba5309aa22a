"""Columns of PARTITION BY whose names hold a comma."""

from __future__ import annotations

import json

import pytest

from patternlake.udfs.machines.forecasts.waiting_times import Waits
from patternlake.udfs.machines.request import waited_of
from patternlake.udfs.published import PublishedBatch


def waits(columns: tuple[str, ...], known: str) -> Waits:
    """What is known of the waits of partitions, where those of others are known."""
    at = PublishedBatch(
        object="s",
        object_id=1,
        base_batch=1,
        batch_id=1,
        watermark=0,
        source="{}",
        state=json.dumps({"waits": {known: [[0, 319, 0, 1, 1, 1, 1]]}}),
        configuration="{}",
    )
    return waited_of(at, columns).counts


@pytest.mark.parametrize("columns", [("a", "b"), ("x y",), ("a'b",), ()])
def test_plain_columns_are_called_by_their_names_and_a_comma(columns: tuple[str, ...]) -> None:
    assert waits(columns, ",".join(columns))


def test_a_column_with_a_comma_is_not_two_columns() -> None:
    assert not waits(("a,b",), "a,b")
    assert waits(("a,b",), "'a,b'")
    assert waits(("a,b", "c"), "'a,b',c")

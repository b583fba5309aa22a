"""The baseline of `benchmarks/process_logs.py`: an index of pairs of names in plain Spark SQL."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from benchmarks.name_pairs import PAIRS, SEQUENCES, candidates, joined, verified

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = "abcd"


@pytest.fixture(scope="module")
def traces() -> dict[str, list[tuple[int, str]]]:
    """Places and names of each trace; the events of traces lie among each other."""
    rng = random.Random(25)
    found: dict[str, list[tuple[int, str]]] = {"t0": [(1, "b"), (2, "a"), (3, "b"), (4, "c")]}
    for position in range(5, 400):
        found.setdefault(f"t{rng.randrange(1, 30)}", []).append((position, rng.choice(NAMES)))
    return found


@pytest.fixture(scope="module")
def session(spark: SparkSession, traces: dict[str, list[tuple[int, str]]]) -> SparkSession:
    """A session with the views of the index."""
    own = spark.newSession()
    rows = [(trace, name, position) for trace, events in traces.items() for position, name in events]
    own.createDataFrame(rows, "trace STRING, name STRING, position BIGINT").createOrReplaceTempView("log")
    for view, text in (("pairs", PAIRS), ("sequences", SEQUENCES)):
        frame = own.createDataFrame(own.sql(text).collect(), own.sql(text).schema)
        frame.createOrReplaceTempView(view)
    return own


def matched(events: Sequence[tuple[int, str]], names: Sequence[str]) -> list[tuple[int, int]]:
    """Begin and end of each sequence: the nearest next events of the first start, then of the first start behind."""
    found = []
    behind = 0
    while True:
        places = []
        for name in names:
            last = places[-1] if places else behind
            later = [position for position, other in events if other == name and position > last]
            if not later:
                return found
            places.append(later[0])
        found.append((places[0], places[-1]))
        behind = places[-1]


def test_pairs_are_those_of_each_two_names_one_behind_the_other(
    session: SparkSession, traces: dict[str, list[tuple[int, str]]]
) -> None:
    expected = {
        (a, b, trace, begin, end)
        for a in NAMES
        for b in NAMES
        for trace, events in traces.items()
        for begin, end in matched(events, [a, b])
    }
    rows = [tuple(row) for row in session.table("pairs").select("a", "b", "trace", "begin", "end").collect()]
    assert len(rows) == len(expected)
    assert set(rows) == expected


def test_verified_pairs_find_all_and_joined_ones_no_other_traces(
    session: SparkSession, traces: dict[str, list[tuple[int, str]]]
) -> None:
    rng = random.Random(7)
    for names in ["abc", "aa", "bab", *("".join(rng.choices(NAMES, k=rng.randint(2, 5))) for _ in range(5))]:
        expected = {(trace, *span) for trace, events in traces.items() for span in matched(events, names)}
        texts = (candidates(list(names)), verified(list(names)), joined(list(names)))
        some, all_, found = (session.sql(text).collect() for text in texts)
        assert len(all_) == len(expected)
        assert {tuple(row) for row in all_} == expected
        assert {trace for trace, *_ in expected} <= {row[0] for row in some}
        assert {row[0] for row in found} <= {trace for trace, *_ in expected}
    # The pair of b and c begins at the first b, that of a and b ends at the second.
    assert "t0" not in {row[0] for row in session.sql(joined(["a", "b", "c"])).collect()}

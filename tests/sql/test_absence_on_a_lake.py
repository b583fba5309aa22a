"""Absence on a lake: by driver and by tasks alike, final by the watermark, and kept once it is final."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sql.pattern_lake import PatternStream, in_order
from sql.sketch_lake import E, by_tasks, shared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATTERNS = {
    "ab_silent": {"query": "A ; !B WITHIN 4 SEC"},
    "ab_late": {"query": "A ; B ; !C @(t(C) - t(B) < 6 SEC) WITHIN 3 SEC", "policy": "skip_till_next"},
    "ab_first": {"query": "!C ; B WITHIN 3 SEC"},
    "ab_events": {"query": "A ; !C PARTITION BY key WITHIN 3 EVENTS"},
}
FIRST = [(1, "A"), (2, "B"), (4, "A"), (5, "C"), (9, "B"), (10, "A")]
THEN = [(11, "B"), (18, "C")]
"""Seconds and names; positions count from 1."""
AT_10 = {
    "ab_silent": [(3, 3, True), (6, 6, False)],
    "ab_late": [],
    "ab_first": [(2, 2, True), (5, 5, True)],
    "ab_events": [(1, 1, True), (6, 6, False)],
}
AT_18 = {
    "ab_silent": [(3, 3, True)],
    "ab_late": [(6, 7, True)],
    "ab_first": [(2, 2, True), (5, 5, True), (7, 7, True)],
    "ab_events": [(1, 1, True)],
}
"""First and last position of each row, and whether it is final."""

Told = dict[str, list[tuple[int, int, bool]]]


def told(stream: PatternStream, *, kept: bool) -> Told:
    calls = [stream.kept(name) if kept else stream.text(name) for name in PATTERNS]
    found = map(in_order, stream.lake.ask(calls))
    return {
        name: [(row["first_position"], row["last_position"], row["final"]) for row in rows]
        for name, rows in zip(PATTERNS, found, strict=True)
    }


def written(stream: PatternStream) -> dict[str, list[int]]:
    return {name: sorted(row["first_position"] for row in stream.written(name)) for name in PATTERNS}


def test_rows_become_final_as_the_watermark_passes_and_go_where_something_came(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stream = PatternStream(shared(spark, tmp_path_factory), "absent", PATTERNS, key="who")
    for events, wanted in ((FIRST, AT_10), (THEN, AT_18)):
        stream.take([E(second * 1000, name, "k") for second, name in events])
        assert told(stream, kept=False) == wanted
        assert told(stream, kept=True) == wanted
        assert written(stream) == {name: [first for first, _, sure in rows if sure] for name, rows in wanted.items()}
    with by_tasks(spark):
        assert told(stream, kept=False) == AT_18
    # Near misses are not kept: a kept pattern is asked anew. C came too soon behind the first A and B.
    begun = [
        in_order(rows) for rows in stream.lake.ask([ask("ab_late", partial=True) for ask in (stream.kept, stream.text)])
    ]
    assert [(row["first_position"], row["missing"], row["final"]) for row in begun[0]] == [
        (3, "B", True),
        (6, None, True),
    ]
    assert begun[0] == begun[1]

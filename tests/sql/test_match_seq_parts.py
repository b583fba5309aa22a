"""`match_seq` on a stream of several parts and blocks: what lies in none of a question's candidates is not read.

The rare names stand in three parts of 102,400 events; `B` alone is in the middle one, and in blocks of its own.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sql.sketch_lake import Stream, shared

from patternlake.sql_ext.sketches import exact_sequences
from patternlake.udfs.blocks import BLOCK_BITS
from patternlake.udfs.sketch.batch import PART_EVENTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BLOCK = 1 << BLOCK_BITS
EVENTS = 2 * BLOCK + 3_000
A, B, C = (50_000, 50_001), (BLOCK + 1_000, BLOCK + 2_000), (EVENTS - 2_000, EVENTS - 1_000)
"""Positions of each name."""


@pytest.fixture(scope="module")
def stream(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Stream:
    lake = shared(spark, tmp_path_factory)
    sketch = {"events_per_leaf": 100, "levels": 4, "expected_events": EVENTS}
    made = lake.streams["parts"] = Stream(lake, "parts", sketch, {}, ingested=True)
    names = {position: name for name, positions in (("A", A), ("B", B), ("C", C)) for position in positions}
    with Path(made.folder, "0.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["at", "what"])
        # Others by the same name would be in every leaf, and all of them would be read.
        writer.writerows((1_600_000_000_000 + at, names.get(at, f"x{at % 7}")) for at in range(1, EVENTS + 1))
    made.ingest()
    made.run("sketch")
    return made


def test_the_names_stand_in_parts_and_blocks_of_their_own() -> None:
    assert [{(at - 1) // PART_EVENTS for at in positions} for positions in (A, B, C)] == [{0}, {1}, {2}]
    assert [{(at - 1) >> BLOCK_BITS for at in positions} for positions in (A, B, C)] == [{0}, {1}, {2}]


EXACT: dict[str, list[tuple[int, ...]]] = {
    "A ; C": [(A[0], C[0]), (A[1], C[0])],
    "A , A ; C": [(A[0], A[1], C[0])],
    "A ; !B ; C": [],
    "B ; !A ; C": [(B[0], C[0]), (B[1], C[0])],
    "A & C": [(A[0], C[0]), (A[1], C[0])],
    "B | C ; C": [(B[0], C[0]), (B[1], C[0]), (C[0], C[1])],
}


def test_an_exact_answer_is_that_of_all_events(stream: Stream) -> None:
    answers = stream.lake.ask([stream.seq(pattern, after_match="next", verify=True) for pattern in EXACT])
    found = [[tuple(step["from_position"] for step in row["steps"]) for row in rows] for rows in answers]
    assert dict(zip(EXACT, found, strict=True)) == EXACT


def test_a_negated_name_in_a_part_of_its_own_is_found_by_the_sketch(stream: Stream) -> None:
    rejected, found = stream.lake.ask([stream.seq("A ; !B ; C"), stream.seq("B ; !A ; C", after_match="next")])
    assert (rejected, len(found)) == ([], 2)


def test_more_events_than_one_task_should_hold_are_refused(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = stream.lake
    monkeypatch.setattr(exact_sequences, "WHOLE_EVENTS", 1000)
    assert len(lake.ask([stream.seq("A ; C", after_match="next", verify=True)])[0]) == 2
    whole, narrow = lake.errors(
        [stream.seq("x1 ; x2", verify=True), stream.seq("x1 ; x2", verify=True, to_position=BLOCK // 2)]
    )
    assert whole.startswith("about 75,7")
    assert "one task would hold them all" in whole
    assert narrow.startswith("about 37,4")

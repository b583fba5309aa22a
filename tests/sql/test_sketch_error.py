"""sketch_error through SQL: how wrong a whole answer can be, beside its false rows."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from sql.sketch_lake import E, SketchLake, Stream, by_tasks, call, shared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SketchLake:
    return shared(spark, tmp_path_factory)


def errors_of(lake: SketchLake, stream: Stream, pattern: str, **arguments: Any) -> Any:
    (rows,) = lake.ask([call("sketch_error", stream.name, pattern, **arguments)])
    (row,) = rows
    return row


def noisy(lake: SketchLake) -> Stream:
    """Leaves of four events, whose filters err in one of three cases or so."""
    rng = random.Random(77)
    made = [E(n * 10, f"n{int(rng.paretovariate(0.6)) % 60}", rng.choice(["k1", "k2"])) for n in range(480)]
    sketch = {"events_per_leaf": 4, "levels": 4, "fpq": 0.6, "keyed": True}
    return lake.stream("noisy", made[:200], made[200:], sketch=sketch, key="who")


KEYED: list[tuple[str, dict[str, Any]]] = [("", {"key": "k1"}), (" PARTITION BY who", {})]


def test_the_error_of_an_answer_is_about_its_rows_and_no_less_than_their_false_ones(lake: SketchLake) -> None:
    stream = noisy(lake)
    held: dict[int, set[str]] = {}
    for event in stream.events():
        held.setdefault((event["position"] - 1) // 4, set()).add(event["name"])
    expected = wrong = 0.0
    for pattern in ("n1 ; n2", "n7 ; n1", "n30 ; n31", "absent ; n1", "n1 ; absent", "n55 | absent ; n3"):
        for given in ({"after_match": "next"}, {"policy": "strict"}, {"from_position": 100, "to_position": 300}):
            (rows,) = lake.ask([stream.seq(pattern, **given)])
            false_rows = sum(
                any(step["operand"] not in held[(step["from_position"] - 1) // 4] for step in row["steps"])
                for row in rows
            )
            told = errors_of(lake, stream, pattern, **given)
            assert (told["rows"], told["truncated"]) == (len(rows), False)
            assert 0 <= told["expected_false"] <= len(rows)
            assert (told["any_false_bound"] > 0) == (len(rows) > 0)
            expected, wrong = expected + told["expected_false"], wrong + false_rows
    assert 0 < wrong <= expected


def test_one_key_or_every_key_by_tasks_as_well(lake: SketchLake) -> None:
    stream = noisy(lake)
    here = [errors_of(lake, stream, f"n1 ; n2{more}", **given) for more, given in KEYED]
    with by_tasks(lake.spark):
        there = [errors_of(lake, stream, f"n1 ; n2{more}", **given) for more, given in KEYED]
    for one, other in zip(here, there, strict=True):
        assert other["rows"] == one["rows"] > 0
        assert other["expected_false"] == pytest.approx(one["expected_false"])
        assert other["any_false_bound"] == pytest.approx(one["any_false_bound"])
    (one_key, every_key) = here
    assert one_key["rows"] <= every_key["rows"]


def test_what_needs_verify_is_refused(lake: SketchLake) -> None:
    stream = noisy(lake)
    (error,) = lake.errors([call("sketch_error", stream.name, "a ; b DEFINE a AS TRUE")])
    assert "verify" in error

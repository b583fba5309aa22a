"""Which worker runs which file of tests."""

from __future__ import annotations

from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import pytest
from distribution import SECONDS, EngineScheduling, engine_of

FILES = {
    "tests/sql/test_cet.py": 50.0,
    "tests/unit/trends/test_trend_counting.py": 5.0,
    "tests/sql/test_machines.py": 90.0,
    "tests/unit/machines/test_layout.py": 20.0,
    "tests/sql/test_match_groups.py": 30.0,
    "tests/sql/test_ingest_state.py": 60.0,
    "tests/unit/test_shell.py": 10.0,
}


class Worker:
    """Takes the tests that it is sent."""

    def send_runtest_some(self, indexes: list[int]) -> None:
        assert indexes


@pytest.mark.parametrize(
    ("file", "engine"),
    [
        ("tests/unit/kleene/test_kleene_answers.py", "kleene"),
        ("tests/sql/test_match_pattern.py", "kleene"),
        ("tests/sql/test_match_seq_parts.py", "sketch"),
        ("tests/sql/test_trends_job.py", "trends"),
        ("tests/sql/test_machines_random.py", "machines"),
        ("tests/faults/test_kills.py", "faults"),
        ("tests/unit/language/test_parser.py", ""),
        ("tests/sql/test_docs.py", ""),
    ],
)
def test_the_engine_of_a_file_is_its_folders_or_its_names(file: str, engine: str) -> None:
    assert engine_of(file) == engine


def scheduling(seconds: dict[str, float]) -> tuple[EngineScheduling, Worker, Worker]:
    """Two workers, and one test in each file, of which seconds are known by file."""
    made = EngineScheduling.__new__(EngineScheduling)
    cache: dict[str, Any] = {SECONDS: {f"{file}::test": each for file, each in seconds.items()}}
    made.config = SimpleNamespace(cache=cache)
    one, other = Worker(), Worker()
    tests = {file: f"{file}::test" for file in FILES}
    made.workqueue = OrderedDict((file, {test: False}) for file, test in tests.items())
    made.assigned_work = {one: {}, other: {}}
    made.registered_collections = {one: list(tests.values()), other: list(tests.values())}
    return made, one, other


def test_a_worker_stays_with_its_engine_and_the_longest_file_comes_first() -> None:
    made, one, other = scheduling(FILES)
    for worker in (one, other, one, other, one, other):
        made._assign_work_unit(worker)
    assert list(made.assigned_work[one]) == [
        "tests/sql/test_machines.py",
        "tests/unit/machines/test_layout.py",
        "tests/sql/test_match_groups.py",
    ]
    assert list(made.assigned_work[other]) == [
        "tests/sql/test_cet.py",
        "tests/unit/trends/test_trend_counting.py",
        "tests/sql/test_ingest_state.py",
    ]


def test_every_file_is_given_to_one_worker_whatever_is_known_of_their_seconds() -> None:
    made, one, other = scheduling({})
    while made.workqueue:
        made._assign_work_unit(one)
        if made.workqueue:
            made._assign_work_unit(other)
    given = [*made.assigned_work[one], *made.assigned_work[other]]
    assert sorted(given) == sorted(FILES)

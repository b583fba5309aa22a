"""Which workers are looked at before jobs and functions use them."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from patternlake.delta_tables.databases import workers
from patternlake.udfs.errors import StateError


def session(master: str, missing: list[str]) -> tuple[Any, list[int]]:
    """A session whose workers lack some packages, and how many tasks looked for them."""
    tasks: list[int] = []

    def parallelize(numbers: range, count: int) -> Any:
        tasks.append(count)
        found = SimpleNamespace(collect=lambda: missing)
        return SimpleNamespace(mapPartitions=lambda look: SimpleNamespace(distinct=lambda: found))

    context = SimpleNamespace(
        pythonExec=sys.executable,
        applicationId=f"of {master}",
        master=master,
        defaultParallelism=4,
        parallelize=parallelize,
    )
    return SimpleNamespace(sparkContext=context), tasks


def test_on_one_machine_the_drivers_own_interpreter_needs_no_look() -> None:
    spark, tasks = session("local[2]", ["numba"])
    workers.check(spark)
    assert tasks == []


def test_on_a_cluster_another_machine_may_have_another_interpreter_at_its_path() -> None:
    spark, tasks = session("spark://master:7077", ["numba"])
    with pytest.raises(StateError, match="it has no numba"):
        workers.check(spark)
    assert tasks == [4]


def test_a_cluster_is_looked_at_once() -> None:
    spark, tasks = session("yarn", [])
    workers.check(spark)
    workers.check(spark)
    assert tasks == [4]

"""Which worker of pytest-xdist runs which file: an engine's files on one worker, those that took longest first.

A worker loads the kernels of an engine once, in its own process and in that from which Spark's workers are forked. How
long each test took is remembered from its last run, as a file has fast and slow ones; without that, it is guessed.
"""

from __future__ import annotations

from collections import Counter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    import pytest
    from xdist.workermanage import WorkerController

SECONDS = "patternlake/seconds_of_tests"
"""Key of pytest's cache: seconds by test."""

_WORDS = {
    "sketch": ("match_seq", "match_exists", "sketch", "planned_functions"),
    "kleene": ("match_pattern",),
    "groups": ("match_groups", "groups"),
    "funnels": ("match_funnel", "match_paths"),
    "machines": ("machines", "evaluate"),
    "trends": ("cet", "trends"),
    "faults": (),
}


def engine_of(file: str) -> str:
    """The engine whose kernels a file's tests call, or what else they share; empty where there is none, or several."""
    path = PurePosixPath(file)
    if path.parent.name in _WORDS:
        return path.parent.name
    words = f"_{path.stem}_"
    return next((engine for engine, known in _WORDS.items() if any(f"_{word}_" in words for word in known)), "")


def guessed(test: str) -> float:
    """Seconds of a test that has not run yet: one that asks Spark takes some, another one hardly any."""
    return 0.05 if "unit" in PurePosixPath(test.split("::")[0]).parts else 2.0


class EngineScheduling(LoadFileScheduling):  # type: ignore[misc]
    """Deals files out, by engine."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        mine = {engine_of(file) for file in self.assigned_work[node]} - {""}
        others = {engine_of(file) for each in self.nodes if each is not node for file in self.assigned_work[each]}
        self.workqueue.move_to_end(self._chosen(mine, others - mine), last=False)
        super()._assign_work_unit(node)

    def _chosen(self, mine: set[str], others: set[str]) -> str:
        """The next file: of the worker's engines, of one that nobody has begun, of none, of another worker's."""
        seconds = self._seconds()
        left: Counter[str] = Counter()
        for file, each in seconds.items():
            left[engine_of(file)] += each
        wanted = [engine for engine in left if engine in mine]
        if not wanted:
            wanted = [engine for engine, _ in left.most_common() if engine and engine not in others][:1]
        if not wanted:
            wanted = [engine for engine in left if not engine] or list(left)
        return max((file for file in seconds if engine_of(file) in wanted), key=lambda file: seconds[file])

    def _seconds(self) -> dict[str, float]:
        """What the tests of the files that wait took the last time."""
        cache = getattr(self.config, "cache", None)  # absent where pytest runs without its plugin
        known = {} if cache is None else cache.get(SECONDS, {})
        return {file: sum(known.get(test, guessed(test)) for test in tests) for file, tests in self.workqueue.items()}


class Stopwatch:
    """Remembers what each test took, for the next run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        cache = getattr(self._config, "cache", None)
        if cache is not None:
            cache.set(SECONDS, {**cache.get(SECONDS, {}), **{test: round(s, 2) for test, s in self._seconds.items()}})

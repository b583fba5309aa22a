"""What of a run waits for what, and how pieces of work are done side by side. Nothing here starts Spark."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.runs import running, side_by_side
from patternlake.jobs.runs import steps as job_steps
from patternlake.jobs.runs.steps import Step
from patternlake.udfs.errors import ArgumentError, StateError

CONFIGURATION = """
database: lake
location: /lake
streams:
  a: {source: {format: json, path: a}, time: at, name: what, attributes: {v: double}}
  b: {source: {format: json, path: b}, time: at, name: what}
sketches: {a: {}, b: {}}
trends:
  t: {stream: a, query: "PATTERN x+ s[] WHERE s[i].v > s[i-1].v WITHIN 1 DAY"}
groups:
  g: {stream: b, pattern: "x, y", within: 3}
subscriptions:
  m: {stream: a, query: "x ; y WITHIN 1 DAY"}
evaluate: {train: [2013-01-01, 2013-07-01], test: [2013-07-01, 2014-01-01]}
"""
LONG = 60
"""Seconds after which a test that would wait for ever fails."""


class Pool:
    """Threads without Spark; what waits for `interrupted` ends when it is interrupted."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.interrupted = threading.Event()
        self.closed = False
        self._pool = ThreadPoolExecutor(most)

    def submit(self, work: Callable[[], Any]) -> Future[Any]:
        return self._pool.submit(work)

    def interrupt(self) -> None:
        self.interrupted.set()

    def close(self) -> None:
        self._pool.shutdown()
        self.closed = True


def waits(text: str = CONFIGURATION) -> dict[str, set[str]]:
    configuration = Configuration.from_text(text)
    planned = job_steps.steps(configuration)
    names = [f"{step.job} {step.object}" for step in planned]
    waits = job_steps.find_waits(planned, configuration)
    return {name: {names[place] for place in places} for name, places in zip(names, waits, strict=True)}


def test_a_job_waits_for_the_ingest_of_its_stream_and_for_what_comes_before_it_of_its_object() -> None:
    kept = {
        "ingest a": set(),
        "ingest b": set(),
        "sketch a": {"ingest a"},
        "sketch b": {"ingest b"},
        "trends t": {"ingest a"},
        "groups g": {"ingest b"},
        "predict a": {"ingest a", "sketch a"},
        "predict b": {"ingest b", "sketch b"},
        "evaluate a": {"ingest a", "sketch a", "predict a"},
    }
    assert waits() == {**kept, "maintain a": set(kept), "maintain b": set(kept)}


def test_an_alert_waits_for_the_job_whose_rows_it_tells() -> None:
    found = waits(f"{CONFIGURATION}alerts: {{x: {{of: forecast, name: m}}, y: {{of: group, name: g}}}}")
    assert found["alerts x"] == {"ingest a", "predict a"}
    assert found["alerts y"] == {"ingest b", "groups g"}


def test_a_job_that_is_run_alone_waits_for_nothing() -> None:
    configuration = Configuration.from_text(CONFIGURATION)
    planned = job_steps.steps(configuration, "sketch")
    assert job_steps.find_waits(planned, configuration) == [set(), set()]


@pytest.mark.parametrize(
    ("source", "within"),
    [
        ("{table: lake_internal.sketch_nodes_log}", True),
        ("{table: lake.group_matches}", True),
        ("{table: spark_catalog.`LAKE_INTERNAL`.sketch_nodes_log}", True),
        ("{table: sketch_nodes_log}", True),
        ("{format: delta, path: /lake/sketch_nodes_log}", True),
        ("{table: other_internal.sketch_nodes_log}", False),
        ("{format: delta, path: /lake_of_others/t}", False),
    ],
)
def test_a_stream_that_reads_tables_of_the_database_waits_for_those_before_it_and_all_jobs_for_it(
    source: str, within: bool
) -> None:
    found = waits(CONFIGURATION.replace("{format: json, path: b}", source))
    assert found["ingest b"] == ({"ingest a"} if within else set())
    assert found["trends t"] == ({"ingest a", "ingest b"} if within else {"ingest a"})


def outcomes(
    after: Sequence[Collection[int]], work: Callable[[int], Callable[[], Any] | None], crew: side_by_side.Crew
) -> list[tuple[int, Any]]:
    return [(each.number, each.error or each.result) for each in side_by_side.run_each(after, work, crew)]


def test_what_is_independent_is_at_work_at_the_same_time() -> None:
    together = threading.Barrier(3)
    found = outcomes([(), (), ()], lambda number: lambda: together.wait(LONG), Pool(3))
    assert {number for number, _ in found} == {0, 1, 2}
    assert sorted(result for _, result in found) == [0, 1, 2], "each has passed the barrier"


def test_a_piece_begins_when_those_that_it_waits_for_have_ended_and_others_need_not_wait() -> None:
    ended: list[int] = []
    third = threading.Event()

    def work(number: int) -> Callable[[], None]:
        begun_after = list(ended)
        assert number != 2 or begun_after == [1]

        def do() -> None:
            if number == 0:
                assert third.wait(LONG), "the third waits for the second alone"
            if number == 2:
                third.set()

        return do

    for each in side_by_side.run_each([(), (), (1,)], work, Pool(2)):
        assert each.error is None
        ended.append(each.number)
    assert sorted(ended) == [0, 1, 2]
    assert ended[0] == 1


def test_no_more_are_at_work_than_asked_for() -> None:
    lock, at_work, seen = threading.Lock(), [0], []

    def do() -> None:
        with lock:
            at_work[0] += 1
            seen.append(at_work[0])
        threading.Event().wait(0.01)
        with lock:
            at_work[0] -= 1

    assert len(outcomes([()] * 12, lambda number: do, Pool(3))) == 12
    assert max(seen) <= 3


def test_the_caller_itself_does_one_after_another_in_order() -> None:
    here = threading.get_ident()
    done: list[int] = []

    def work(number: int) -> Callable[[], int]:
        assert done == list(range(number)), "the one before has ended"

        def do() -> int:
            assert threading.get_ident() == here
            done.append(number)
            return number * number

        return do

    assert outcomes([()] * 3, work, side_by_side.Caller()) == [(0, 0), (1, 1), (2, 4)]


def test_what_is_left_out_holds_nobody_up() -> None:
    found = outcomes([(), (0,)], lambda number: None if number == 0 else lambda: "done", side_by_side.Caller())
    assert found == [(0, None), (1, "done")]


def test_after_an_error_nothing_begins_and_what_is_at_work_is_done_to_its_end() -> None:
    failed = threading.Event()
    begun: list[int] = []

    def work(number: int) -> Callable[[], str]:
        begun.append(number)

        def fail() -> str:
            failed.set()
            raise StateError("it failed")

        def go_on() -> str:
            assert failed.wait(LONG)
            return "done"

        return fail if number == 0 else go_on

    pool = Pool(2)
    found = dict(outcomes([(), (), ()], work, pool))
    assert str(found.pop(0)) == "it failed"
    assert found == {1: "done"}
    assert begun == [0, 1]
    assert pool.closed
    assert not pool.interrupted.is_set()


def test_an_interrupt_interrupts_what_is_at_work_and_waits_for_its_end() -> None:
    pool, over = Pool(2), threading.Event()

    def interrupted() -> None:
        raise KeyboardInterrupt

    def at_work() -> None:
        assert pool.interrupted.wait(LONG)
        over.set()

    with pytest.raises(KeyboardInterrupt):
        outcomes([(), ()], lambda number: (at_work, interrupted)[number], pool)
    assert over.is_set()
    assert pool.closed


def test_who_stops_listening_interrupts_what_is_at_work() -> None:
    pool, over = Pool(2), threading.Event()

    def at_work() -> None:
        assert pool.interrupted.wait(LONG)
        over.set()

    endings = side_by_side.run_each([(), ()], lambda number: (at_work, lambda: None)[number], pool)
    assert next(endings).number == 1
    endings.close()
    assert over.is_set()


@pytest.mark.parametrize("asked", [0, -1, 1.5, True, "2"])
def test_how_many_is_a_whole_number_from_1(asked: Any) -> None:
    with pytest.raises(ArgumentError, match=f"side_by_side = {asked!r} is not how many jobs may run at once; a whole"):
        side_by_side.check(asked)


@pytest.mark.parametrize(
    ("asked", "cores", "pieces", "most"),
    [(None, 1, 9, 1), (None, 2, 9, 1), (None, 6, 9, 3), (None, 64, 9, 4), (None, 64, 3, 3), (8, 2, 9, 8), (1, 8, 9, 1)],
)
def test_without_a_wish_there_are_half_as_many_as_cores_and_four_at_most(
    asked: int | None, cores: int, pieces: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_by_side, "_is_pinned", lambda: True)
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=cores))
    found = side_by_side.crew(spark, asked, pieces)
    assert found.most == most
    found.close()


def test_threads_that_are_not_those_of_the_jvm_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "_is_pinned", lambda: False)
    assert side_by_side.crew(SimpleNamespace(), 4, 4).most == 1  # type: ignore[arg-type]


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Pool:
    """The threads of all runs."""
    pool = Pool(3)
    monkeypatch.setattr(side_by_side, "crew", lambda *given: pool)
    return pool


def doing(monkeypatch: pytest.MonkeyPatch, work: Callable[[str, str], Summary], finished: list[Any]) -> None:
    """Let all jobs do this."""

    def of(job: str) -> Any:
        return lambda database, name, configuration, rebuild: work(job, name)

    for name, job in job_steps.JOBS.items():
        finish = None if job.finish is None else lambda database, names: finished.append(list(names))
        monkeypatch.setitem(
            job_steps.JOBS, name, job_steps.Job(job.objects, of(name), job.maintains, finish, job.stream)
        )


def performed(text: str = CONFIGURATION, job: str = job_steps.ALL) -> Any:
    configuration = Configuration.from_text(text)
    database: Any = SimpleNamespace(spark=None, location="/lake", direct=None)
    return running.perform(database, configuration, job_steps.steps(configuration, job))


def summary(job: str, name: str) -> Summary:
    return Summary(job, name, 1, 1, 1, 1, 0, 0.1)


def test_summaries_come_in_the_order_of_the_run_whoever_ends_first(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    b_ended = threading.Event()
    finished: list[Any] = []

    def work(job: str, name: str) -> Summary:
        if (job, name) == ("ingest", "a"):
            assert b_ended.wait(LONG)
        if (job, name) == ("sketch", "b"):
            b_ended.set()
        return summary(job, name)

    doing(monkeypatch, work, finished)
    planned = job_steps.steps(Configuration.from_text(CONFIGURATION))
    assert [Step(each.job, each.object) for each in performed()] == planned
    assert finished == [["a", "b"]]


def told_before(error: type[Exception], run: Any) -> tuple[list[tuple[str, str]], str]:
    """The summaries of a run that fails, and its error."""
    told: list[tuple[str, str]] = []
    try:
        for each in run:
            told.append((each.job, each.object))
    except error as failure:
        return told, str(failure)
    raise AssertionError(f"no {error.__name__} after {told}")


def test_the_error_that_is_raised_is_the_first_of_the_run_and_the_log_tells_the_others(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first_begun, second_failed = threading.Event(), threading.Event()
    finished: list[Any] = []

    def work(job: str, name: str) -> Summary:
        if (job, name) == ("sketch", "a"):
            first_begun.set()
            assert second_failed.wait(LONG)
            raise StateError("too little memory")
        if (job, name) == ("sketch", "b"):
            assert first_begun.wait(LONG)
            second_failed.set()
            raise ZeroDivisionError("division by zero")
        return summary(job, name)

    doing(monkeypatch, work, finished)
    with caplog.at_level(logging.ERROR, "patternlake.jobs.runs.running"):
        told, said = told_before(StateError, performed())
    assert said == "sketch of 'a': too little memory"
    assert [record.getMessage() for record in caplog.records] == ["sketch of 'b': ZeroDivisionError: division by zero"]
    assert told[:2] == [("ingest", "a"), ("ingest", "b")]
    assert [job for job, _ in told if job in ("predict", "evaluate", "maintain")] == []
    assert finished == []


def test_what_was_published_beside_an_error_is_told_before_it(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = threading.Event()

    def work(job: str, name: str) -> Summary:
        if name == "a":
            failed.set()
            raise StateError("no such file")
        assert failed.wait(LONG)
        return summary(job, name)

    doing(monkeypatch, work, [])
    told, said = told_before(StateError, performed(job="ingest"))
    assert (told, said) == ([("ingest", "b")], "ingest of 'a': no such file")

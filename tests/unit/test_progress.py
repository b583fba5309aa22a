"""What a terminal is told of work: which pass over the rows is at work, how fast it is, and which lines are shown."""

from __future__ import annotations

import io
import sys
import threading
from contextlib import suppress
from contextvars import copy_context
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from patternlake.delta_tables.batches import phases
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.progress.lines import Phase, clock, line
from patternlake.jobs.progress.reporting import ShownProgress
from patternlake.jobs.progress.stages import Pass, Stage, current_pass


def stage(number: int, status: str = "ACTIVE", tasks: int = 4, done: int = 0, **counts: Any) -> Stage:
    return Stage(number, status, tasks, done, **counts)


def ended(number: int, **counts: Any) -> Stage:
    return stage(number, "COMPLETE", 4, 4, **counts)


class TestThePassAtWork:
    def test_before_the_first_stage_there_is_none(self) -> None:
        assert current_pass([], None) is None
        assert current_pass([stage(0, "PENDING"), stage(1, "SKIPPED")], 10) is None

    def test_a_stage_that_reads_input_has_the_rows_of_the_input_to_do(self) -> None:
        at_work = stage(0, read=30)
        assert current_pass([at_work], 100) == Pass(at_work, 100)
        assert current_pass([at_work], None) == Pass(at_work, None)

    def test_a_stage_that_receives_rows_has_to_do_what_others_have_sent_and_nobody_has_received(self) -> None:
        first, second = ended(0, read=100, sent=90), ended(1, received=90, sent=80)
        at_work = stage(2, received=20)
        assert current_pass([first, second, at_work], 100) == Pass(at_work, 80)

    def test_both_sides_of_a_join_are_to_do(self) -> None:
        at_work = stage(2, received=20)
        assert current_pass([ended(0, read=9, sent=9), ended(1, read=50, sent=50), at_work], None) == Pass(at_work, 59)

    def test_a_stage_that_has_not_begun_to_count_has_an_unknown_number_to_do(self) -> None:
        assert current_pass([stage(0)], 100) == Pass(stage(0), None)

    def test_a_stage_that_reads_input_and_receives_rows_has_an_unknown_number_to_do(self) -> None:
        at_work = stage(1, read=5, received=20)
        assert current_pass([ended(0, read=90, sent=90), at_work], 100) == Pass(at_work, None)

    def test_two_stages_that_run_at_once_share_what_was_sent_so_that_no_number_is_told(self) -> None:
        more, fewer = stage(1, tasks=8, received=5), stage(2, tasks=2, received=5)
        assert current_pass([ended(0, read=90, sent=90), more, fewer], None) == Pass(more, None)

    def test_a_number_that_was_passed_was_none(self) -> None:
        at_work = stage(0, read=101)
        assert current_pass([at_work], 100) == Pass(at_work, None)

    def test_a_stage_that_only_sums_up_what_was_read_leaves_the_rows_that_were_read(self) -> None:
        read = ended(0, read=10_000, sent=12)
        assert current_pass([read, stage(1, received=3)], 10_000) == Pass(read, None)

    def test_after_the_last_stage_that_which_took_in_most_stands(self) -> None:
        read, summed = ended(0, read=31, sent=2), ended(1, received=2)
        assert current_pass([read, summed], None) == Pass(read, None)

    def test_after_a_write_what_was_written_stands(self) -> None:
        read, wrote = ended(0, read=31, sent=30), ended(1, received=30, written=30)
        assert current_pass([read, wrote], 31) == Pass(wrote, None)

    def test_a_stage_that_failed_counts_for_nothing(self) -> None:
        assert current_pass([stage(0, "FAILED", read=20)], None) is None


BEGUN = 1_000.0


def phase(*looks: tuple[float, int, int], wanted: int | None = None, tasks: int = 4) -> str:
    """What is told after some looks: seconds since the stage began, rows and tasks that were done by then."""
    told = Phase("writing events")
    for seconds, rows, done in looks:
        told.see(Pass(stage(0, tasks=tasks, done=done, read=rows, begun=BEGUN), wanted), BEGUN + seconds)
    return ", ".join(told.parts())


class TestWhatIsTold:
    def test_a_phase_alone(self) -> None:
        assert line("ingest flights", 75, Phase("reading")) == "ingest flights 1:15: reading"

    def test_no_phase_yet(self) -> None:
        assert line("ingest flights", 0, Phase()) == "ingest flights 0:00"

    def test_before_a_task_has_ended_no_rate_is_known(self) -> None:
        assert phase((5, 0, 0)) == "writing events, 0 of 4 tasks"
        assert phase((5, 0, 0), wanted=1_000) == "writing events"

    def test_rows_of_rows_with_rate_and_time_left(self) -> None:
        # 400,000 rows in 4 s are 100,000 rows/s; for the other 600,000 they take 6 s.
        assert phase((4, 400_000, 1), wanted=1_000_000) == (
            "writing events, 400,000 of 1,000,000 rows, 100,000 rows/s, 0:06 left"
        )

    def test_where_the_number_of_rows_is_unknown_tasks_tell_the_time_left(self) -> None:
        # One of four tasks in 10 s leaves three for 30 s.
        assert phase((10, 50_000, 1)) == "writing events, 50,000 rows, 1 of 4 tasks, 5,000 rows/s, 0:30 left"

    def test_between_two_changes_the_rate_stands_and_the_time_left_runs_down(self) -> None:
        looks = (4, 400_000, 1), (5, 400_000, 1), (7, 400_000, 1)
        assert phase(*looks, wanted=1_000_000) == (
            "writing events, 400,000 of 1,000,000 rows, 100,000 rows/s, 0:03 left"
        )

    def test_a_time_left_that_is_over_is_not_told(self) -> None:
        looks = (4, 400_000, 1), (11, 400_000, 1)
        assert phase(*looks, wanted=1_000_000) == "writing events, 400,000 of 1,000,000 rows, 100,000 rows/s"

    def test_a_rate_of_long_ago_is_not_told(self) -> None:
        looks = (4, 400_000, 1), (19, 400_000, 1)
        assert phase(*looks, wanted=1_000_000) == "writing events, 400,000 of 1,000,000 rows"

    def test_a_rate_over_less_than_a_second_is_not_told(self) -> None:
        assert phase((0.9, 900, 1), wanted=1_000) == "writing events, 900 of 1,000 rows"

    def test_the_next_stage_has_a_rate_of_its_own(self) -> None:
        told = Phase("writing events")
        told.see(Pass(stage(0, done=4, read=8_000, begun=BEGUN), 8_000), BEGUN + 4)
        told.see(Pass(stage(1, done=1, received=1_000, begun=BEGUN + 4), 8_000), BEGUN + 6)
        assert told.parts() == ["writing events", "1,000 of 8,000 rows", "500 rows/s", "0:14 left"]

    def test_a_stage_that_has_ended_tells_its_rows_alone(self) -> None:
        told = Phase("reading", unit="files")
        told.see(Pass(ended(0, read=3, begun=BEGUN), None), BEGUN + 4)
        assert told.parts() == ["reading", "3 files"]

    @pytest.mark.parametrize(
        ("seconds", "told"), [(0.9, "0:00"), (59.9, "0:59"), (60, "1:00"), (3_599, "59:59"), (3_600, "1:00:00")]
    )
    def test_durations(self, seconds: float, told: str) -> None:
        assert clock(seconds) == told

    @pytest.mark.parametrize(("rows", "told"), [(123_456, "12,300 rows/s"), (99, "9.9 rows/s"), (3, "0.3 rows/s")])
    def test_rates_have_no_more_digits_than_they_are_good_for(self, rows: int, told: str) -> None:
        assert phase((10, rows, 0), wanted=200_000, tasks=1).split(", ")[2] == told


class Session:
    """A session that only knows the tags of its jobs."""

    def __init__(self) -> None:
        self.tags: set[str] = set()
        self.sparkContext = SimpleNamespace(addJobTag=self.tags.add, removeJobTag=self.tags.discard)


@pytest.fixture
def screen() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=200)


def shown_on(screen: Console) -> str:
    return screen.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def at_work(progress: ShownProgress) -> list[str]:
    """The lines of the moment, without the time since the work began."""
    return [each.line().replace(" 0:00", "") for each in progress._at_work.values()]


def test_several_objects_at_work_have_a_line_each(screen: Console) -> None:
    here, there = threading.Event(), threading.Event()
    with ShownProgress(screen, Session()) as progress:  # type: ignore[arg-type]

        def other() -> None:
            progress.begin("sketch", "sky", 2, 2)
            with progress.working("sketch", "sky"):
                phases.at("sizing")
                here.set()
                there.wait(60)
            progress.end(Summary("sketch", "sky", 1, 1, 9, 9, 0, 0.1))

        thread = threading.Thread(target=other)
        progress.begin("ingest", "flights", 1, 2)
        with progress.working("ingest", "flights"):
            phases.at("reading")
            thread.start()
            here.wait(60)
            assert at_work(progress) == ["ingest flights (1 of 2): reading", "sketch sky (2 of 2): sizing"]
            phases.at("publishing", unit=None)
            there.set()
            thread.join(60)
            assert at_work(progress) == ["ingest flights (1 of 2): publishing"]
    assert "sketch sky: 9 rows in, 9 out, 0 quarantined (0.1 s)" in shown_on(screen)


def test_work_that_failed_leaves_no_line_and_no_tag(screen: Console) -> None:
    session = Session()
    with ShownProgress(screen, session) as progress:  # type: ignore[arg-type]
        progress.begin("ingest", "flights", 1, 1)
        with suppress(ZeroDivisionError), progress.working("ingest", "flights"):
            phases.at("reading")
            assert len(session.tags) == 1
            raise ZeroDivisionError
        assert at_work(progress) == []
        assert session.tags == set()


def test_each_phase_tags_its_jobs_anew_also_in_a_thread_with_a_copied_context(screen: Console) -> None:
    session = Session()
    with ShownProgress(screen, session) as progress, progress.working("ingest", "flights"):  # type: ignore[arg-type]
        phases.at("reading")
        first = set(session.tags)
        thread = threading.Thread(target=copy_context().run, args=(phases.at, "writing events"))
        thread.start()
        thread.join(60)
        assert len(session.tags) == 1
        assert session.tags != first
        assert at_work(progress) == ["ingest flights: writing events"]


def test_what_nobody_follows_is_told_to_nobody(screen: Console) -> None:
    phases.at("reading")
    phases.reads(3)
    session = Session()
    for quiet, console in [(True, screen), (False, Console(file=io.StringIO()))]:
        with ShownProgress(console, session, quiet=quiet) as progress:  # type: ignore[arg-type]
            progress.begin("ingest", "flights", 1, 1)
            with progress.working("ingest", "flights"):
                phases.at("reading")
                assert session.tags == set()
            progress.end(Summary("ingest", "flights", 1, 1, 9, 9, 0, 0.1))
        assert console.file.getvalue() == ""  # type: ignore[attr-defined]


def test_results_that_go_to_a_pipe_do_not_come_out_on_the_terminal(
    screen: Console, capsys: pytest.CaptureFixture[str]
) -> None:
    with ShownProgress(screen, Session()):  # type: ignore[arg-type]
        sys.stdout.write('{"job": "ingest"}\n')
    assert capsys.readouterr().out == '{"job": "ingest"}\n'
    assert "job" not in shown_on(screen)

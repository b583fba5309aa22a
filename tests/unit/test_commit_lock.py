"""The lock of a table: who may hold it, and what those are told who wait for it."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from patternlake.delta_tables.committing import commit_lock
from patternlake.delta_tables.committing.commit_lock import CommitLock, lock_of
from patternlake.udfs.errors import StateError

_HOLD = """
import fcntl, sys
file = open(sys.argv[1], "r+")
fcntl.flock(file, getattr(fcntl, sys.argv[2]))
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_by_another(lock: CommitLock, how: str) -> Iterator[subprocess.Popen[str]]:
    """The lock in the hands of another process."""
    with lock.alone():
        pass
    command = [sys.executable, "-c", _HOLD, lock.path, how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def lock(tmp_path: Path) -> CommitLock:
    (tmp_path / "events_log").mkdir()
    return lock_of(str(tmp_path), "events_log")


def test_a_stopped_process_is_named_once_patience_is_over(lock: CommitLock) -> None:
    with held_by_another(lock, "LOCK_EX") as process:
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        with pytest.raises(StateError) as caught, lock.together(patience=0.05):
            raise AssertionError("the lock is not to be had")
    text = str(caught.value)
    assert f"waited 0 s for the lock {lock.path}" in text
    assert f"process {process.pid} ({sys.executable} -c" in text
    assert "which is stopped) holds; end that process, or let it go on" in text


def test_a_long_wait_is_logged_before_it_is_an_error(
    lock: CommitLock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(commit_lock, "_WARNING", 0.0)
    with (
        held_by_another(lock, "LOCK_EX") as process,
        caplog.at_level(logging.WARNING),
        pytest.raises(StateError),
        lock.together(patience=0.05),
    ):
        raise AssertionError("the lock is not to be had")
    assert len(caplog.records) == 1
    assert f"process {process.pid}" in caplog.text


def test_the_lock_is_taken_when_its_holder_dies(lock: CommitLock) -> None:
    with held_by_another(lock, "LOCK_EX") as process:
        process.kill()
        process.wait()
        with lock.together(patience=0.0):
            pass


def test_those_who_commit_through_spark_hold_it_together_and_keep_others_out(lock: CommitLock) -> None:
    with held_by_another(lock, "LOCK_SH"), lock.together(patience=0.0), lock.alone(patience=0.0) as held:
        assert not held


@pytest.mark.parametrize(("folder", "file"), [(0o755, 0o600), (0o775, 0o660), (0o777, 0o666)])
def test_only_those_who_may_write_to_the_table_may_open_its_lock(lock: CommitLock, folder: int, file: int) -> None:
    os.chmod(lock.folder, folder)
    os.makedirs(os.path.dirname(lock.path))
    Path(lock.path).touch(0o644)
    with lock.alone() as held:
        assert held
        assert os.stat(lock.path).st_mode & 0o777 == file

"""From a server's start to the signal that ends it. Nothing here starts Spark."""

from __future__ import annotations

import logging
import os
import signal
from threading import Event, Timer
from types import SimpleNamespace
from typing import Any

import pytest

from patternlake.jobs.command_line.serving import until_told
from patternlake.udfs.errors import StateError


def server(drain: Any, alive: bool = True) -> Any:
    return SimpleNamespace(
        addresses=["JDBC: here", "Spark Connect: there"], alive=alive, drain=drain, close_doors=lambda: None
    )


def signalled(number: int) -> None:
    """A signal for this process, in a moment."""
    Timer(0.05, os.kill, (os.getpid(), number)).start()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_for_as_long_as_was_said(number: int) -> None:
    before = signal.getsignal(number)
    asked: list[float] = []
    told: list[str] = []

    def drain(seconds: float, cut: Event) -> int:
        asked.append(seconds)
        return 0

    signalled(number)
    until_told(server(drain), 7.0, told.append)
    assert asked == [7.0]
    assert told == ["JDBC: here", "Spark Connect: there", "no more connections; what runs may go on for 7 s"]
    assert signal.getsignal(number) is before, "what a signal did before, it does afterwards"


def test_a_second_signal_cuts_and_what_was_cut_is_told(caplog: pytest.LogCaptureFixture) -> None:
    def drain(seconds: float, cut: Event) -> int:
        signalled(signal.SIGTERM)
        assert cut.wait(60)
        return 3

    signalled(signal.SIGTERM)
    with caplog.at_level(logging.WARNING, logger="patternlake.jobs.command_line.serving"):
        until_told(server(drain), 60.0, lambda line: None)
    assert caplog.messages == ["3 queries were cut"]


def test_a_spark_that_ended_by_itself_is_an_error() -> None:
    def drain(seconds: float, cut: Event) -> int:
        raise AssertionError("there is nothing to drain")

    with pytest.raises(StateError, match="Spark's JVM ended by itself"):
        until_told(server(drain, alive=False), 60.0, lambda line: None)

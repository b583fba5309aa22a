"""What the shell does with what is typed, at a terminal of its own. Nothing here starts Spark."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from patternlake.jobs.command_line import shell

pty = pytest.importorskip("pty", reason="a pseudo-terminal needs a system that has them")
termios = pytest.importorskip("termios", reason="a pseudo-terminal needs a system that has them")

# Answers with the statement itself; 'wait' takes until it is interrupted.
SHELL = """
import sys, time
from patternlake.jobs.command_line import shell

def answer(statement):
    if statement == "wait":
        print("waiting", flush=True)
        time.sleep(60)
    print(f"<{statement}>", flush=True)

shell.converse(answer, lambda line: print(line, flush=True))
print("left", flush=True)
"""


class Terminal:
    """A person at a shell."""

    def __init__(self, state: Path) -> None:
        self._ours, theirs = pty.openpty()
        settings = termios.tcgetattr(theirs)
        settings[3] |= termios.NOFLSH  # or a ctrl-C can throw away what is printed in answer to it
        termios.tcsetattr(theirs, termios.TCSANOW, settings)
        environment = {**os.environ, "XDG_STATE_HOME": str(state), "TERM": "dumb", "INPUTRC": os.devnull}
        command = [sys.executable, "-c", SHELL]
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True,
            preexec_fn=lambda: __import__("fcntl").ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(theirs)
        self.seen = ""

    def sees(self, text: str) -> str:
        """Read until a text is there; what came before it."""
        while text not in self.seen:
            ready, _, _ = select.select([self._ours], [], [], 60)
            assert ready, f"{text!r} does not come, but {self.seen!r}"
            self.seen += os.read(self._ours, 4096).decode()
        before, _, self.seen = self.seen.partition(text)
        return before

    def types(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def interrupts(self, told: str) -> None:
        """Type ctrl-C until it is heard: one that comes just before the shell waits for input is not."""
        while told not in self.seen:
            self.types("\x03")
            # Its echo alone is no answer: a second ctrl-C would stop what is typed next.
            until = time.monotonic() + 10
            while told not in self.seen and select.select([self._ours], [], [], max(until - time.monotonic(), 0))[0]:
                self.seen += os.read(self._ours, 4096).decode()
        self.sees(told)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path)
    yield opened
    opened.close()


def test_statements_of_several_lines_are_answered_and_exit_leaves(terminal: Terminal) -> None:
    terminal.sees(shell.PROMPT)
    terminal.types("SELECT 'A ; B';\n")
    terminal.sees("<SELECT 'A ; B'>")
    terminal.sees(shell.PROMPT)
    terminal.types("SELECT\n")
    terminal.sees(shell.GOING_ON)
    terminal.types("1; SELECT 2;\n")
    terminal.sees("<SELECT\r\n1>")
    terminal.sees("<SELECT 2>")
    terminal.sees(shell.PROMPT)
    terminal.types("exit;\n")
    terminal.sees("left")
    assert terminal.process.wait(60) == 0


def test_ctrl_d_leaves(terminal: Terminal) -> None:
    terminal.sees(shell.PROMPT)
    terminal.types("\x04")
    terminal.sees("left")
    assert terminal.process.wait(60) == 0


@pytest.mark.processes
def test_ctrl_c_drops_what_was_typed_and_stops_what_runs(terminal: Terminal) -> None:
    terminal.sees(shell.PROMPT)
    terminal.types("SELECT 'never closed\n")
    terminal.sees(shell.GOING_ON)
    terminal.interrupts("interrupted")
    terminal.sees(shell.PROMPT)
    terminal.types("wait;\n")
    terminal.sees("waiting")
    terminal.interrupts("interrupted")
    terminal.sees(shell.PROMPT)
    terminal.types("SELECT 1;\n")
    terminal.sees("<SELECT 1>")


def test_what_was_typed_can_be_brought_back_in_the_next_shell(tmp_path: Path) -> None:
    pytest.importorskip("readline")
    first = Terminal(tmp_path)
    first.sees(shell.PROMPT)
    first.types("SELECT 42;\n")
    first.sees("<SELECT 42>")
    first.sees(shell.PROMPT)
    first.types("exit\n")
    first.sees("left")
    first.close()
    second = Terminal(tmp_path)
    second.sees(shell.PROMPT)
    second.types("\x10\x10\n")  # twice the line before: exit, then the question
    second.sees("<SELECT 42>")
    second.close()


def piped(*lines: str) -> tuple[list[str], list[str]]:
    """The statements of lines that come through a pipe, and what the shell says beside them."""
    told: list[str] = []
    return list(shell.read([f"{line}\n" for line in lines], told.append)), told


def test_statements_of_a_pipe_need_no_last_semicolon() -> None:
    assert piped("SELECT 1; SELECT", "2;", "SELECT 3") == (["SELECT 1", "SELECT\n2", "SELECT 3"], [])
    assert piped("-- nothing") == ([], [])


@pytest.mark.parametrize("leave", ["exit", "quit", " EXIT ; "])
def test_words_for_the_shell_need_no_semicolon_in_a_pipe_either(leave: str) -> None:
    assert piped("help", "SELECT 1;", "Help;", "", leave, "SELECT 2;") == (["SELECT 1"], [shell.HELP] * 2)
    assert piped("SELECT 1;", "-- the end", leave, "SELECT 2;") == (["SELECT 1"], [])
    # Inside of a statement they are its own.
    assert piped("SELECT 1 AS", "help", ";") == (["SELECT 1 AS\nhelp"], [])
    assert piped("/* not yet", leave, "*/ SELECT 2") == ([f"/* not yet\n{leave}\n*/ SELECT 2"], [])

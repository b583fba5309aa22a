"""The interactive shell of `patternlake sql`: one Spark, many statements, each ended by a semicolon."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from patternlake.jobs.command_line.statements import Statements

PROMPT = "patternlake> "
GOING_ON = "          -> "
WELCOME = "Statements end with a semicolon; help, exit or Ctrl-D, Ctrl-C drops what was typed or stops what runs."
HELP = """\
SQL, each statement ended by a semicolon; it may take several lines.
  SHOW TABLES;                            the views to read
  SELECT * FROM match_seq('stream', 'A ; B');
  exit                                    or quit, or Ctrl-D"""
_LEAVING = ("exit", "quit")
_HISTORY_LINES = 1000


def converse(answer: Callable[[str], object], tell: Callable[[str], None]) -> None:
    """Ask a person at a terminal for statements and answer them, until exit or Ctrl-D.

    Parameters
    ----------
    answer
        Answers a statement, or tells what is wrong with it; an interrupt ends only the statement.
    tell
        Shows a line that is no answer.
    """
    tell(WELCOME)
    statements = Statements()
    with_history = _history()
    while True:
        try:
            line = input(PROMPT if statements.empty else GOING_ON)
            word = _read_word(line) if statements.empty else None
            if word in _LEAVING:
                break
            if word is not None:
                tell(HELP)
                continue
            for statement in statements.add(line):
                answer(statement)
        except EOFError:
            tell("")
            break
        except KeyboardInterrupt:
            statements.rest()
            tell("interrupted")
    with_history()


def read(lines: Iterable[str], tell: Callable[[str], None]) -> Iterator[str]:
    """Read the statements of a text that comes line by line, until it ends or says exit.

    Parameters
    ----------
    lines
        The text; its last statement needs no semicolon.
    tell
        Shows what is no statement.
    """
    statements = Statements()
    for line in lines:
        word = _read_word(line) if statements.empty else None
        if word in _LEAVING:
            return
        if word is not None:
            tell(HELP)
            continue
        yield from statements.add(line)
    if rest := statements.rest():
        yield rest


def _read_word(line: str) -> str | None:
    """Return the word of a line that is for the shell, not for Spark; None where it has none."""
    word = line.strip().rstrip(";").rstrip().lower()
    return word if word in (*_LEAVING, "help") else None


def _history() -> Callable[[], None]:
    """Bring back what was typed in earlier shells; give what keeps it, with what is typed in this one."""
    try:
        import readline
    except ImportError:  # a Python that was built without it, as on Windows: typing works, arrow keys do not
        return lambda: None
    file = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "patternlake" / "sql_history"
    try:
        readline.read_history_file(file)
    except OSError:
        readline.clear_history()
    readline.set_history_length(_HISTORY_LINES)

    def keep() -> None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(file)
        except OSError as error:
            sys.stderr.write(f"the history of this shell is not kept: {error}\n")

    return keep

"""How a command ends: its exit code, its errors as lines on standard error, and the package's log between them."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from patternlake.jobs.terminal.messages import message

if TYPE_CHECKING:
    from rich.console import Console

INTERRUPTED = 130
_UsageError: Any = typer.BadParameter.__base__


def exit_code(app: typer.Typer, arguments: list[str]) -> int:
    """Run a command with some arguments; its exit code."""
    try:
        result = typer.main.get_command(app).main(arguments, prog_name="patternlake", standalone_mode=False)
    except _UsageError as error:
        path = "patternlake" if error.ctx is None else error.ctx.command_path
        typer.echo(f"{error.format_message().rstrip('.')}; see {path} --help", err=True)
        return 2
    return result if isinstance(result, int) else 0


@contextmanager
def report_failures(verbose: bool, *, has_work: bool = False) -> Iterator[Console]:
    """Turn errors into text on standard error and exit code 1; give the console that writes there.

    Where whoever read standard output has enough and closed it, that is no failure, unless the command has work to
    do beside telling, which ends with it.
    """
    from rich.console import Console

    console = Console(stderr=True)
    package = logging.getLogger("patternlake")
    handler = _ConsoleHandler(console)
    level = package.level
    package.addHandler(handler)
    package.setLevel(logging.INFO if verbose else logging.WARNING)
    try:
        yield console
    except KeyboardInterrupt:
        typer.echo("interrupted; nothing half-done is seen, run it again to go on", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # What Python still holds goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1 if has_work else 0) from None
    except Exception as error:
        if verbose:
            traceback.print_exception(error)
        typer.echo(message(error), err=True)
        raise typer.Exit(1) from None
    finally:
        package.removeHandler(handler)
        package.setLevel(level)


class _ConsoleHandler(logging.Handler):
    """Writes the package's log above a progress line that is being shown."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        told = f"{record.levelname.lower()}: {record.getMessage()}"
        self._console.print(told, markup=False, highlight=False, soft_wrap=True)

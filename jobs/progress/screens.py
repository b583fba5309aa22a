"""Where progress is shown: on a terminal, or in the output of a notebook's cell."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


class _Terminal:
    """Lines at the bottom of a terminal, which are replaced as work goes on, under others that stay."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live

        self._console = console
        # What goes to a pipe or a file must not come out on the terminal.
        redirected = sys.stdout.isatty()
        self._live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=redirected)
        self._live.start()

    def show(self, lines: Sequence[str]) -> None:
        """Replace what was shown last."""
        from rich.console import Group
        from rich.text import Text

        self._live.update(Group(*[Text(each, no_wrap=True, overflow="ellipsis") for each in lines]), refresh=True)

    def tell(self, line: str) -> None:
        """Write a line that stays."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Leave only what stays."""
        self.show(())
        self._live.stop()


class _Cell:
    """The same in one output of the cell that runs: any front end of Jupyter's can update it, without widgets."""

    def __init__(self) -> None:
        self._stays: list[str] = []
        self._shown: Any = None

    def show(self, lines: Sequence[str]) -> None:
        import IPython.display

        display: Any = IPython.display.display
        data = {"text/plain": "\n".join([*self._stays, *lines])}
        if self._shown is None:
            if lines or self._stays:
                self._shown = display(data, raw=True, display_id=True)
        else:
            self._shown.update(data, raw=True)

    def tell(self, line: str) -> None:
        self._stays.append(line)

    def close(self) -> None:
        self.show(())


Screen = _Terminal | _Cell


def screen_of(console: Console) -> Screen | None:
    """The screen that a console writes to; None where nobody looks."""
    if console.is_jupyter:
        return _Cell()
    return _Terminal(console) if console.is_terminal else None

"""A run's writes to Delta, counted, and stopped at one of them: by an error, by a kill, or until it may go on."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from patternlake.delta_tables import writes

OPERATIONS = ("append", "replace", "update", "update_matching", "delete")


class KilledError(Exception):
    """Stands for the end of a process where the process goes on: from here on the run must write nothing."""


class Writes:
    """The writes of one run, by name: ``append events``; a second one of its kind is ``append events (2)``.

    Parameters
    ----------
    stop
        Before which write to stop; ``end``: after the last one that has `last` as its name.
    deed
        What to do there.
    last
        Name of the run's last write.
    """

    def __init__(
        self, stop: str | None = None, deed: Callable[[], None] | None = None, last: str = "append publications"
    ) -> None:
        self.done: list[str] = []
        self.stopped = False
        self._stop = stop
        self._deed = deed or _die
        self._last = last
        self._seen: Counter[str] = Counter()

    @contextmanager
    def watched(self) -> Iterator[Writes]:
        """Watch all writes of this process for a while."""
        former = {name: getattr(writes, name) for name in OPERATIONS}
        for name, original in former.items():
            setattr(writes, name, functools.partial(self._write, name, original))
        try:
            yield self
        finally:
            for name, original in former.items():
                setattr(writes, name, original)

    def _write(self, operation: str, original: Callable[..., None], *given: Any, **named: Any) -> None:
        table = next(re.sub(r".*`(\w+)_log`", r"\1", value) for value in given if isinstance(value, str))
        what = f"{operation} {table}"
        self._seen[what] += 1
        if self._seen[what] > 1:
            what += f" ({self._seen[what]})"
        if what == self._stop:
            self._reach()
        elif self.stopped and self._deed is _die:
            _die()
        original(*given, **named)
        self.done.append(what)
        if self._stop == "end" and what == self._last:
            self._reach()

    def _reach(self) -> None:
        self.stopped = True
        self._deed()


def _die() -> None:
    raise KilledError

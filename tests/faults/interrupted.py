"""A run's writes to Delta, counted, and stopped at one of them: by an error, by a kill, or until it may go on."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from patternlake.delta_tables.writing import writes

OPERATIONS = ("append", "replace", "update", "update_matching", "delete")


class KilledError(Exception):
    """Stands for the end of a process where the process goes on: from here on the run must write nothing."""


class Writes:
    """The writes of one run, by name: ``append events``; a second one of its kind is ``append events (2)``.

    Parameters
    ----------
    stop
        Before which write to stop, by its name or by how many come before it; ``end``: after the last one that has
        `last` as its name.
    deed
        What to do there.
    last
        Name of the run's last write.
    """

    def __init__(
        self, stop: str | int | None = None, deed: Callable[[], None] | None = None, last: str = "append publications"
    ) -> None:
        self.done: list[str] = []
        self.stopped = False
        self.stopped_at = ""
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

    def _write(self, operation: str, original: Callable[..., Any], *given: Any, **named: Any) -> Any:
        table = next(re.sub(r".*`(\w+)_log`", r"\1", value) for value in given if isinstance(value, str))
        what = f"{operation} {table}"
        self._seen[what] += 1
        if self._seen[what] > 1:
            what += f" ({self._seen[what]})"
        if self._stop in (what, len(self.done)):
            self._reach(what)
        elif self.stopped and self._deed is _die:
            _die()
        result = original(*given, **named)
        self.done.append(what)
        if self._stop == "end" and what == self._last:
            self._reach(what)
        return result

    def _reach(self, what: str) -> None:
        if not self.stopped:
            self.stopped, self.stopped_at = True, what
        self._deed()


def _die() -> None:
    raise KilledError

"""Files and when they were changed last. Few are compared in the driver: to plan a job of Spark's takes longer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FEW = 256
"""So many files of a source are asked for one by one."""


@dataclass(frozen=True)
class FileTimes:
    """Addresses of files, and the moments of their last changes, in milliseconds.

    Attributes
    ----------
    few
        All of them; None where they are many.
    frame
        Makes a frame of all: ``path`` and ``modified``.
    """

    few: Sequence[tuple[str, int]] | None
    frame: Callable[[], DataFrame]

    def collect(self) -> Sequence[tuple[str, int]]:
        """All of them, however many."""
        if self.few is not None:
            return self.few
        return [(row["path"], row["modified"]) for row in self.frame().collect()]


def find_few(files: DataFrame) -> list[tuple[str, int]] | None:
    """Ask Spark's list of the files of a frame for the times of these, where they are few; no file is read.

    Parameters
    ----------
    files
        As a reader of Spark loads them.
    """
    plan: Any = files._jdf.queryExecution().analyzed()
    machine: Any = files.sparkSession._jvm
    none = getattr(getattr(machine.scala.collection.immutable, "Nil$"), "MODULE$")
    folders = plan.relation().location().listFiles(none, none)
    if folders.size() > _FEW:
        return None
    lists = [folders.apply(number).files() for number in range(folders.size())]
    sizes = [each.size() for each in lists]
    if sum(sizes) > _FEW:
        return None
    statuses = [each.apply(number) for each, size in zip(lists, sizes, strict=True) for number in range(size)]
    return [(str(each.getPath().toUri().toString()), int(each.getModificationTime())) for each in statuses]

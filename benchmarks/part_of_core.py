"""Processes that together have so much of a core, as on a small machine: by control groups of Linux, of either version.

Who may write them is the root user of a machine, or of a container that has its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import psutil

_ROOT = Path("/sys/fs/cgroup")
_PERIOD = 20_000
"""Microseconds in which the part is given out: short beside the steps that are measured."""
_numbers = count()


@contextmanager
def part_of_core(part: float, process: psutil.Process) -> Iterator[None]:
    """Let a process, its children and all that these start have so much of a core, all together.

    Raises
    ------
    OSError
        There are no control groups of processors here, or this user may not make one.
    """
    old = _ROOT / "cpu"
    root = old if old.is_dir() else _ROOT
    group = root / f"patternlake_{os.getpid()}_{next(_numbers)}"
    group.mkdir()
    try:
        quota = str(int(part * _PERIOD))
        if root == old:
            (group / "cpu.cfs_period_us").write_text(str(_PERIOD))
            (group / "cpu.cfs_quota_us").write_text(quota)
        else:
            (root / "cgroup.subtree_control").write_text("+cpu")
            (group / "cpu.max").write_text(f"{quota} {_PERIOD}")
        _move([process.pid, *(child.pid for child in process.children(recursive=True))], group)
        yield
    finally:
        _move((group / "cgroup.procs").read_text().split(), root)
        group.rmdir()


def _move(numbers: Sequence[int | str], group: Path) -> None:
    for number in numbers:
        with suppress(ProcessLookupError):
            (group / "cgroup.procs").write_text(str(number))

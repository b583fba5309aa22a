"""The command `patternlake` in a process of its own, which dies or waits before one of its writes.

Arguments: the write (see `Writes`), then ``kill`` or the folder in which to meet, then the command's own. A waiting
process leaves the file ``reached.<its id>`` in the folder, and goes on when the file ``go`` is there.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from patternlake.jobs.command_line import commands
from tests.faults.interrupted import Writes


def kill() -> None:
    """End this process and its JVM, which are a process group of their own, as a lost machine would."""
    os.killpg(0, signal.SIGKILL)
    time.sleep(60)


def meet(folder: Path) -> None:
    """Wait for the word to go on."""
    (folder / f"reached.{os.getpid()}").touch()
    until = time.monotonic() + 300
    while not (folder / "go").exists():
        if time.monotonic() > until:
            raise TimeoutError(f"nobody wrote {folder / 'go'}")
        time.sleep(0.02)


def main() -> None:
    """Run the command under watch."""
    stop, deed, *arguments = sys.argv[1:]
    met = Writes(stop, kill if deed == "kill" else lambda: meet(Path(deed)))
    with met.watched():
        commands.main(arguments)


if __name__ == "__main__":
    main()

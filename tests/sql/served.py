"""A server of the command line's, in a process of its own, for tests that ask it from outside."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition, Thread

_START = 900.0
_ADDRESS = re.compile(r"JDBC: jdbc:hive2://127\.0\.0\.1:(\d+)/(\w+)")
_CONNECT = re.compile(r"Spark Connect: sc://127\.0\.0\.1:(\d+)")


@dataclass
class Served:
    """The process, and what it says on standard error."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    port: int = 0
    connect_port: int = 0

    def __post_init__(self) -> None:
        self._said = Condition()
        self._ended = False
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._said:
                self.lines.append(line.rstrip("\n"))
                self._said.notify_all()
        with self._said:
            self._ended = True
            self._said.notify_all()

    def line(self, wanted: Callable[[str], object], seconds: float = 300.0) -> str:
        """The first line that is wanted, which may be yet to come."""
        with self._said:
            found = self._said.wait_for(lambda: any(map(wanted, self.lines)) or self._ended, seconds)
            assert found, "\n".join(self.lines)
            said = [line for line in self.lines if wanted(line)]
            assert said, "\n".join(self.lines)
            return said[0]

    def end(self) -> int:
        """SIGTERM, and the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=900)


@contextmanager
def serving(conf: Path, *arguments: str, folder: Path, master: str = "local[2]") -> Iterator[Served]:
    """`patternlake serve` at free ports of this machine, working in a folder; killed at the end, if it still runs."""
    command = [sys.executable, "-m", "patternlake.jobs.command_line", "serve", "--conf", str(conf)]
    ports = ["--port", "0", "--connect-port", "0"]
    environment = {**os.environ, "PATTERNLAKE_DRIVER_MEMORY": "2g", "PATTERNLAKE_MASTER": master}
    process = subprocess.Popen(
        [*command, *ports, *arguments], cwd=folder, env=environment, stderr=subprocess.PIPE, text=True
    )
    served = Served(process)
    try:
        address = _ADDRESS.search(served.line(_ADDRESS.search, _START))
        connect = _CONNECT.search(served.line(_CONNECT.search))
        assert address
        assert connect
        served.port, served.connect_port = int(address[1]), int(connect[1])
        yield served
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()

"""The command `patternlake serve`: a server from its start to the signal that ends it."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterable
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Any

from patternlake.jobs.command_line.local_spark import MASTER, hush, spark_output
from patternlake.udfs.errors import ArgumentError, StateError

if TYPE_CHECKING:
    from patternlake.jobs.configuration.file import Configuration

logger = logging.getLogger(__name__)

_QUERIES = "patternlake.sql_ext.serving.query_log"
_LOOK = 1.0
"""Seconds between looks at whether Spark still runs."""


def settings_of(given: Iterable[str]) -> dict[str, str]:
    """Settings from KEY=VALUE each.

    Raises
    ------
    ArgumentError
        One is not written so, or is given twice.
    """
    found: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise ArgumentError(f"{each!r} is no setting; KEY=VALUE would be right")
        if name in found:
            raise ArgumentError(f"the setting {name} is given twice")
        found[name] = value
    return found


def serve(
    configuration: Configuration,
    *,
    drain_seconds: float,
    verbose: bool,
    tell: Callable[[str], None],
    **doors: Any,
) -> None:
    """Serve until SIGTERM or Ctrl-C, then let what runs finish; a second signal cuts it.

    Parameters
    ----------
    configuration, doors
        As of `patternlake.serve`: host, ports, password file, what is allowed, settings.
    drain_seconds
        For how long queries may go on after the signal.
    verbose
        Let Spark's own log through.
    tell
        Shows a line.

    Raises
    ------
    ArgumentError, StateError
        As of `patternlake.serve`; or Spark ended by itself.
    """
    import patternlake

    if not verbose:
        hush()
    queries = logging.getLogger(_QUERIES)
    level = queries.level
    queries.setLevel(logging.INFO)
    master = os.environ.get(MASTER, "local[*]")
    try:
        with spark_output(verbose):
            server = patternlake.serve(configuration, master=master, **doors)
        with server:
            server.spark.sparkContext.setLogLevel("WARN" if verbose else "OFF")
            until_told(server, drain_seconds, tell)
    finally:
        queries.setLevel(level)


def until_told(server: Any, drain_seconds: float, tell: Callable[[str], None]) -> None:
    """Wait for SIGTERM or Ctrl-C, then drain.

    Raises
    ------
    StateError
        Spark ended by itself.
    """
    told, cut = Event(), Event()

    def hear(number: int, frame: FrameType | None) -> None:
        (cut if told.is_set() else told).set()

    before = {number: signal.signal(number, hear) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        for line in server.addresses:
            tell(line)
        while not told.wait(_LOOK):
            if not server.alive:
                raise StateError("Spark's JVM ended by itself; PATTERNLAKE_DRIVER_MEMORY gives it more memory")
        server.close_doors()
        tell(f"no more connections; what runs may go on for {drain_seconds:g} s")
        left = server.drain(drain_seconds, cut)
        if left:
            logger.warning("%d queries were cut", left)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""Starts Spark's JVM without what it says meanwhile: how jars were resolved, notes on the JVM, logging and libraries.

What it says is held back while it starts. Once it stands, it is dropped, and what comes later goes to standard error as
it would without this module; if it does not stand, all of it goes there first, so that nothing of a failure is lost.
What a JVM that stands logs is another matter: log4j2.properties beside this module says it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING

from patternlake.sql_ext.spark_start import class_archive, spark_folders
from patternlake.sql_ext.spark_start.class_archive import JAVA_OPTIONS

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkConf

_LOG4J2 = Path(__file__).with_name("log4j2.properties")
# All the places where the name of a log4j2 configuration can come from, but for the options of the session itself.
_LOG4J2_NAMED = ("LOG4J_CONFIGURATION_FILE", "LOG4J2_CONFIGURATION_FILE")
_LOG4J2_FORMATS = (".properties", ".xml", ".yaml", ".yml", ".json", ".jsn")
_SUBMIT_OPTIONS = "SPARK_SUBMIT_OPTS"
_STDERR = 2
_BLOCK = 1 << 16
_LAST_WORDS = 1.0


def start(conf: SparkConf) -> bool:
    """Start a JVM and a SparkContext in it, quietly; whether that was done.

    Where a JVM is there already, or is not this process' to start, nothing is done.

    Parameters
    ----------
    conf
        The context's configuration.

    Raises
    ------
    Exception
        Whatever pyspark raises if the JVM or the context does not start; what they said is on standard error then.
    """
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return False
    stderr = _Held()
    try:
        with _options_of_ours():
            gateway = launch_gateway(conf, popen_kwargs={"stderr": stderr.writable})  # type: ignore[no-untyped-call]
        stderr.close_writable()
        SparkContext(conf=conf, gateway=gateway)
    except BaseException:
        stderr.close_writable()
        stderr.release(tell=True)
        raise
    stderr.release(tell=False)
    return True


def end(gateway: JavaGateway) -> None:
    """End a JVM that this process has started, and wait until it has ended."""
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


@contextmanager
def _options_of_ours() -> Iterator[None]:
    """Let a JVM that is started meanwhile take our log4j2 configuration and archived classes, if the user has none."""
    before = os.environ.get(_SUBMIT_OPTIONS)
    logging = "" if users_log4j2(os.environ) else f"-Dlog4j2.configurationFile={_LOG4J2.as_uri()}"
    options = [option for option in (before, logging, class_archive.options(os.environ)) if option]
    # Not spark.driver.extraJavaOptions: given here, those of spark-defaults.conf would be lost. These come before all
    # other options, and of two that say the same the last one holds.
    os.environ[_SUBMIT_OPTIONS] = " ".join(options)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SUBMIT_OPTIONS]
        else:
            os.environ[_SUBMIT_OPTIONS] = before


def users_log4j2(environment: Mapping[str, str]) -> bool:
    """Whether the environment names a log4j2 configuration, or Spark's conf folder has one."""
    if any(environment.get(name) for name in _LOG4J2_NAMED):
        return True
    if any("log4j" in environment.get(name, "") for name in JAVA_OPTIONS):
        return True
    return any(file.suffix in _LOG4J2_FORMATS for file in spark_folders.conf(environment).glob("log4j2*"))


class _Held:
    """The standard error of a child process: held back until `release`, passed on from then on.

    Attributes
    ----------
    writable
        The descriptor that the child writes to.
    """

    def __init__(self) -> None:
        readable, self.writable = os.pipe()
        self._open = True
        # Where it leads now: who sends it elsewhere while the child starts wants the child's there for good.
        self._onward = os.dup(_STDERR)
        self._blocks: list[bytes] | None = []
        self._lock = Lock()
        self._reader = Thread(target=self._pass_on, args=(readable,), name="patternlake-jvm-stderr", daemon=True)
        self._reader.start()

    def close_writable(self) -> None:
        """Forget this process' own end, so that the child's end is the last one."""
        if self._open:
            os.close(self.writable)
            self._open = False

    def release(self, *, tell: bool) -> None:
        """Hold nothing back from here on; tell what was held, or drop it."""
        if tell:
            # A JVM that has ended has said all; one that still runs after this goes on saying it.
            self._reader.join(timeout=_LAST_WORDS)
        with self._lock:
            held, self._blocks = self._blocks, None
            if tell and held:
                sys.stderr.flush()
                self._write(b"".join(held))

    def _pass_on(self, readable: int) -> None:
        while block := os.read(readable, _BLOCK):
            with self._lock:
                if self._blocks is None:
                    self._write(block)
                else:
                    self._blocks.append(block)
        os.close(readable)

    def _write(self, text: bytes) -> None:
        while text:
            text = text[os.write(self._onward, text) :]

"""Spark's own cluster on this machine: a master and two workers of one core each, in processes of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyspark

_CLASSES = "org.apache.spark.deploy"
_PATIENCE = 120


class Cluster:
    """The processes, from their start to their end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        # Whoever runs tests may name a folder of settings, which are for drivers.
        self._environment = {name: value for name, value in os.environ.items() if name != "SPARK_CONF_DIR"}
        self._environment |= {"SPARK_HOME": str(Path(pyspark.__file__).parent), "PYSPARK_PYTHON": sys.executable}
        self.address = self._start("master", f"{_CLASSES}.master.Master", r"Starting Spark master at (spark://\S+)")
        for name in ("one", "other"):
            given = ("--cores", "1", "--memory", "2g", "--work-dir", str(folder / name), self.address)
            self._start(name, f"{_CLASSES}.worker.Worker", r"Successfully registered with master (\S+)", *given)

    def settings(self) -> dict[str, str]:
        """What a driver is told besides the address."""
        return {
            "spark.executor.memory": "1g",
            "spark.executor.cores": "1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }

    def executors(self) -> list[psutil.Process]:
        """The processes that run tasks."""
        children = [child for process in self._processes for child in psutil.Process(process.pid).children()]
        alive = [child for child in children if child.status() != psutil.STATUS_ZOMBIE]
        return [child for child in alive if "CoarseGrainedExecutorBackend" in " ".join(child.cmdline())]

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
            process.wait()

    def _start(self, name: str, of: str, ready: str, *given: str) -> str:
        """Start a process and wait for what it says when it is ready; the address in that."""
        log = self._folder / f"{name}.log"
        command = [f"{self._environment['SPARK_HOME']}/bin/spark-class", of, "--host", "127.0.0.1", "--port", "0"]
        with log.open("wb") as said:
            process = subprocess.Popen(
                [*command, "--webui-port", "0", *given], stdout=said, stderr=said, env=self._environment
            )
        self._processes.append(process)
        until = time.monotonic() + _PATIENCE
        while (found := re.search(ready, log.read_text(errors="replace"))) is None:
            assert process.poll() is None, f"{name} ended at its start: {log.read_text()[-2000:]}"
            assert time.monotonic() < until, f"{name} did not start"
            time.sleep(0.2)
        return found[1]

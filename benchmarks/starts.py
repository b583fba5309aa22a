"""What commands and sessions take from start to end, with archived classes of the JVM and without.

``python -m benchmarks.starts [--repeats N]`` lets processes take turns, each as a user starts it, on a small lake.
*with*: sessions find the archive that ``python -m patternlake.sql_ext.archive_classes`` has made before.
*without*: the environment says ``-Xshare:auto``, Java's own default, by which PatternLake names no archive.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from benchmarks.lakes import new_folder
from benchmarks.measuring import median, side_by_side
from benchmarks.sessions import CORES
from benchmarks.tables import console
from patternlake.sql_ext.spark_start import class_archive

CLICKS = """at,user,page
2025-03-03 09:00,ann,cart
2025-03-03 09:02,ben,cart
2025-03-03 09:04,ann,help
2025-03-03 09:05,ben,pay
2025-03-03 09:20,ann,leave
2025-03-03 09:31,ben,leave
"""
CONFIGURATION = """location: lake
streams:
  clicks:
    source: {format: csv, path: clicks, options: {header: true}}
    timezone: UTC
    time: timestamp(at)
    name: page
    key: user
sketches:
  clicks: {keyed: true}
"""
QUESTION = "SELECT * FROM match_seq('clicks', 'cart ; !pay ; leave PARTITION BY user WITHIN 1 HOUR')"
SESSION = """import patternlake
patternlake.session(location=None, database=None)"""
COMMAND = [sys.executable, "-m", "patternlake.jobs.command_line"]
PROCESSES = {
    "a session, nothing asked": [sys.executable, "-c", SESSION],
    "patternlake sql, a match_seq": [*COMMAND, "sql", "--conf", "clicks.yaml", QUESTION],
    "patternlake run all, nothing new": [*COMMAND, "run", "all", "--quiet", "--conf", "clicks.yaml"],
}


def main(repeats: Annotated[int, typer.Option(help="Processes of each kind.", min=1)] = 5) -> None:
    """Print seconds of whole processes."""
    environment = {**os.environ, "PATTERNLAKE_MASTER": f"local[{CORES}]"}
    if not class_archive.options(environment):
        sys.exit("no archive of classes is here: python -m patternlake.sql_ext.archive_classes")
    ways = {"with": environment, "without": {**environment, "SPARK_SUBMIT_OPTS": "-Xshare:auto"}}
    table = Table("a process from start to end", "without / with", "with, s", "without, s")
    with new_folder("starts") as folder:
        (folder / "clicks").mkdir()
        (folder / "clicks" / "first.csv").write_text(CLICKS)
        (folder / "clicks.yaml").write_text(CONFIGURATION)
        _run(PROCESSES["patternlake run all, nothing new"], folder, environment)
        for name, command in PROCESSES.items():
            actions: dict[str, Callable[[], None]] = {
                way: partial(_run, command, folder, given) for way, given in ways.items()
            }
            taken = {way: median(each) for way, each in side_by_side(actions, repeats).items()}
            ratio = taken["without"] / taken["with"]
            table.add_row(name, f"{ratio:.2f}", f"{taken['with']:.1f}", f"{taken['without']:.1f}")
    console().print(table)


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)


if __name__ == "__main__":
    typer.run(main)

"""What a month of the demo costs its jobs: seconds, Spark jobs and commits, and in which phases the seconds go.

    python -m benchmarks.months [--before N] [--months N] [--keep FOLDER] [--phases]

The lake has taken in the months before; then a session starts, and `run all` takes one month after the other, each
about 28,000 flights, 990 reports of the sky and 90 of days, and at last nothing: one job after the other, so that what
is counted is the job's. The first month of the session is cold: its classes and kernels are loaded with it.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from pyspark.sql import SparkSession
from rich.table import Table

import patternlake
from benchmarks.flight_machines import CONFIGURATION, DEMO
from benchmarks.lakes import new_folder
from benchmarks.sessions import spark_session
from benchmarks.tables import console
from patternlake.delta_tables.batches import phases
from patternlake.jobs.batches.summary import Summary


class Reports:
    """The demo's files, as they arrive month by month."""

    def __init__(self, folder: Path) -> None:
        sys.path.insert(0, str(DEMO))
        from deliver import Deliveries
        from heat import DailyMaxima
        from sky import Weather

        self.folder = folder
        self._flights, self._sky, self._days = Deliveries(), Weather(), DailyMaxima()

    def write(self, month: int) -> None:
        """Write a month's files."""
        self._flights.write(month, self.folder / "data")
        for reports in (self._sky, self._days):
            reports.write(range(month, month + 1), self.folder / "weather")

    def configuration(self) -> Path:
        """The demo's configuration, over these files and a lake beside them."""
        tree = yaml.safe_load(CONFIGURATION.read_text())
        for name, source in (("flights", "data"), ("sky", "weather"), ("days", "weather")):
            tree["streams"][name]["source"]["path"] = str((self.folder / source).resolve())
        tree |= {"location": str((self.folder / "state").resolve())}
        path = self.folder / "lake.yaml"
        path.write_text(yaml.safe_dump(tree))
        return path


@dataclass
class Step:
    """One job on one object."""

    job: str
    object: str
    seconds: float = 0.0
    spark_jobs: int = 0
    commits: int = 0
    phases: list[tuple[str, float]] = field(default_factory=list)


class Measured:
    """Progress that measures each step, and its phases."""

    def __init__(self, spark: SparkSession, state: Path) -> None:
        self.steps: list[Step] = []
        self._spark, self._state = spark, state

    def begin(self, job: str, object: str, number: int, total: int) -> None:
        """Nothing: `working` is told the same in the thread that works."""

    @contextmanager
    def working(self, job: str, object: str) -> Iterator[None]:
        """Measure the block as one step."""
        step = Step(job, object)
        begun, jobs, commits = time.perf_counter(), self._spark_jobs(), self._commits()
        try:
            with phases.followed_by(_Phases(step)):
                yield
        finally:
            ended = time.perf_counter()
            step.seconds = ended - begun
            step.spark_jobs = self._spark_jobs() - jobs
            step.commits = self._commits() - commits
            ends = [at for _, at in step.phases[1:]] + [ended] * bool(step.phases)
            step.phases = [(name, end - at) for (name, at), end in zip(step.phases, ends, strict=True)]
            self.steps.append(step)

    def end(self, summary: Summary) -> None:
        """Nothing more."""

    def _spark_jobs(self) -> int:
        context: Any = self._spark._jsc
        return int(context.sc().dagScheduler().nextJobId())

    def _commits(self) -> int:
        return sum(1 for _ in self._state.glob("*/_delta_log/*.json"))


@dataclass
class _Phases:
    step: Step

    def at(self, phase: str, unit: str | None) -> None:
        self.step.phases.append((phase, time.perf_counter()))

    def reads(self, rows: int | None) -> None:
        """Of no interest here."""


def main(
    before: Annotated[int, typer.Option("--before", help="months that the lake has taken in before")] = 6,
    months: Annotated[int, typer.Option("--months", help="months that are measured, one by one; 0: only prepare")] = 3,
    keep: Annotated[
        Path | None, typer.Option("--keep", help="folder in which the lake before is kept, for later runs")
    ] = None,
    shown: Annotated[bool, typer.Option("--phases", help="also the seconds of each phase")] = False,
) -> None:
    """Measure and print tables."""
    with new_folder("months") as folder:
        reports = Reports(folder)
        path = str(reports.configuration())
        kept = None if keep is None else keep / f"before_{before}"
        if kept is not None and kept.exists():
            for name in ("data", "weather", "state"):
                shutil.copytree(kept / name, folder / name)
        else:
            for month in range(1, before + 1):
                reports.write(month)
            with spark_session(folder) as spark:
                patternlake.run(spark, path)
            if kept is not None:
                for name in ("data", "weather", "state"):
                    shutil.copytree(folder / name, kept / name)
        if not months:
            return
        with spark_session(folder) as spark:
            found: dict[str, list[Step]] = {}
            for month in range(before + 1, before + months + 1):
                reports.write(month)
                found[f"month {month}"] = _run(spark, path, folder / "state")
            found["nothing"] = _run(spark, path, folder / "state")
        _tell(found, phases_too=shown)


def _run(spark: SparkSession, path: str, state: Path) -> list[Step]:
    measured = Measured(spark, state)
    patternlake.run(spark, path, progress=measured, side_by_side=1)
    return measured.steps


def _tell(found: dict[str, list[Step]], *, phases_too: bool) -> None:
    table = Table("job", "object", *(f"{name}: s" for name in found), "Spark jobs", "commits")
    *_, last, _ = found.values()
    for number, step in enumerate(last):
        seconds = [f"{steps[number].seconds:.2f}" if number < len(steps) else "" for steps in found.values()]
        table.add_row(step.job, step.object, *seconds, str(step.spark_jobs), str(step.commits))
    sums = [f"{sum(step.seconds for step in steps):.2f}" for steps in found.values()]
    table.add_row("all", "", *sums, str(sum(step.spark_jobs for step in last)), str(sum(step.commits for step in last)))
    console().print(table)
    if phases_too:
        for step in filter(lambda step: step.phases, last):
            told = ", ".join(f"{name} {seconds:.2f}" for name, seconds in step.phases)
            console().print(f"{step.job} {step.object}: {told}")


if __name__ == "__main__":
    typer.run(main)

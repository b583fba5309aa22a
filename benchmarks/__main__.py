"""`python -m benchmarks [--large] [--quick] [--only NAME …]`: every figure beside its baseline from the same run."""

from __future__ import annotations

import importlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.tables import console, show_tables

FOLDER = Path("build/bench")
ROOT = Path(__file__).resolve().parent.parent
PARTS = (
    *("jobs", "queries", "accuracy", "warm", "trends", "groups", "machines"),
    *("funnels", "absences", "row_patterns"),
)
MILLION = 1_000_000
QUICK = 100_000

app = typer.Typer(add_completion=False, help=__doc__, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Run:
    """One measuring process: a part of the benchmark at one size, with the arguments of its `measure`."""

    part: str
    events: int
    count: int
    more: tuple[str, ...] = ()

    @property
    def file(self) -> Path:
        """Where its figures are written."""
        return FOLDER / ("_".join((self.part, str(self.events), *self.more)) + ".json")

    @property
    def arguments(self) -> list[str]:
        """Arguments of the process."""
        return ["run", self.part, str(self.events), str(self.count), *self.more]


def planned(parts: tuple[str, ...], *, large: bool, quick: bool) -> Iterator[Run]:
    """All runs, in order."""
    for part in parts:
        if part == "jobs":
            yield from (
                [Run("jobs", QUICK, 3, ("parquet",))]
                if quick
                else [
                    Run("jobs", MILLION, 5, ("parquet",)),
                    Run("jobs", 10 * MILLION, 3, ("parquet",)),
                    Run("jobs", MILLION, 5, ("csv",)),
                ]
            )
        elif part == "queries":
            sizes = [(QUICK, 3)] if quick else [(MILLION, 5), (10 * MILLION, 5)]
            yield from (Run("queries", events, repeats) for events, repeats in sizes)
            if large:
                yield Run("queries", 100 * MILLION, 3)
        elif part == "accuracy":
            yield Run("accuracy", QUICK if quick else MILLION, 5 if quick else 30)
        elif part in ("groups", "machines"):
            yield Run(part, QUICK if quick else MILLION, 3 if quick else 5)
        elif part in ("trends", "funnels", "absences", "row_patterns"):
            sizes = [(QUICK, 3)] if quick else [(MILLION, 5), (10 * MILLION, 3)]
            yield from (Run(part, events, repeats) for events, repeats in sizes)
        else:
            yield Run("warm", QUICK if quick else MILLION, 5 if quick else 11)


@app.command()
def measure(
    large: Annotated[bool, typer.Option("--large", help="also ask a hundred million events")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="100,000 events and few repetitions: does it work?")] = False,
    only: Annotated[
        list[str] | None, typer.Option("--only", help=f"a part: {', '.join(PARTS)}; may be repeated")
    ] = None,
) -> None:
    """Measure, print tables, write every figure to build/bench/figures.json."""
    unknown = sorted({*(only or ())} - {*PARTS})
    if unknown:
        raise typer.BadParameter(f"{', '.join(unknown)}: the parts are {', '.join(PARTS)}", param_hint="--only")
    os.chdir(ROOT)
    FOLDER.mkdir(parents=True, exist_ok=True)
    parts = tuple(part for part in PARTS if not only or part in only)
    figures: dict[str, Any] = {"machine": _machine()}
    failed = []
    differing: list[str] = []
    screen = console()
    for part in parts:
        found = []
        for run in planned((part,), large=large, quick=quick):
            screen.print(f"[dim]{part}, {run.events:,} events {' '.join(run.more)}…")
            run.file.unlink(missing_ok=True)
            log = run.file.with_suffix(".log")
            with log.open("w") as output:
                command = [sys.executable, "-m", "benchmarks", *run.arguments]
                code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
            if code:
                failed.append(run)
                screen.print(f"[red]{part}, {run.events:,} events: failed with exit code {code}; see {log}")
            else:
                found.append(json.loads(run.file.read_text()))
        figures[part] = found
        differing += [q["label"] for each in found for q in each.get("questions", ()) if "disagreement" in q]
        if found:
            screen.print(show_tables(part, found))
        (FOLDER / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
    screen.print(f"all figures: {FOLDER / 'figures.json'}")
    if failed or differing:
        raise typer.Exit(1)


def _machine() -> dict[str, Any]:
    import psutil

    return {
        "cores": psutil.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _run(part: str, events: int, count: int, *more: str) -> None:
    """Be the process of one run."""
    run = Run(part, events, count, more)
    figures = importlib.import_module(f"benchmarks.{part}").measure(events, count, *more)
    run.file.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        _run(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), *sys.argv[5:])
    else:
        app()

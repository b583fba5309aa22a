"""What a plan gains by what earlier calls saw: the first call of a pattern that is guessed wrong, and later ones.

    python -m benchmarks.learned_plans [--quick] [--warm] [--rounds N]

**Stream**: 20,000 events A, B and C, at random. `s` is that of the hour, so that events of one window agree in it, and
`x` falls all the time, so that hardly a B is less than a later C. Nothing but a run can tell: over the whole stream, as
`maintain` describes it, two events agree in `s` rarely, and one is less than another in half of all cases.

**Calls**: each in a new process, after a call of another pattern that has loaded what there is to load. *guessed*: with
nothing known, and `spark.patternlake.learn` off; *first*: with nothing known, as it is; *second*: the same pattern once
more in one process. All have the same rows, and all change their plan on the way where it is far off
(`spark.patternlake.replanFactor`); *stays*: *guessed* without that.

**A warm call** (`--warm`): of a small pattern with a condition, what functions remember dropped before each, with and
without `spark.patternlake.learn` in turn: what telling and looking costs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer
import yaml

import patternlake
from benchmarks.lakes import FOLDER, new_folder
from benchmarks.measuring import median, seconds, side_by_side
from benchmarks.sessions import ask, spark_session
from patternlake.jobs.configuration.file import Configuration
from patternlake.sql_ext.lakes.lake import LEARN, REPLAN_FACTOR

SEED = 25
PATTERN = "A ; B ; C WHERE A.s = B.s AND B.x < C.x WITHIN 1000 EVENTS"
SMALL = "A ; B WHERE A.x > -9 AND A.x < B.x WITHIN 20 EVENTS"
OTHER = "C ; B WHERE C.x > -9 AND C.x < B.x AND C.s = B.s WITHIN 20 EVENTS"
WAYS = ("stays", "guessed", "first", "second")
_START = 1_577_836_800_000_000
_SECOND = 1_000_000


def write_events(folder: Path, n: int) -> None:
    """The stream as a Parquet file that `ingest` reads."""
    rng = np.random.default_rng(SEED)
    names = rng.integers(0, 3, n)
    x = 0.05 * rng.random(n) - 0.01 * np.arange(n)
    columns = {
        "at": pa.array(_START + np.arange(n) * _SECOND, pa.int64()).cast(pa.timestamp("us", "UTC")),
        "name": pa.array(np.array(["A", "B", "C"])[names]),
        "x": pa.array(x),
        "s": pa.array([f"hour{place // 3600}" for place in range(n)]),
    }
    folder.mkdir(parents=True)
    pq.write_table(pa.table(columns), folder / "events.parquet")


def configuration(folder: Path) -> Configuration:
    """The stream."""
    stream = {
        "source": {"format": "parquet", "path": str(folder.resolve() / "source")},
        "time": "at",
        "name": "name",
        "attributes": {"x": "double", "s": "string"},
    }
    tree = {"database": "patternlake", "location": str(folder.resolve() / "state"), "streams": {"skewed": stream}}
    return Configuration.from_text(yaml.safe_dump(tree))


def question(pattern: str) -> str:
    """A call, as a query that looks at all of its rows."""
    return f"SELECT count(*), sum(hash(map_values(bindings))) FROM match_pattern('skewed', '{pattern}')"


def asked(folder: Path, way: str) -> dict[str, object]:
    """Be a process that asks once."""
    with spark_session(folder) as spark:
        spark.conf.set(LEARN, str(way in ("first", "second")).lower())
        if way == "stays":
            spark.conf.set(REPLAN_FACTOR, "0")
        ask(spark, question(OTHER))
        if way == "second":
            ask(spark, question(PATTERN))
        found: list[object] = []
        taken = seconds(lambda: found.extend(map(tuple, ask(spark, question(PATTERN)))))
        plan = spark.sql(f"SELECT plan FROM explain_pattern('skewed', '{PATTERN}') WHERE line = 1").collect()[0][0]
        return {"seconds": taken, "rows": found, "next plan": plan}


def in_a_process(folder: Path, way: str) -> dict[str, object]:
    """What a new process says."""
    command = [sys.executable, "-m", "benchmarks.learned_plans", "--be", way, "--folder", str(folder)]
    said = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    found: dict[str, object] = json.loads(said.splitlines()[-1])
    return found


def measure(n: int, rounds: int) -> None:
    """Ask, and print."""
    with new_folder(f"learned_plans_{n}") as folder:
        write_events(folder / "source", n)
        with spark_session(folder) as spark:
            patternlake.run(spark, configuration(folder), "ingest")
            patternlake.run(spark, configuration(folder), "maintain")
        taken: dict[str, list[float]] = {way: [] for way in WAYS}
        rows: set[str] = set()
        for _ in range(rounds):
            for way in WAYS:
                said = in_a_process(folder, way)
                taken[way].append(float(str(said["seconds"])))
                rows.add(str(said["rows"]))
                print(f"{way}: {said['seconds']:.2f} s, {said['rows']}, then {said['next plan']}", flush=True)
        if len(rows) != 1:
            raise RuntimeError(f"rows differ: {rows}")
        medians = {way: median(times) for way, times in taken.items()}
        for way, one in medians.items():
            print(f"{way:>8}: {one:6.2f} s, {one / medians['second']:5.1f} times the second")


def measure_warm(n: int, repeats: int) -> None:
    """Ask again and again, with and without learning."""
    with new_folder(f"learned_plans_{n}") as folder:
        write_events(folder / "source", n)
        with spark_session(folder) as spark:
            patternlake.run(spark, configuration(folder), "ingest")

            def call(learn: str) -> None:
                spark.conf.set(LEARN, learn)
                ask(spark, question(SMALL))

            ways = {"learning": lambda: call("true"), "not": lambda: call("false")}
            side_by_side(ways, 10)
            taken = side_by_side(ways, repeats)
            for way, times in taken.items():
                print(f"warm call, {way}: {median(times):.4f} s (least {min(times):.4f})")


def main(
    quick: Annotated[bool, typer.Option("--quick", help="6,000 events, one round: does it work?")] = False,
    rounds: Annotated[int, typer.Option("--rounds", help="how often each is asked")] = 3,
    warm: Annotated[
        bool, typer.Option("--warm", help="what learning costs a warm call, in the place of the calls")
    ] = False,
    be: Annotated[str, typer.Option("--be", hidden=True)] = "",
    folder: Annotated[Path, typer.Option("--folder", hidden=True)] = FOLDER,
) -> None:
    """Print the figures."""
    if be:
        print(json.dumps(asked(folder, be)), flush=True)
        return
    if warm:
        measure_warm(6_000, 20 * rounds)
    else:
        measure(6_000 if quick else 20_000, 1 if quick else rounds)


if __name__ == "__main__":
    typer.run(main)

"""Tables 5.1 and 5.2 of the thesis (Baltus 2021): sequences in logs of processes, beside an index of pairs of names.

    python -m benchmarks.process_logs [--quick] [--queries N] [--log 2020|2017 …] [--length N …] [--lake FOLDER]
        [--no-pairs]

With a lake, what is built stays in that folder, and only what is not there is built: queries of some lengths can be
asked at a time.

**Logs**: generated twins of those of the BPI challenges 2020 and 2017, of the same shape: 36,796 events of 19 names in
traces of 5.3 events, 1,202,267 of 26 in traces of 38. A process is a random Markov chain over the names, with a start
and an end; traces begin at random moments, and are long beside the time between two, so that they overlap. Events are
in the order of their times, as the thesis orders them.

**Queries**: of lengths 2 to 8, drawn from the log: names of a random trace at random places, in order; of a trace that
is shorter than the query, the rest are random names.

**Ours**: approach 1 of the thesis, all events together, `match_seq('log', 'a ; b ; …')` without verify, and approach 2,
of each trace, the same with `PARTITION BY key` on a keyed sketch. *exact*: approach 2 with verify.

**Pairs**: the way of SIESTA (Mavroudopoulos et al., the thesis' [25]), in plain Spark SQL: a Delta table has for each
pair of names and each trace the places of a and of the nearest b, then of the next a behind that and so on; a query
joins its pairs where one ends and the next begins. (That finds fewer rows than there are: of a b c b c, the second pair
of b and c is not asked for.) The table is partitioned by the names of pairs, so that a query reads those of its own.

**Seconds** of a query are the mean over the queries of a length, each asked once after all were asked before; what
functions remember is dropped before each. Bytes are those of files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import typer
import yaml
from pyspark.sql import SparkSession
from rich.table import Table

import patternlake
from benchmarks.lakes import new_folder
from benchmarks.measuring import seconds
from benchmarks.sessions import ask, spark_session
from benchmarks.tables import console
from patternlake.delta_tables.catalogue import TABLES
from patternlake.jobs.configuration.file import Configuration

LENGTHS = range(2, 9)
_START = 1_577_836_800_000_000
_SECOND = 1_000_000

PAIRS = """
WITH names AS (SELECT DISTINCT trace, name FROM log),
merged AS (
  SELECT log.trace, log.name AS a, names.name AS b, position, true AS first
  FROM log JOIN names ON log.trace = names.trace AND log.name <> names.name
  UNION ALL
  SELECT log.trace, names.name, log.name, position, false
  FROM log JOIN names ON log.trace = names.trace AND log.name <> names.name
),
before AS (
  SELECT *, lag(first) OVER (PARTITION BY trace, a, b ORDER BY position) AS after_a FROM merged
),
paired AS (
  SELECT *, last(CASE WHEN first AND NOT coalesce(after_a, false) THEN position END, true)
    OVER (PARTITION BY trace, a, b ORDER BY position) AS begin
  FROM before
),
alike AS (
  SELECT trace, name, position, row_number() OVER own AS number, lead(position) OVER own AS next
  FROM log WINDOW own AS (PARTITION BY trace, name ORDER BY position)
)
SELECT a, b, trace, begin, position AS end FROM paired WHERE NOT first AND after_a
UNION ALL
SELECT name, name, trace, position, next FROM alike WHERE number % 2 = 1 AND next IS NOT NULL
"""


@dataclass(frozen=True)
class Log:
    """The shape of a log: events, distinct names, mean events of a trace, and the seed of its twin."""

    name: str
    events: int
    names: int
    per_trace: float
    seed: int


LOGS = (Log("BPI 2020", 36_796, 19, 5.3, 2020), Log("BPI 2017", 1_202_267, 26, 38.0, 2017))


def twin(log: Log) -> pd.DataFrame:
    """Events of a generated log in the order of their times: time (microseconds), name, trace, position."""
    rng = np.random.default_rng(log.seed)
    follows = rng.dirichlet(np.full(log.names, 0.3), log.names)
    limits = np.cumsum(follows, axis=1)
    begin = np.cumsum(rng.dirichlet(np.full(log.names, 0.3)))
    # Every trace has an event, and goes on with the same chance after each.
    lengths = rng.geometric(1 / log.per_trace, int(2 * log.events / log.per_trace) + 10)
    lengths = lengths[: int(np.searchsorted(np.cumsum(lengths), log.events)) + 1]
    trace = np.repeat(np.arange(len(lengths)), lengths)[: log.events]
    place = np.arange(len(trace)) - np.searchsorted(trace, trace)
    names = np.zeros(len(trace), np.int64)
    drawn = rng.random(len(trace))
    at = np.flatnonzero(place == 0)
    names[at] = np.searchsorted(begin, drawn[at]).clip(max=log.names - 1)
    step = 0
    while len(at := np.flatnonzero(place == (step := step + 1))):
        names[at] = (limits[names[at - 1]] < drawn[at, None]).sum(axis=1).clip(max=log.names - 1)
    # A trace's events are a day apart in the mean, and some hundreds of traces are open at a time.
    starts = np.sort(rng.random(len(lengths))) * len(lengths) * log.per_trace * 86_400 / 300
    gaps = np.where(place == 0, 0.0, rng.exponential(86_400, len(trace)))
    passed = np.cumsum(gaps)
    times = starts[trace] + passed - passed[np.searchsorted(trace, trace)]
    order = np.argsort(times, kind="stable")
    return pd.DataFrame(
        {
            "at": (_START + times[order] * _SECOND).astype(np.int64) // 1000 * 1000,
            "name": np.array([f"act{number}" for number in range(log.names)])[names[order]],
            "trace": np.array([f"t{number}" for number in trace[order]]),
            "position": np.arange(1, len(trace) + 1),
        }
    )


def queries(events: pd.DataFrame, count: int, seed: int) -> Iterator[list[list[str]]]:
    """For each length so many queries, as names in order."""
    rng = np.random.default_rng(seed)
    by_trace = [group.to_numpy() for _, group in events.groupby("trace")["name"]]
    known = sorted(set(events["name"]))
    for length in LENGTHS:
        found = []
        for _ in range(count):
            names = by_trace[rng.integers(len(by_trace))]
            chosen = np.sort(rng.choice(len(names), min(length, len(names)), replace=False))
            found.append([*names[chosen], *rng.choice(known, length - len(chosen))])
        yield found


def written(events: pd.DataFrame, folder: Path) -> None:
    """The events as a Parquet file that `ingest` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = {
        "at": pa.array(events["at"].to_numpy(), pa.int64()).cast(pa.timestamp("us", "UTC")),
        "name": pa.array(events["name"]),
        "trace": pa.array(events["trace"]),
    }
    pq.write_table(pa.table(columns), folder / "log.parquet")


def configuration(folder: Path, events: int) -> Configuration:
    """The log as a stream, with a keyed sketch."""
    tree = {
        "database": "patternlake",
        "location": str(folder.resolve() / "state"),
        "streams": {
            "log": {
                "source": {"format": "parquet", "path": str(folder.resolve() / "source")},
                "time": "at",
                "name": "name",
                "key": "trace",
            }
        },
        "sketches": {"log": {"keyed": True, "expected_events": events, "memory": "4GB"}},
    }
    return Configuration.from_text(yaml.safe_dump(tree))


def size_of(folder: Path) -> int:
    """Bytes of the Parquet files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


def pairs_query(names: list[str]) -> str:
    """The join of a query's pairs."""
    steps = [f"(SELECT * FROM pairs WHERE a = '{a}' AND b = '{b}')" for a, b in pairwise(names)]
    joins = "".join(
        f" JOIN {step} p{number} ON p{number}.trace = p0.trace AND p{number}.begin = p{number - 1}.end"
        for number, step in enumerate(steps[1:], start=1)
    )
    return f"SELECT count(*), sum(p0.begin) FROM {steps[0]} p0{joins}"


def ways(names: list[str]) -> dict[str, str]:
    """The same query to all, as SQL."""
    pattern = " ; ".join(names)
    asked = "SELECT count(*), sum(first_position) FROM match_seq('log', '{}', max_matches => 100000000{})"
    return {
        "pairs": pairs_query(names),
        "approach 1": asked.format(pattern, ""),
        "approach 2": asked.format(f"{pattern} PARTITION BY key", ""),
        "exact": asked.format(f"{pattern} PARTITION BY key", ", verify => true"),
    }


def measure(log: Log, count: int, lengths: Sequence[int], lake: Path | None, pairs: bool) -> None:
    """Build, ask, and print a table like the thesis'."""
    name = f"process_log_{log.events}"
    with new_folder(name) if lake is None else nullcontext(lake / name) as folder:
        folder.mkdir(parents=True, exist_ok=True)
        _measured(log, count, lengths, folder, pairs)


def _measured(log: Log, count: int, lengths: Sequence[int], folder: Path, pairs: bool) -> None:
    events = twin(log)
    with spark_session(folder) as spark:
        spark.conf.set("spark.patternlake.exactWhenFew", "false")
        loaded = configuration(folder, log.events)
        steps: dict[str, Callable[[], object]] = {
            "source": lambda: written(events, folder / "source"),
            "ingest": partial(patternlake.run, spark, loaded, "ingest"),
            "sketch": partial(patternlake.run, spark, loaded, "sketch"),
            "pairs": lambda: _write_pairs(spark, folder / "pairs"),
        }
        if not pairs:
            del steps["pairs"]
        build = {}
        for step, action in steps.items():
            if not (done := folder / f"{step}.done").exists():
                build[step] = seconds(action, step)
                done.touch()
        if pairs:
            spark.read.format("delta").load(str(folder / "pairs")).createOrReplaceTempView("pairs")
        sizes = {
            "events": size_of(folder / "state" / TABLES["events"].log),
            "sketch": size_of(folder / "state" / TABLES["sketch_nodes"].log),
            "pairs": size_of(folder / "pairs"),
        }
        traces = events["trace"].nunique()
        title = f"twin of {log.name}: {len(events):,} events, {events['name'].nunique()} names, {traces:,} traces"
        made = ", ".join(f"{name} {taken:.1f} s" for name, taken in build.items()) or "before"
        held = ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in sizes.items())
        print(f"{title}\nbuilt: {made}\nfiles: {held}", flush=True)
        asked = dict(zip(LENGTHS, queries(events, count, log.seed), strict=True))
        _print_times(spark, title, {length: asked[length] for length in lengths}, pairs)


def _write_pairs(spark: SparkSession, path: Path) -> None:
    spark.table("events_log").selectExpr("key AS trace", "name", "position").createOrReplaceTempView("log")
    spark.sql(PAIRS).write.format("delta").mode("overwrite").partitionBy("a", "b").save(str(path))


def _print_times(spark: SparkSession, title: str, asked: Mapping[int, list[list[str]]], pairs: bool) -> None:
    names = [name for name in ways(["a", "b"]) if pairs or name != "pairs"]
    table = Table(title=f"{title}: mean seconds (rows) of a query")
    for column in ("length", *names):
        table.add_column(column, justify="right")
    for length, some in asked.items():
        taken: dict[str, list[float]] = {name: [] for name in names}
        rows: dict[str, list[int]] = {name: [] for name in names}
        for turn in range(2):
            for query in some:
                for name, text in ways(query).items():
                    if name not in names:
                        continue
                    start = time.perf_counter()
                    (row,) = ask(spark, text)
                    if turn:
                        taken[name].append(time.perf_counter() - start)
                        rows[name].append(int(row[0]))
        table.add_row(str(length), *(f"{np.mean(taken[name]):.3f} ({np.mean(rows[name]):,.0f})" for name in names))
    console().print(table)


def main(
    quick: Annotated[
        bool, typer.Option("--quick", help="a tenth of the small log, two queries of each length")
    ] = False,
    queries_: Annotated[int, typer.Option("--queries", help="of each length")] = 15,
    which: Annotated[list[int] | None, typer.Option("--log", help="2020 or 2017; both by default")] = None,
    length: Annotated[list[int] | None, typer.Option("--length", help="2 to 8; all by default")] = None,
    lake: Annotated[Path | None, typer.Option("--lake", help="a folder that keeps what is built")] = None,
    pairs: Annotated[bool, typer.Option(help="whether pairs are built and asked")] = True,
) -> None:
    """Print the tables."""
    small = LOGS[0]
    logs = (Log(small.name, small.events // 10, small.names, small.per_trace, small.seed),) if quick else LOGS
    for log in logs:
        if not which or log.seed in which:
            measure(log, 2 if quick else queries_, length or LENGTHS, lake, pairs)


if __name__ == "__main__":
    typer.run(main)

"""Tables 5.1 and 5.2 of the thesis (Baltus 2021): sequences in logs of processes, beside an index of pairs of names.

    python -m benchmarks.process_logs [--quick] [--queries N] [--log 2020|2017 …] [--length N …] [--lake FOLDER]

With a lake, what is built stays in that folder, and only what is not there is built: queries of some lengths can be
asked at a time.

**Logs** and **queries**: `benchmarks/process_log_twins.py`, twins of the two logs, and sequences drawn from them.

**What is asked**, each for all its rows, of a trace (but approach 1), a first and a last position:

- *pairs, joined* and *pairs, verified*: `benchmarks/name_pairs.py`. The second is exact, the first is not.
- *approach 1* of the thesis: all events together, ``match_seq('log', 'a ; b ; …', verify => false)``.
- *approach 2*: of each trace, the same with ``PARTITION BY key`` on a keyed sketch; positions are those of leaves.
- *exact*: approach 2 with verify, which must say the same rows as *pairs, verified*.

**Answers** are compared for each query: exact and verified pairs must be equal; a trace that joined pairs name must be
one of them; and a trace of the exact answer that approach 2 has not must need two events of one leaf in each of its
rows, which is all that the sketch may lose (docs/match_seq.md, "What is promised"). Otherwise the run fails.

**Seconds** of a query are the mean over the queries of a length, each asked once, in turns, after one of its length was
asked in all ways; what functions remember is dropped before each, and what Spark and the functions know of files
stays. Rows come to the driver as Arrow. Bytes are those of Parquet files.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
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
from benchmarks.name_pairs import joined, open_pairs, verified, write_pairs
from benchmarks.process_log_twins import LOGS, MOST_NAMES, Log, queries, twin
from benchmarks.sessions import ask_arrow, spark_session
from benchmarks.tables import console
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.jobs.configuration.file import Configuration

LENGTHS = range(2, 9)
LEAF = 100

# Seconds of the thesis' tables by length: of SIESTA's program, and of its own by approaches 1 and 2.
THESIS = {
    2020: {
        2: (0.0143, 0.0040, 0.0362),
        3: (0.0481, 0.0032, 0.0309),
        4: (0.0749, 0.0031, 0.0320),
        5: (0.1896, 0.0029, 0.0307),
        6: (0.3024, 0.0029, 0.0295),
        7: (0.4468, 0.0025, 0.0308),
        8: (0.6800, 0.0021, 0.0318),
    },
    2017: {
        2: (0.07654, 0.0705, 4.6239),
        3: (0.27445, 0.0668, 4.3471),
        4: (0.63936, 0.0665, 4.1347),
        5: (1.24048, 0.0644, 4.5579),
        6: (2.12963, 0.0644, 4.5179),
        7: (3.46484, 0.0619, 4.6149),
        8: (5.37686, 0.0585, 4.2729),
    },
}


def write_events(events: pd.DataFrame, folder: Path) -> None:
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
        "sketches": {"log": {"keyed": True, "events_per_leaf": LEAF, "expected_events": events, "memory": "4GB"}},
    }
    return Configuration.from_text(yaml.safe_dump(tree))


def size_of(folder: Path) -> int:
    """Bytes of the Parquet files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


def asked(names: list[str]) -> dict[str, str]:
    """The same query in all ways, as SQL that says trace, begin and end (of all events together: begin and end)."""
    pattern = " ; ".join(names)
    call = "SELECT {} FROM match_seq('log', '{}', max_matches => 100000000{})"
    of_traces = "key, first_position, last_position"
    return {
        "pairs, joined": joined(names),
        "pairs, verified": verified(names),
        "approach 1": call.format("first_position, last_position", pattern, ", verify => false"),
        "approach 2": call.format(of_traces, f"{pattern} PARTITION BY key", ", verify => false"),
        "exact": call.format(of_traces, f"{pattern} PARTITION BY key", ""),
    }


@dataclass
class Asked:
    """What one query took in each way, its rows, and what is wrong with them.

    `traces` are those of the ways that tell traces.
    """

    seconds: dict[str, float]
    rows: dict[str, int]
    traces: dict[str, int]
    faults: list[str]


def ask_all(spark: SparkSession, names: list[str], turn: int) -> Asked:
    """Ask a query in all ways, another one first at each turn, and compare what they say."""
    texts = list(asked(names).items())
    answers: dict[str, pa.Table] = {}
    taken: dict[str, float] = {}
    first = turn % len(texts)
    for way, text in texts[first:] + texts[:first]:
        start = time.perf_counter()
        answers[way] = ask_arrow(spark, text)
        taken[way] = time.perf_counter() - start
    faults = [f"{' ; '.join(names)}: {fault}" for fault in _faults(spark, names, answers)]
    rows = {way: answer.num_rows for way, answer in answers.items()}
    traces = {way: len(answer.column(0).unique()) for way, answer in answers.items() if answer.num_columns == 3}
    return Asked(taken, rows, traces, faults)


def _faults(spark: SparkSession, names: list[str], answers: dict[str, pa.Table]) -> Iterator[str]:
    exact, pairs = (
        set(zip(*(column.to_pylist() for column in answers[way].columns), strict=True))
        for way in ("exact", "pairs, verified")
    )
    if exact != pairs:
        yield f"{len(exact - pairs)} exact rows that verified pairs have not, {len(pairs - exact)} the other way round"
    traces = {trace for trace, _, _ in exact}
    if more := set(answers["pairs, joined"].column(0).to_pylist()) - traces:
        yield f"joined pairs have {len(more)} traces that the exact answer has not"
    if missed := traces - set(answers["approach 2"].column(0).to_pylist()):
        query = f"{' ; '.join(names)} PARTITION BY key"
        call = f"match_seq('log', '{query}', max_matches => 100000000)"
        found = spark.sql(f"SELECT key, steps.from_position FROM {call}").toArrow()
        places = zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True)
        if lost := [trace for trace, steps in places if trace in missed and _in_leaves_of_their_own(steps)]:
            yield f"approach 2 has lost {len(lost)} rows that need no leaf twice, one of {lost[0]}"


def _in_leaves_of_their_own(positions: list[int]) -> bool:
    return all((b - 1) // LEAF > (a - 1) // LEAF for a, b in pairwise(positions))


def measure(log: Log, count: int, lengths: Sequence[int], lake: Path | None) -> list[str]:
    """Build, ask, and print a table like the thesis'; what was wrong with answers."""
    name = f"process_log_{log.events}"
    with new_folder(name) if lake is None else nullcontext(lake / name) as folder:
        folder.mkdir(parents=True, exist_ok=True)
        with spark_session(folder) as spark:
            events = _built(spark, log, folder)
            open_pairs(spark, folder)
            return _print_times(spark, log, events, count, lengths)


def _built(spark: SparkSession, log: Log, folder: Path) -> pd.DataFrame:
    """The log, and beside it what is built of it; seconds and bytes are printed."""
    events = twin(log)
    loaded = configuration(folder, log.events)

    def pairs() -> None:
        spark.table("patternlake_internal.events_log").selectExpr(
            "key AS trace", "name", "position"
        ).createOrReplaceTempView("log")
        write_pairs(spark, folder)

    steps: dict[str, Callable[[], object]] = {
        "source": lambda: write_events(events, folder / "source"),
        "ingest": partial(patternlake.run, spark, loaded, "ingest"),
        "sketch": partial(patternlake.run, spark, loaded, "sketch"),
        "pairs": pairs,
    }
    kept = folder / "built.json"
    build = json.loads(kept.read_text()) if kept.exists() else {}
    for step, action in steps.items():
        if step not in build:
            build[step] = seconds(action, step)
            kept.write_text(json.dumps(build))
    sizes = {
        "events": size_of(folder / "state" / TABLES["events"].log),
        "sketch": size_of(folder / "state" / TABLES["sketch_nodes"].log),
        **{name: size_of(folder / name) for name in ("pairs", "sequences")},
    }
    traces = events["trace"].nunique()
    print(f"twin of {log.name}: {len(events):,} events, {events['name'].nunique()} names, {traces:,} traces")
    print("built: " + ", ".join(f"{name} {taken:.1f} s" for name, taken in build.items()))
    print("files: " + ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in sizes.items()), flush=True)
    return events


def _print_times(spark: SparkSession, log: Log, events: pd.DataFrame, count: int, lengths: Sequence[int]) -> list[str]:
    ways = list(asked(["a", "b"]))
    table = Table(title=f"twin of {log.name}, {count} queries of a length: mean seconds (rows)")
    papers = [f"thesis: {way}" for way in ("SIESTA", "approach 1", "approach 2")]
    for column in ("length", *ways, "verified / exact", "joined traces", *papers):
        table.add_column(column, justify="right")
    by_length = queries(events, count, log.seed)
    faults = []
    for length in lengths:
        faults += ask_all(spark, by_length[length][0], 0).faults
        found = [ask_all(spark, names, turn) for turn, names in enumerate(by_length[length])]
        faults += [fault for one in found for fault in one.faults]
        taken = {way: float(np.mean([one.seconds[way] for one in found])) for way in ways}
        rows = {way: float(np.mean([one.rows[way] for one in found])) for way in ways}
        told = [f"{taken[way]:.3f} ({rows[way]:,.0f})" for way in ways]
        there = sum(one.traces["exact"] for one in found)
        share = f"{sum(one.traces['pairs, joined'] for one in found) / there:.0%}" if there else "-"
        theirs = [f"{figure:.4f}" for figure in THESIS[log.seed].get(length, ())] or ["-"] * len(papers)
        table.add_row(str(length), *told, f"{taken['pairs, verified'] / taken['exact']:.1f}", share, *theirs)
        print(f"length {length}: {', '.join(told)}; {len(faults)} faults so far", flush=True)
    console().print(table)
    print("\n".join(faults) or "all answers agree")
    return faults


def main(
    quick: Annotated[
        bool, typer.Option("--quick", help="a tenth of the small log, two queries of each length")
    ] = False,
    queries_: Annotated[int, typer.Option("--queries", help="of each length")] = 15,
    which: Annotated[list[int] | None, typer.Option("--log", help="2020 or 2017; both by default")] = None,
    length: Annotated[
        list[int] | None, typer.Option("--length", min=2, max=MOST_NAMES, help="2 to 20; 2 to 8 by default")
    ] = None,
    lake: Annotated[Path | None, typer.Option("--lake", help="a folder that keeps what is built")] = None,
) -> None:
    """Print the tables."""
    small = LOGS[0]
    logs = (Log(small.name, small.events // 10, small.names, small.per_trace, small.seed),) if quick else LOGS
    chosen = [log for log in logs if not which or log.seed in which]
    faults = [fault for log in chosen for fault in measure(log, 2 if quick else queries_, length or LENGTHS, lake)]
    if faults:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)

"""Funnels and paths in `spark.sql`, beside plain Spark SQL over the same table.

``python -m benchmarks.funnels [events] [repeats] [--chdb PYTHON]`` prints one line of JSON for each question: medians
of seconds, in turns with plain Spark SQL that says the same. For a funnel without a window it folds over the sorted
events of each key; for paths, windows of each key fold repeated names and read the names before and behind. Both give
the same rows, or the benchmark fails.

With the path of a Python that has the package `chdb`, ``windowFunnel`` of ClickHouse answers the funnel of 12 steps as
well, on as many threads as Spark has, from a table of its own that holds the events in the order of their keys. It
takes 32 steps at most. Loading is not in its seconds. It has turns of its own with ours: a fold leaves garbage and code
to compile in Spark's process, which are worked off beside whatever is asked next.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.events import frequent
from benchmarks.lakes import make_lake, new_folder
from benchmarks.measuring import measure_beside
from benchmarks.questions import STREAM
from benchmarks.sessions import ask, spark_session

FUNNELS = {"12 steps": frequent(12), "64 steps": frequent(32) * 2}
CHDB_STEPS = 32
_CHDB_TURNS = 5
"""So many times as many turns with chdb: they take a second each, of which the machine's moods are a larger part."""
PEER = Path(__file__).parent / "peers" / "chdb_peer.py"

PATHS = {"paths around a name": "n9", "paths of whole keys": None}
BEFORE, AFTER, TOP = 2, 3, 20
"""The defaults of `match_paths`."""


def measure(events: int, repeats: int, chdb: str | None = None) -> dict[str, Any]:
    """All questions, of one lake; `chdb` is a Python that has it."""
    with new_folder(f"funnels_{events}") as folder, spark_session(folder) as spark:
        lake = make_lake(spark, folder, events)
        table = f"(SELECT key, time, position, name FROM {lake.db.log('events')} WHERE {lake.rows})"
        with _load(spark, table, folder, chdb) as ask_chdb:
            found = [
                each
                for name, steps in FUNNELS.items()
                for each in _measure_funnel(spark, table, name, steps, repeats, ask_chdb)
            ]
        found += [_measure_paths(spark, table, name, around, repeats) for name, around in PATHS.items()]
        return {"events": events, "repeats": repeats, "beside": found}


@contextmanager
def _load(
    spark: SparkSession, table: str, folder: Path, python: str | None
) -> Iterator[Callable[[str], list[Any]] | None]:
    """A function that asks ClickHouse, once it has the events; None where there is none."""
    if python is None:
        yield None
        return
    events = folder.resolve() / "events_of_chdb"
    spark.sql(f"SELECT key, position, name FROM {table}").write.parquet(str(events))
    command = [python, str(PEER), str(events), str(spark.sparkContext.defaultParallelism)]
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=outside) as peer:
        assert peer.stdin is not None
        assert peer.stdout is not None
        answers, questions = peer.stdout, peer.stdin

        def ask_chdb(query: str) -> list[Any]:
            print(query, file=questions, flush=True)
            return list(json.loads(answers.readline()))

        answers.readline()
        yield ask_chdb


def _measure_funnel(
    spark: SparkSession,
    table: str,
    name: str,
    steps: tuple[str, ...],
    repeats: int,
    ask_chdb: Callable[[str], list[Any]] | None,
) -> list[dict[str, Any]]:
    texts = ", ".join(f"'{step}'" for step in steps)

    def ours() -> list[Any]:
        text = f"SELECT reached FROM match_funnel('{STREAM}', '{' ; '.join(steps)}') ORDER BY step"
        return [row.reached for row in ask(spark, text)]

    def plain() -> list[Any]:
        counted = ask(
            spark,
            f"""SELECT level, count(*) AS keys FROM (
              SELECT aggregate(array_sort(collect_list(struct(time, position, name))), 0,
                (level, event) -> level + int(get(array({texts}), level) <=> event.name)) AS level
              FROM {table} GROUP BY key) GROUP BY level""",
        )
        return [sum(row["keys"] for row in counted if row.level >= step) for step in range(1, len(steps) + 1)]

    def chdb() -> list[Any]:
        assert ask_chdb is not None
        conditions = ", ".join(f"name = '{step}'" for step in steps)
        # No two events have one position, and the window holds them all.
        levels = f"SELECT windowFunnel(1000000000000)(position, {conditions}) AS level FROM loaded.events GROUP BY key"
        counts = ", ".join(f"countIf(level >= {step})" for step in range(1, len(steps) + 1))
        return ask_chdb(f"SELECT arrayJoin([{counts}]) FROM ({levels})")

    others = {"Spark SQL": plain}
    if ask_chdb is not None and len(steps) <= CHDB_STEPS:
        others = {"chdb": chdb, **others}
    return [
        _compare(name, {"match_funnel": ours, way: other}, repeats * (_CHDB_TURNS if way == "chdb" else 1))
        for way, other in others.items()
    ]


def _measure_paths(spark: SparkSession, table: str, name: str, around: str | None, repeats: int) -> dict[str, Any]:
    given = "NULL" if around is None else f"'{around}'"
    columns = "path, partitions, occurrences, round(share, 9) AS share, round(seconds_p50, 6) AS seconds_p50"
    texts = {
        "match_paths": f"SELECT {columns} FROM match_paths('{STREAM}', around => {given})",
        "Spark SQL": f"SELECT {columns} FROM ({_paths_by_windows(table, around)})",
    }
    return _compare(name, {way: partial(ask, spark, text) for way, text in texts.items()}, repeats)


def _paths_by_windows(table: str, around: str | None) -> str:
    """The rows of `match_paths` in plain Spark SQL, most frequent first."""
    if around is None:
        paths = """SELECT key, transform(events, event -> event.name) AS path,
          events[0].time AS begun, events[size(events) - 1].time AS ended
        FROM (SELECT key, array_sort(collect_list(struct(time, position, name))) AS events FROM folded GROUP BY key)"""
    else:
        behind, ahead = [range(BEFORE, 0, -1), range(1, AFTER + 1)]
        names = ", ".join(
            [*(f"lag(name, {n}) OVER w" for n in behind), "name", *(f"lead(name, {n}) OVER w" for n in ahead)]
        )
        begun = ", ".join([*(f"lag(time, {n}) OVER w" for n in behind), "time"])
        ended = ", ".join([*(f"lead(time, {n}) OVER w" for n in reversed(ahead)), "time"])
        paths = f"""SELECT key, array_compact(names) AS path, begun, ended FROM (
          SELECT key, name, array({names}) AS names, coalesce({begun}) AS begun, coalesce({ended}) AS ended
          FROM folded WINDOW w AS (PARTITION BY key ORDER BY time, position)
        ) WHERE name = '{around}'"""
    return f"""WITH
      common AS (SELECT name AS common FROM {table} GROUP BY name ORDER BY count(*) DESC, name LIMIT {TOP}),
      named AS (
        SELECT /*+ BROADCAST(common) */ key, time, position,
          IF(common IS NULL AND NOT name <=> '{around}', '…', name) AS name
        FROM {table} LEFT JOIN common ON name = common),
      folded AS (
        SELECT key, time, position, name FROM (
          SELECT *, lag(name) OVER (PARTITION BY key ORDER BY time, position) AS last FROM named
        ) WHERE NOT name <=> last),
      paths AS ({paths})
    SELECT path, count(DISTINCT key) AS partitions, count(*) AS occurrences, count(*) / sum(count(*)) OVER () AS share,
      percentile(unix_micros(ended) - unix_micros(begun), 0.5) / 1e6 AS seconds_p50
    FROM paths GROUP BY path ORDER BY occurrences DESC, partitions DESC, path LIMIT 100"""


def _compare(name: str, actions: dict[str, Callable[[], list[Any]]], repeats: int) -> dict[str, Any]:
    """Medians of seconds of all, which must give the same rows."""
    ours, *others = (action() for action in actions.values())
    for way, theirs in zip([*actions][1:], others, strict=True):
        if ours != theirs:
            differ = next(pair for pair in zip_longest(ours, theirs) if pair[0] != pair[1])
            raise RuntimeError(f"{name}: ours and {way} differ, first in {differ}")
    return measure_beside(name, actions, repeats, warm=False, rows=len(ours))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("events", type=int, nargs="?", default=10_000_000)
    parser.add_argument("repeats", type=int, nargs="?", default=3)
    parser.add_argument("--chdb", metavar="PYTHON")
    given = parser.parse_args()
    measure(given.events, given.repeats, given.chdb)


if __name__ == "__main__":
    main()

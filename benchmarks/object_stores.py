"""A lake in a store that is made like S3, a server of the tests': requests and seconds, and two drivers that commit.

``python -m benchmarks.object_stores [--latency MS] [--batches N] [--delay SECONDS]``. A process makes a lake with every
job; a new one then runs them all with nothing new, where each request takes so long, and another one asks. Then two
drivers ingest a stream each into one lake, N files one by one, and each commit waits at random: what they published,
and what is there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.table import Table

from benchmarks.lakes import new_folder
from benchmarks.tables import console
from tests.object_store import BUCKET, ObjectStore, packages

LETTERS = "ABCBAACBADCBABCB"
OBJECTS: dict[str, Any] = {
    "sketches": {"letters": {"expected_events": 1000}},
    "trends": {
        "t": {"stream": "letters", "query": "PATTERN A+ s[] WHERE s[i].x > s[i-1].x WITHIN 1 HOUR SLIDE 30 MINUTES"}
    },
    "groups": {"g": {"stream": "letters", "pattern": "A, B+", "within": 3}},
    "patterns": {"p": {"stream": "letters", "query": "A ; B+ WITHIN 10 MIN"}},
    "subscriptions": {"m": {"stream": "letters", "query": "A ; B, C WITHIN 10 MIN"}},
    "alerts": {"told": {"of": "subscription", "name": "m"}},
}
DRIVER = """
import json, sys, time
begun = time.monotonic()
from pathlib import Path
import patternlake
from patternlake.delta_tables.databases.opening import open_database
from patternlake.jobs.configuration.file import Configuration
from patternlake.jobs.runs.running import perform
from patternlake.jobs.runs.steps import steps
given = json.loads(sys.argv[1])
# As the command does: what reads it looks for plugins of Pydantic in all jars, once there are some.
configuration = Configuration.load(given["conf"])
spark = patternlake.session(None, "local[2]", database=None, settings=given["settings"])
spark.sparkContext.setLogLevel("ERROR")
conf, log, told = given["conf"], Path(given["requests"]), [["start of Spark", 0, time.monotonic() - begun, None]]

def run_all():
    lake = open_database(
        spark, configuration.database, configuration.location, configuration.storage_options, named=False
    )
    return sum(each.batches for each in perform(lake, configuration, steps(configuration, "all")))

works = {
    "run all": run_all,
    "ingest": lambda: sum(each.batches for each in patternlake.run(spark, configuration, "ingest")),
    "enable": lambda: patternlake.enable(spark, conf) and None,
    "match_seq": lambda: spark.sql("SELECT * FROM match_seq('letters', 'A ; !B ; C')").collect() and None,
    "rows": lambda: [list(row) for row in spark.sql(given["question"]).collect()],
}
for name in given["works"]:
    before, begun = len(log.read_text().splitlines()), time.monotonic()
    result = works[name]()
    seconds = time.monotonic() - begun
    told.append([name, len(log.read_text().splitlines()) - before, seconds, result])
print(json.dumps(told))
"""
QUESTION = """
SELECT e.stream, count(*), count(DISTINCT position), min(position), max(position), max(p.batches)
FROM events e JOIN (SELECT stream, count(*) AS batches FROM publications WHERE job = 'ingest' GROUP BY stream) p
ON e.stream = p.stream GROUP BY e.stream ORDER BY e.stream
"""


def main(
    latency: Annotated[int, typer.Option(help="Milliseconds that each request takes.", min=0)] = 100,
    batches: Annotated[int, typer.Option(help="Files of each of the two drivers.", min=0)] = 40,
    delay: Annotated[float, typer.Option(help="Seconds that a commit of theirs waits at most.", min=0)] = 1.0,
) -> None:
    """Print both tables; with `--latency 0` or `--batches 0` the other one alone."""
    with new_folder("object-stores") as made:
        folder = made.resolve()
        store = ObjectStore(folder)
        try:
            if latency:
                _measure_requests(store, folder / "one", latency)
            if batches:
                _race(store, folder / "two", batches, delay)
        finally:
            store.stop()


def _measure_requests(store: ObjectStore, folder: Path, latency: int) -> None:
    conf = _configure(folder, f"s3a://{BUCKET}/one", "letters", 4, OBJECTS)
    _Process(store, conf, "run all", "run all", "run all").finish()
    store.behave(latency=latency / 1000)
    run = _Process(store, conf, "run all", "run all").finish()
    asked = _Process(store, conf, "enable", "match_seq", "match_seq").finish()
    store.behave()
    table = Table(f"nothing new, {latency} ms a request", "requests", "seconds")
    for process in (run, asked):
        for name, requests, seconds, _ in process:
            table.add_row(name, str(requests), f"{seconds:.1f}")
        table.add_section()
    console().print(table)


def _race(store: ObjectStore, folder: Path, batches: int, delay: float) -> None:
    place, names = f"s3a://{BUCKET}/two", ("letters", "others")
    confs = [_configure(folder / name, place, name, batches, {}) for name in names]
    _Process(store, _configure(folder / "none", place, "none", 0, {}), "ingest").finish()
    before = len(store.requests())
    store.behave(delay=delay)
    drivers = [_Process(store, conf, "ingest") for conf in confs]
    published = [driver.finish()[-1] for driver in drivers]
    store.behave()
    commits = [line for line in store.requests()[before:] if line.startswith("PUT") and _is_commit(line)]
    table = Table("stream", "seconds", "batches published", "in the table", "events", "distinct", "first", "last")
    rows = _Process(store, confs[0], "enable", "rows").finish()[-1][-1]
    for row, (_, _, seconds, count) in zip(rows, published, strict=True):
        stream, events, distinct, first, last, there = row
        table.add_row(stream, f"{seconds:.0f}", *map(str, (count, there, events, distinct, first, last)))
    console().print(table)
    there = len({*commits})
    console().print(f"{there:,} commits are there; {len(commits) - there:,} puts met another's, and were made again")


def _is_commit(line: str) -> bool:
    name = line.rpartition("/")[2]
    return "/_delta_log/" in line and name.endswith(".json") and name.removesuffix(".json").isdigit()


def _configure(folder: Path, location: str, name: str, files: int, objects: dict[str, Any]) -> Path:
    """A configuration of one stream, four events a file and one file a batch."""
    source = folder / name
    source.mkdir(parents=True)
    for number in range(files):
        numbers = range(4 * number, 4 * number + 4)
        times = [f"2025-01-01 {n // 60:02}:{n % 60:02}:00" for n in numbers]
        lines = [f"{at},{LETTERS[n % len(LETTERS)]},{n + 1},k{n % 2}" for at, n in zip(times, numbers, strict=True)]
        file = source / f"{number:04}.csv"
        file.write_text("\n".join(["at,letter,x,k", *lines, ""]))
        # Spark takes the oldest file first.
        os.utime(file, (1_750_000_000 + number,) * 2)
    stream = {
        "source": {"format": "csv", "path": str(source), "options": {"header": True, "maxFilesPerTrigger": 1}},
        "time": "CAST(at AS TIMESTAMP)", "name": "letter", "key": "k", "attributes": {"x": "INT"},
        "step": "floor(x / 3)", "probability": "0.5",
    }  # fmt: skip
    conf = folder / "patternlake.yaml"
    conf.write_text(yaml.safe_dump({"location": location, "streams": {name: stream}, **objects}))
    return conf


class _Process:
    """A driver at work."""

    def __init__(self, store: ObjectStore, conf: Path, *works: str) -> None:
        own = {
            "spark.sql.warehouse.dir": str(conf.with_name("warehouse")), "spark.driver.memory": "1g",
            # As the command has it.
            "spark.python.sql.dataFrameDebugging.enabled": "false",
        }  # fmt: skip
        given = {
            "conf": str(conf), "settings": {**packages(), **own, **store.settings()}, "works": works,
            "requests": str(store.requests_file), "question": QUESTION,
        }  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, json.dumps(given)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=conf.parent,
        )  # fmt: skip

    def finish(self) -> list[tuple[str, int, float, Any]]:
        """Each work, its requests, its seconds and what came of it."""
        output, errors = self._process.communicate()
        if self._process.returncode:
            sys.exit(errors[-3000:])
        works: list[tuple[str, int, float, Any]] = json.loads(output.splitlines()[-1])
        return works


if __name__ == "__main__":
    typer.run(main)

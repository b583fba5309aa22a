"""Lakes that grow step by step, kept after every step, and copies of them on which a step can go wrong."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from sql.empty_database import lay
from sql.small_tables import asked, tables_of

import patternlake
from patternlake.delta_tables.batches.batch import WRITTEN
from patternlake.delta_tables.committing.database import Database
from patternlake.delta_tables.databases.opening import open_database
from patternlake.delta_tables.schema.quoting import identifier
from patternlake.delta_tables.tables.catalogue import TABLES
from patternlake.jobs.batches.summary import Summary
from patternlake.jobs.ingest.job import CHECKPOINT
from patternlake.jobs.runs import running
from patternlake.jobs.terminal.messages import message
from tests.faults.interrupted import Writes
from tests.faults.steps import QUERY, STEPS, Step

ROOT = Path(__file__).parents[2]
STREAM = "s"

# Segments of 64 events. The first one has four names in every leaf, the second and third have eight, in all others
# every event has a name of its own: so the sizes are re-fitted after the second segment and after the fourth. The
# first file ends inside the third segment, the second file inside the fifth. There is an event per second, so that
# machines take those up to the 99th with the first file and those up to the 219th with the second.
_NAMES = [
    *("abcd"[n % 4] for n in range(64)),
    *("abcdefgh"[n % 8] for n in range(128)),
    *(f"n{n}" for n in range(88)),
]
_CUT = 160
_FEW = ["y", "z"]
"""Names of the events of a third file."""

CONFIGURATION = """
database: {name}
location: lake
streams:
  s:
    source: {{format: csv, path: {data}, options: {{header: true}}}}
    time: at
    name: what
    key: who
    attributes: {{x: double}}
    step: floor(x / 3)
    probability: "0.5"
    allowed_lateness: 1 minute
sketches:
  s: {{events_per_leaf: 16, levels: 3, expected_events: 1000, memory: 1MB}}
trends:
  t:
    stream: s
    query: PATTERN a+ s[] WHERE s[i].x > s[i-1].x + 20 WITHIN 100 EVENTS SLIDE 50 EVENTS
groups:
  g: {{stream: s, pattern: "d, c, b+", within: 3}}
patterns:
  p: {{stream: s, query: "a ; b+ WHERE COUNT(b.key) > 0 PARTITION BY key WITHIN 9 EVENTS"}}
subscriptions:
  m: {{stream: s, query: "{query}"}}
alerts:
  told: {{of: subscription, name: m}}
  soon: {{of: forecast, name: m, where: "bindings['h'][0] > 100"}}
  closed: {{of: group, name: g}}
  ended: {{of: pattern, name: p}}
"""


QUESTIONS = (
    "SELECT * FROM match_seq('s', 'a ; b', after_match => 'next')",
    "SELECT * FROM match_seq('s', 'SEQ(n1, n2)', verify => true)",
    "SELECT match_exists('s', 'n30')",
    "SELECT * FROM cet_count('t')",
    "SELECT * FROM cet_trends('t')",
    "SELECT * FROM match_groups('s', 'd, c, b+', within => 3)",
    "SELECT * FROM match_pattern(query => 'p')",
    "SELECT * FROM match_subscription('m')",
    "SELECT * FROM predict_match('m')",
)

_WHOLE = "map('ignoreNullFields', 'false', 'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
"""How rows become JSON: nothing of them is left out."""

# What may differ between two runs with the same result; jobs side by side commit to a table in any order.
_OF_A_RUN = {
    *("run_id", "begun_at", "published_at", "seconds", "superseded_at", "forecast_at", "first_seen_at"),
    "versions",
}


class Lake:
    """A database in a folder of its own, over the files that all lakes share."""

    def __init__(self, spark: SparkSession, folder: Path, data: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.data = data
        self.name = f"faults_{folder.parent.name}_{folder.name}"
        folder.mkdir(parents=True, exist_ok=True)
        self.conf = folder / "conf.yaml"
        self.configure(QUERY)

    @cached_property
    def db(self) -> Database:
        return open_database(self.spark, self.name, str(self.folder / "lake"))

    def run(self, job: str, object: str = "", *, rebuild: bool = False) -> Summary:
        (summary,) = running.run(self.spark, self.conf, job, object=object or None, rebuild=rebuild)
        return summary

    def worker(self, job: str, stop: str, deed: str, *options: str) -> subprocess.Popen[str]:
        """Start the job in a process of its own; see `tests.faults.worker`."""
        return subprocess.Popen(
            [sys.executable, "-m", "tests.faults.worker", stop, deed, "run", job, "--conf", str(self.conf), *options],
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "PATTERNLAKE_MASTER": "local[1]",
                "PATTERNLAKE_DRIVER_MEMORY": "1g",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def configure(self, query: str) -> None:
        """Let the subscription ask for this."""
        self.conf.write_text(CONFIGURATION.format(name=self.name, data=self.data, query=query))

    def prepare(self, step: Step) -> None:
        """Let the source and the configuration be those of a step."""
        self.files(*step.files)
        self.configure(step.query)

    def files(self, *names: str) -> None:
        """Let the source consist of these files; they keep their modification times."""
        for store, wanted in ((self.data, False), (self.data.parent / "kept", True)):
            for file in list(store.glob("*.csv")):
                if (file.stem in names) == wanted:
                    file.rename((self.data if wanted else self.data.parent / "kept") / file.name)

    def rows(self) -> dict[str, list[str]]:
        """All rows of all tables, published or not, without what tells one run from another.

        By delta-rs, which takes a tenth of what a Spark job for each table does; what Spark reads is in `seen`.
        """
        tables = {name: DeltaTable(str(self.folder / "lake" / table.log)) for name, table in TABLES.items()}
        return {name: _texts_of(table.to_pyarrow_table().to_pylist()) for name, table in tables.items()}

    def seen(self, *, by_spark: bool, but_as: Lake | None = None) -> dict[str, list[str]]:
        """What readers see: the views' rows and the functions' answers.

        Parameters
        ----------
        by_spark
            Spark, as users have it, looks for half a second at each table of which a view is made; else the texts of
            the views are asked of the tables' rows, see `sql.small_tables`.
        but_as
            A lake of which this one was a copy: a view is left out where none of its tables was written to since.
        """
        db = self.db
        patternlake.enable(self.spark, database=db.name, location=db.location)
        views = [name for name, table in TABLES.items() if table.view]
        if but_as is not None:
            written = {name for name in TABLES if self._commits(name) != but_as._commits(name)}
            views = [name for name in views if tables_of([name]) & written]
        found = self._views(self.spark.sql if by_spark else partial(asked, db), views) if views else {}
        return found | {question: self._answer(question) for question in QUESTIONS}

    def _commits(self, table: str) -> set[str]:
        return {file.name for file in (self.folder / "lake" / TABLES[table].log / "_delta_log").glob("*.json")}

    def _views(self, ask: Callable[[str], DataFrame], asked_for: Iterable[str]) -> dict[str, list[str]]:
        """All rows of some views, by one query."""
        views = {name: self.db.view(name) for name in asked_for}
        columns = {name: _columns(ask, name, view) for name, view in views.items()}
        texts = [
            f"SELECT '{name}' AS view, to_json(struct({', '.join(map(identifier, told))}), {_WHOLE}) AS row "
            f"FROM {views[name]}"
            for name, told in columns.items()
        ]
        found: dict[str, list[Mapping[str, Any]]] = {name: [] for name in columns}
        for row in ask(" UNION ALL ".join(texts)).collect():
            found[row["view"]].append(json.loads(row["row"]))
        return {name: _texts_of(rows) for name, rows in found.items()}

    def _answer(self, question: str) -> list[str]:
        try:
            return frame_texts(self.spark.sql(question))
        except Exception as error:
            return [message(error)]


class History:
    """The clean runs, each done once, and kept as a folder to copy from."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._numbers = itertools.count()
        self._after: dict[str | None, State] = {}
        self.data = folder / "data"
        for store in (self.data, folder / "kept"):
            store.mkdir()
        names = [*_NAMES, *_FEW]
        lines = [f"2013-01-01 12:{n // 60:02}:{n % 60:02},{name},k{n % 3},{n}" for n, name in enumerate(names)]
        last = len(_NAMES)
        # Bad rows spoil their whole step, so they have steps of their own.
        bad = ["never,a,k1,3000", "2013-01-01 12:00:00,,k1,6000"]
        late = ["2013-01-01 09:00:00,a,k1,1"]
        files = {"a": lines[:_CUT] + bad, "b": lines[_CUT:last] + bad + late, "c": lines[last:]}
        for file, content in files.items():
            (folder / "kept" / f"{file}.csv").write_text("\n".join(["at,what,who,x", *content]) + "\n")

    def after(self, step: str | None) -> State:
        """The state that a step leaves when nothing goes wrong."""
        if step not in self._after:
            if step is None:
                lake = self._lake()
                lay(self._spark, lake.folder / "lake")
                self._after[None] = State(lake, ())
            else:
                given = STEPS[step]
                lake = self.copy(given.before)
                lake.prepare(given)
                with Writes().watched() as writes:
                    lake.run(given.job, given.object, rebuild=given.rebuild)
                self._after[step] = State(lake, tuple(writes.done))
        return self._after[step]

    def copy(self, step: str | None) -> Lake:
        """A lake of its own in the state that a step leaves."""
        source = self.after(step).lake
        lake = self._lake()
        shutil.copytree(source.folder / "lake", lake.folder / "lake")
        return lake

    def _lake(self) -> Lake:
        return Lake(self._spark, self._folder / f"{next(self._numbers)}", self.data)


@dataclass(frozen=True)
class State:
    """A lake after a clean run. It is only looked at and copied."""

    lake: Lake
    writes: tuple[str, ...]

    @cached_property
    def rows(self) -> dict[str, list[str]]:
        return self.lake.rows()

    @cached_property
    def seen_by_spark(self) -> dict[str, list[str]]:
        return self.lake.seen(by_spark=True)

    @cached_property
    def seen(self) -> dict[str, list[str]]:
        return self.lake.seen(by_spark=False)


_columns_of: dict[str, list[str]] = {}


def _columns(ask: Callable[[str], DataFrame], name: str, view: str) -> list[str]:
    """Those of a view that say what a clean run says, too; they are the same in all lakes."""
    if name not in _columns_of:
        _columns_of[name] = [each for each in ask(f"SELECT * FROM {view}").columns if each not in _OF_A_RUN]
    return _columns_of[name]


def frame_texts(frame: DataFrame) -> list[str]:
    """Its rows without what tells one run from another."""
    kept = [name for name in frame.columns if name not in _OF_A_RUN]
    return _texts_of(row.asDict() for row in frame.select(*kept).collect())


def _texts_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(
        repr([(name, _without_run(name, value)) for name, value in row.items() if name not in _OF_A_RUN])
        for row in rows
    )


def _without_run(name: str, value: Any) -> Any:
    """Ids of queries and checkpoints are drawn by a stream's first run, and what was written names the database."""
    if name != "source" or not isinstance(value, str):
        return value
    return {key: each for key, each in json.loads(value).items() if key not in ("query", CHECKPOINT, WRITTEN)}

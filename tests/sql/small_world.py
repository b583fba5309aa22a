"""A small source, all jobs on it, and a question to each function: what must be the same whoever asks, and how."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from sql.empty_database import lay

import patternlake
from patternlake.jobs.configuration.file import Configuration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JOBS = ("ingest", "sketch", "trends", "groups", "patterns", "predict", "alerts", "evaluate")
NAMES = "abcdabcabbabcdc"
STREAM = {
    "time": "to_timestamp(AT, 'yyyy-MM-dd HH:mm:ss')",
    "name": "what",
    "key": "who",
    "attributes": {"x": "int", "moment": {"type": "timestamp", "expr": "At"}},
    "step": "floor(X / 3)",
    "probability": "0.5",
    "allowed_lateness": "1 second",
    "timezone": "Asia/Tokyo",
}
OBJECTS: dict[str, Any] = {
    "sketches": {"s": {"events_per_leaf": 4, "levels": 2, "expected_events": 1000, "memory": "1MB", "keyed": True}},
    "trends": {"t": {"stream": "s", "query": "PATTERN a+ s[] WHERE s[i].x > s[i-1].x WITHIN 1 HOUR SLIDE 30 MINUTES"}},
    "groups": {"g": {"stream": "s", "pattern": "a, b+", "within": 3}},
    "patterns": {"p": {"stream": "s", "query": "a ; b+ WHERE SUM(b.x) > 0 WITHIN 10 SEC"}},
    "subscriptions": {"m": {"stream": "s", "query": "a ; b, c WITHIN 1 MIN"}},
    "alerts": {"told": {"of": "subscription", "name": "m"}, "soon": {"of": "forecast", "name": "m"}},
    "evaluate": {"train": ["2023-12-31", "2023-12-31 15:00:20"], "test": ["2023-12-31 15:00:20", "2024-02-01"]},
}
QUESTIONS = (
    "SELECT * FROM match_seq('s', 'a ; b', after_match => 'next')",
    "SELECT * FROM match_seq('s', 'a ; b PARTITION BY key', verify => true)",
    "SELECT match_exists('s', 'a ; d')",
    "SELECT * FROM sketch_error('s', 'a ; b')",
    "SELECT * FROM match_pattern('s', 'a ; b+ WHERE b[i].x > 3 AND a.moment IS NOT NULL WITHIN 10 SEC')",
    "SELECT * FROM match_pattern('s', 'a ; b PARTITION BY probability WITHIN 10 SEC')",
    "SELECT * FROM match_pattern('s', 'a ; b PARTITION BY step WITHIN 10 SEC')",
    "SELECT * FROM match_pattern(query => 'p')",
    "SELECT line, plan FROM explain_pattern('s', 'a ; b+ WITHIN 10 SEC')",
    "SELECT * FROM cet_count('t')",
    "SELECT * FROM cet_trends('t')",
    "SELECT * FROM cet_aggregate('t', 'SUM(x)')",
    "SELECT * FROM match_groups('s', 'a, b+', within => 3)",
    "SELECT * FROM match_groups('s', 'b, d', within => 3)",
    "SELECT * FROM group_members('s', 'a, !c, b', within => 3)",
    "SELECT * FROM match_funnel('s', 'a ; b ; c WITHIN 10 SEC')",
    "SELECT * FROM match_funnel_rows('s', 'a ; d', mode => 'once')",
    "SELECT * FROM match_paths('s', around => 'b')",
    "SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY key ORDER BY position MEASURES count(*) AS n "
    "PATTERN (a b+) DEFINE a AS name = 'a', b AS name = 'b')",
    "SELECT * FROM match_pattern(TABLE(SELECT key, time, position, name FROM events) PARTITION BY key "
    "ORDER BY (time, position), 'a ; b')",
    "SELECT * FROM match_pattern(TABLE(SELECT key, time, position, name, time AS moment FROM events) PARTITION BY key "
    "ORDER BY (time, position), 'a ; b WHERE b.moment > a.moment MEASURES b.moment AS moment')",
    "SELECT * FROM match_subscription('m')",
    "SELECT * FROM predict_match('m')",
    "SELECT * FROM forecast_evaluation",
    "SELECT alert_id, alert, key, bindings, first_time, last_time, probability, found_in FROM alerts",
    "SELECT * FROM events",
    "SELECT reason, detail, `row` FROM quarantine",
)


class World:
    """A small source, and lakes that sessions of all kinds make of it: beside it, or at a `place` in a store."""

    def __init__(self, spark: SparkSession, folder: Path, place: str | None = None) -> None:
        self.spark = spark
        self.folder = folder
        self.place = place
        self.answers: dict[str, dict[str, Any]] = {}
        (folder / "data").mkdir()
        lines = [f"2024-01-01 00:00:{3 * n:02},{name},k{n % 2},{n}" for n, name in enumerate(NAMES)]
        # In a step each of its own, as a bad row spoils its step.
        lines += ["2024-1-1 0:0:1,a,k0,3000", "2024-01-01 00:00:10,b,k0,6000.5", "2024-13-01 00:00:00,b,k1,9000"]
        lines += ["2024-01-01 00:00:09,b,k1,99999999999"]
        (folder / "data" / "a.csv").write_text("\n".join(["at,what,who,x", *lines]) + "\n")

    def session(self, settings: Mapping[str, str]) -> SparkSession:
        session = self.spark.newSession()
        for key, value in settings.items():
            session.conf.set(key, value)
        return session

    def configuration(self, database: str, **streams: Mapping[str, Any]) -> dict[str, Any]:
        source = {"format": "csv", "path": "data", "options": {"header": True}}
        return {
            "database": database,
            "location": f"{self.place or self.folder}/{database}",
            "streams": {name: {"source": source, **section} for name, section in streams.items()},
        }

    def load(self, tree: Mapping[str, Any]) -> Configuration:
        return Configuration.from_text(yaml.safe_dump(dict(tree)), folder=self.folder)

    def seen(self, kind: str, settings: Mapping[str, str], *, maintained: bool = False) -> dict[str, Any]:
        """What all jobs write and all functions answer in a session of its own."""
        if kind not in self.answers:
            session = self.session(settings)
            database = "small_" + "".join(letter if letter.isalnum() else "_" for letter in kind)
            tree = {**self.configuration(database, s=STREAM), **OBJECTS}
            if self.place is None:
                lay(self.spark, tree["location"])
            for job in [*JOBS, *(["maintain"] if maintained else [])]:
                patternlake.run(session, self.load(tree), job)
            patternlake.enable(session, database=database, location=tree["location"])
            session.catalog.setCurrentDatabase(database)
            with ThreadPoolExecutor(4) as pool:
                answers = pool.map(lambda question: shown(session.sql(question)), QUESTIONS)
                self.answers[kind] = dict(zip(QUESTIONS, answers, strict=True))
            assert {key: session.conf.get(key) for key in settings} == settings
        return self.answers[kind]


def shown(frame: DataFrame) -> Any:
    return [field.simpleString() for field in frame.schema.fields], sorted(map(repr, frame.collect()))

"""Questions of `match_seq`, with and without verify, beside exact Spark SQL and DuckDB on the same events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.duckdb_baseline import TABLE, DuckBaseline
from benchmarks.events import frequent
from benchmarks.lakes import FOLDER, Lake, make_lake, new_folder, sketch_configuration
from benchmarks.measuring import side_by_side
from benchmarks.plans import Read, read_by
from benchmarks.questions import Question, large_questions, questions
from benchmarks.sessions import ask, driver_bytes, spark_session
from patternlake.udfs.sketch.batch import TOP_BUCKET

LARGE = 100_000_000
CONTENDERS = ("spark", "sketch", "verify", "duckdb")
EXAMPLES = 5


def measure(events: int, repeats: int) -> dict[str, Any]:
    """All questions at one size."""
    with new_folder(f"queries_{events}") as folder, spark_session(folder) as spark:
        lake = make_lake(spark, folder, events)
        asked = list(large_questions() if events >= LARGE else questions())
        # The questions that may take all memory come last.
        lake.build(sketch_configuration(events, keyed=True))
        duck = DuckBaseline(lake)
        bench = _Bench(spark, lake, duck, repeats)
        key = _key(spark, lake)
        found = [bench.ask(question, key) for question in asked if question.keyed]
        lake.build(sketch_configuration(events))
        found += [bench.ask(question, None) for question in asked if not question.keyed]
        duck.close()
        return {
            "events": events,
            "repeats": repeats,
            "key": key,
            "job_seconds": lake.seconds,
            "ingest_batches": lake.batches,
            "sketch_memory": lake.memory,
            "questions": found,
        }


class _Bench:
    """Asks one question after the other of one lake."""

    def __init__(self, spark: SparkSession, lake: Lake, duck: DuckBaseline, repeats: int) -> None:
        self.spark, self.lake, self.duck, self.repeats = spark, lake, duck, repeats
        self.texts = sql_file(lake.events)
        self.texts.write_text("")

    def ask(self, question: Question, key: str | None) -> dict[str, Any]:
        """The figures of one question."""
        texts = self._texts(question, key)
        self._write(question, texts)
        totals = {name: _total(question, text) for name, text in texts.items()}
        figures: dict[str, Any] = {
            "axis": question.axis,
            "label": question.label,
            "pattern": question.pattern,
            "policy": question.policy,
            "after_match": question.after_match,
            "seconds": {},
            "rows": {},
            "bytes": {},
            "errors": {},
        }
        answers: dict[str, tuple[Any, ...]] = {}
        for name, text in totals.items():
            try:
                answers[name] = self.duck.one_row(text) if name == "duckdb" else self._first(name, text, figures)
            except Exception as error:  # a contender that fails is a figure too
                figures["errors"][name] = (str(error).strip().splitlines() or [type(error).__name__])[0]
        figures["rows"] = {name: answer[0] for name, answer in answers.items()}
        exact = {name: answer for name, answer in answers.items() if name != "sketch"}
        figures["agree"] = len(set(exact.values())) == 1 and not figures["errors"]
        if len(set(exact.values())) > 1:
            figures["disagreement"] = self._disagreement(texts, exact)
        figures["seconds"] = side_by_side({name: self._again(name, totals[name]) for name in answers}, self.repeats)
        print(json.dumps(figures), flush=True)  # what a run that is stopped half-way leaves behind
        return figures

    def _texts(self, question: Question, key: str | None) -> dict[str, str]:
        events = self.lake.events
        texts = {
            "spark": question.exact_sql(self.lake.db.log("events"), self.lake.rows, events, key, "spark"),
            "sketch": question.sketch_sql(events, key, verify=False),
            "verify": question.sketch_sql(events, key, verify=True),
            "duckdb": question.exact_sql(TABLE, "", events, key, "duckdb"),
        }
        if self.lake.events >= LARGE and question.axis == "names":
            # Without a key one task verifies: 22 million events and 11 million rows end a JVM of 12 GB.
            texts["verify"] = None
        return {name: text for name, text in texts.items() if text is not None}

    def _write(self, question: Question, texts: dict[str, str]) -> None:
        with self.texts.open("a") as file:
            for name, text in texts.items():
                file.write(f"-- {question.label}: {name}\n{text};\n\n")

    def _first(self, name: str, text: str, figures: dict[str, Any]) -> tuple[Any, ...]:
        """The answer, and what it read; also warms up."""
        frame = self.spark.sql(text)
        answer = tuple(frame.collect()[0])
        figures["bytes"][name] = self._bytes(name, frame, text, figures)
        return answer

    def _bytes(self, name: str, frame: DataFrame, text: str, figures: dict[str, Any]) -> int:
        reads = read_by(frame)
        if name != "spark":
            nodes = reads.get("sketch_nodes_log", Read())
            figures.setdefault("parts_read", {})[name] = len(nodes.partitions("bucket") - {str(TOP_BUCKET)})
            figures["parts"] = self._parts()
            return sum(read.bytes for read in reads.values()) + driver_bytes(self.spark, text)
        return sum(read.bytes for read in reads.values())

    def _parts(self) -> int:
        """Parts that the segments' nodes below the tops lie in: what the descent reads or leaves."""
        published = self.lake.published("sketch")
        nodes = self.lake.db.table("sketch_nodes").where(
            f"bucket <> {TOP_BUCKET} AND stream_id = {published.stream_id} AND to_batch IS NULL "
            f"AND from_batch BETWEEN {published.base_batch} AND {published.batch_id}"
        )
        return nodes.select("bucket").distinct().count()

    def _again(self, name: str, text: str) -> Callable[[], Any]:
        if name == "duckdb":
            return lambda: self.duck.one_row(text)
        return lambda: ask(self.spark, text)

    def _disagreement(self, texts: dict[str, str], exact: dict[str, Any]) -> dict[str, Any]:
        """Rows that one exact answer has and the first one lacks, and the other way round."""
        if max(answer[0] for answer in exact.values()) > 1_000_000:
            return {"totals": {name: list(map(int, answer)) for name, answer in exact.items()}}
        rows = {
            name: set(self.duck.rows(text) if name == "duckdb" else map(tuple, self.spark.sql(text).collect()))
            for name, text in texts.items()
            if name in exact
        }
        base = next(iter(rows))
        return {
            name: {
                "lacks": len(rows[base] - found),
                "adds": len(found - rows[base]),
                "lacks_first": _examples(rows[base] - found),
                "adds_first": _examples(found - rows[base]),
            }
            for name, found in rows.items()
            if name != base and found != rows[base]
        }


def _examples(rows: Iterable[tuple[Any, ...]]) -> list[list[int]]:
    return [list(row) for row in sorted(rows)[:EXAMPLES]]


def _total(question: Question, text: str) -> str:
    """One row that tells answers apart: how many matches, the sum of each step's positions, and a mixed sum."""
    last = f"p{question.slots}"
    sums = ", ".join(f"coalesce(sum(p{slot + 1}), 0) AS s{slot + 1}" for slot in range(question.slots))
    return f"SELECT count(*) AS n, {sums}, coalesce(sum((p1 % 65521) * ({last} % 65521)), 0) AS mix\nFROM ({text}) AS m"


def _key(spark: SparkSession, lake: Lake) -> str:
    """The first key that holds the keyed question's match, so that its answer is not empty; else any."""
    # Keys of up to four letters are 1 % of them, enough where each has many events.
    short = "length(key) <= 4" if lake.events >= 1_000_000 else "true"
    names = frequent(3)
    flags = ", ".join(f"collect_list(position) FILTER (WHERE name = '{name}') AS l{n}" for n, name in enumerate(names))
    row = spark.sql(
        f"SELECT min(key) FROM (SELECT key, {flags} FROM {lake.db.log('events')} "
        f"WHERE {lake.rows} AND {short} GROUP BY key) "
        "WHERE exists(l1, b -> b > array_min(l0) AND exists(l2, c -> c > b))"
    ).collect()[0]
    return row[0] or "k7"


def sql_file(events: int) -> Path:
    """Where the text of every query of a size is written."""
    return FOLDER / f"queries_{events}.sql"

"""Exact patterns beside Flink SQL's MATCH_RECOGNIZE and Esper: same events, same rows, same two cores.

    python benchmarks/beside_peers.py [--events N ...] [--flink-python PATH] [--esper-class-path PATH] [--function]
                                      [--quick]

Peers, PATHs, environment variables and events are those of `asking_peers.py`. "Within 100 events of a key" is W, `rank
- A.rank < 100` of a variable's own rank, where peers only know windows of time.

**Questions.** Beside each of ours, within 100 events of a key, the words that give the same rows.

- **sequence**, `A ; B ; C`, skip_till_next, after_match next: for each A the nearest B, and the nearest C behind that.
  MATCH_RECOGNIZE is contiguous, so what is skipped has variables of its own: `PATTERN (A X* B Y* C)`, `AFTER MATCH SKIP
  TO NEXT ROW`, X is `name <> 'B' AND W`, Y is `name <> 'C' AND W`. So there is one way only. (The usual reluctant `X*?`
  of any name gives the same rows in Flink, but it then follows every B, which takes longer.) Esper says the same, or as
  one of its patterns: `every a -> (b -> c)`.
- **sequence, past_last**: the same with `SKIP PAST LAST ROW`. Esper's patterns have no such thing.
- **rising**, `A ; B+ b[] ; C WHERE b[i].x > b[i-1].x`, skip_till_next, next. Flink can't ask it: what is kept and what
  is skipped alternate, `(B Y*)+`, and it refuses groups. First and last positions are those of *sequence*, as a B that
  does not rise is left out and never the match; so Flink's time of *sequence* is that of an easier question. Esper
  can't compare with the B kept last, but collects all, `(A X* (B Y*)+ C)` or `every a -> (d -> b until c)` with d the
  first B, and the listener keeps those that rise.
- **rising, strict**, the same under strict: `PATTERN (A B+ C)`, B is `name = 'B' AND W` and `LAST(B.x, 1) IS NULL OR
  B.x > LAST(B.x, 1)`; in Esper by `prev`, as its DEFINE refuses `last`.

skip_till_any, our default, is left out: no MATCH_RECOGNIZE asks for it.

**Rows** must be as many as ours, with the same sums of first positions, of last positions, and of B's bound: `equal`
says so, else theirs are printed, and the exit code is 1. Esper's MATCH_RECOGNIZE stands in a context by key: with
PARTITION BY instead, version 9.0 loses matches that end at the same event. It says `all matches` where the next row may
begin one, else it reports one of those that end together.

**Seconds** are the least of the repeats, with both cores for all:

- *kernel*: ours, from arrays in the order of keys to rows, on one core, compiled before. *kernel and order*: from
  arrays in the order of the stream, which are put in that order first.
- *Esper*: from the first event that is sent to the return of the last, on one thread beside those of its JVM; events
  are objects in memory. By its own clock; the repeats of a question share a JVM.
- *Flink, whole job*: from the submission of the statement to its row, parallelism 2, batch mode, in a JVM that runs.
  It reads the file: *Flink, file only* is a job that just counts and sums.
- *match_pattern* (with `--function`): the SQL function through Spark on two cores, from the lake that `ingest` made of
  the same file before the clock starts. *Spark SQL*: the best plain text that we know (`spark_patterns.py`), in that
  session over the same table. Of both, MB are the peaks of all Python workers and of the heap that survived a
  collection.

Goals: the kernel is ahead of all; Flink's whole job takes ten times as long as `match_pattern`, or more.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from asking_peers import (
    BY_KEY,
    CORES,
    FULL,
    PEERS,
    Answer,
    Found,
    Question,
    Rows,
    ask_peers,
    events_of,
    in_order,
    least,
    measured,
    output_of,
    peer_parser,
    taken_from,
    told,
    write_events,
)
from kernel_kleene import RISING, SCOPE, SEQUENCE
from spark_patterns import TEXTS

from patternlake.udfs.events import Events
from patternlake.udfs.kleene.kernels.bindings import Matches
from patternlake.udfs.kleene.kernels.matching import match_events
from patternlake.udfs.kleene.query import KleenePattern, compile_pattern
from patternlake.udfs.language.query.parser import parse

SCHEMA = "position BIGINT, key INT, name STRING, x DOUBLE, rank INT"

FLINK_SKIPPING = """
SELECT COUNT(*), SUM(f), SUM(l), COUNT(*) FROM events MATCH_RECOGNIZE (
  PARTITION BY `key` ORDER BY moment MEASURES A.`position` AS f, C.`position` AS l
  ONE ROW PER MATCH AFTER MATCH SKIP {skip} PATTERN (A X* B Y* C)
  DEFINE A AS A.name = 'A',
    X AS X.name <> 'B' AND X.`rank` - A.`rank` < 100, B AS B.name = 'B' AND B.`rank` - A.`rank` < 100,
    Y AS Y.name <> 'C' AND Y.`rank` - A.`rank` < 100, C AS C.name = 'C' AND C.`rank` - A.`rank` < 100)
"""
FLINK_RISING = """
SELECT COUNT(*), SUM(f), SUM(l), SUM(n) FROM events MATCH_RECOGNIZE (
  PARTITION BY `key` ORDER BY moment MEASURES A.`position` AS f, C.`position` AS l, COUNT(B.x) AS n
  ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+ C)
  DEFINE A AS A.name = 'A',
    B AS B.name = 'B' AND (LAST(B.x, 1) IS NULL OR B.x > LAST(B.x, 1)) AND B.`rank` - A.`rank` < 100,
    C AS C.name = 'C' AND C.`rank` - A.`rank` < 100)
"""

SKIPPING = {"X": "X.name != 'B'", "B": "B.name = 'B'", "Y": "Y.name != 'C'"}
COLLECTING = {**SKIPPING, "Y": "Y.name not in ('B', 'C')"}
ADJACENT = {"B": "B.name = 'B' and (prev(B.name) = 'A' or B.x > prev(B.x))"}


def recognize_text(order: str, between: dict[str, str], bound: str = "1 as bound", skip: str = "to next row") -> str:
    """Esper's match_recognize, with the conditions of the variables between A and C."""
    defined = {**between, "C": "C.name = 'C'"}
    conditions = ", ".join(f"{name} as {text} and {name}.rank - A.rank < 100" for name, text in defined.items())
    every = " all matches" if skip == "to next row" else ""
    return (
        f"{BY_KEY}select * from Event match_recognize (measures A.position as f, C.position as l, {bound}{every} "
        f"after match skip {skip} pattern ({order}) define A as A.name = 'A', {conditions})"
    )


def follow_text(behind: str, bound: str = "1 as bound") -> str:
    """Esper's pattern of what follows each A; it stops waiting at the first event behind the window."""
    return (
        f"{BY_KEY}select a.position as f, c.position as l, {bound} from pattern "
        f"[every a=Event(name = 'A') -> (({behind} c=Event(name = 'C', rank - a.rank < 100)) "
        "and not Event(rank = a.rank + 100))]"
    )


def questions() -> list[Question]:
    taken = "skip_till_next"
    return [
        Question(
            "sequence",
            SEQUENCE,
            taken,
            "next",
            FLINK_SKIPPING.format(skip="TO NEXT ROW"),
            {
                "pattern": follow_text("b=Event(name = 'B') ->"),
                "match_recognize": recognize_text("A X* B Y* C", SKIPPING),
            },
        ),
        Question(
            "sequence, past_last",
            SEQUENCE,
            taken,
            "past_last",
            FLINK_SKIPPING.format(skip="PAST LAST ROW"),
            {"match_recognize": recognize_text("A X* B Y* C", SKIPPING, skip="past last row")},
        ),
        Question(
            "rising",
            RISING,
            taken,
            "next",
            None,
            {
                "pattern": follow_text(
                    "d=Event(name = 'B') -> b=Event(name = 'B') until", "d as opening, b as collected"
                ),
                "match_recognize": recognize_text("A X* (B Y*)+ C", COLLECTING, "B as collected"),
            },
        ),
        Question(
            "rising, strict",
            RISING,
            "strict",
            "next",
            FLINK_RISING,
            {"match_recognize": recognize_text("A B+ C", ADJACENT, "B.countOf() as bound")},
        ),
    ]


def compiled(question: Question) -> KleenePattern:
    return compile_pattern(parse(question.text), SCOPE, policy=question.policy)


def matched(question: Question, asked: KleenePattern, events: Events) -> Matches:
    return match_events(
        asked, events, policy=question.policy, after_match=question.after_match, max_matches=len(events)
    )


def rows_of(found: Matches) -> Rows:
    bound = len(found.rows.events) - 2 * len(found)
    return Rows(len(found), int(found.first_position.sum()), int(found.last_position.sum()), bound)


def ask_kernel(question: Question, events: Events, repeats: int) -> dict[str, Answer]:
    asked = compiled(question)
    stream = taken_from(events, np.argsort(events.positions))
    rows = rows_of(matched(question, asked, events))
    if rows != rows_of(matched(question, asked, in_order(stream))):
        raise RuntimeError(f"{question.name}: the order of the stream changed the rows")
    return {
        "kernel": Answer(least(lambda: matched(question, asked, events), repeats), rows),
        "kernel and order": Answer(least(lambda: matched(question, asked, in_order(stream)), repeats), rows),
    }


def ask_spark(found: Found, path: Path, events: int, repeats: int) -> None:
    """Add the answers of match_pattern and of plain Spark SQL, in a process of its own, whose JVM ends with it."""
    root = str(PEERS.parents[1])
    before = os.environ.get("PYTHONPATH")
    # The lakes' modules are imported from the tree's root.
    places = os.pathsep.join([root, before] if before else [root])
    command = [sys.executable, __file__, "--through-spark", str(path), str(events), str(repeats)]
    out, error = output_of(command, {"PYTHONPATH": places})
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    for question in questions():
        found[question.name]["match_pattern"] = Answer(error=error or "no answer")
    for line in lines:
        found[line["question"]][line["who"]] = Answer(line["seconds"], Rows(*line["rows"]), peak=line["peak"])


def through_spark(path: Path, events: int, repeats: int) -> None:
    from benchmarks.lakes import new_folder
    from benchmarks.measuring import PeakMemory
    from benchmarks.sessions import ask, spark_session
    from patternlake.delta_tables.databases.opening import open_database
    from patternlake.jobs.configuration.file import StreamConfiguration
    from patternlake.jobs.ingest.job import ingest

    configuration = StreamConfiguration.model_validate(
        {
            "source": {"format": "csv", "path": str(path.parent)},
            "schema": SCHEMA,
            "time": "timestamp_seconds(position)",
            "name": "name",
            "key": "key",
            "attributes": {"x": "double"},
        }
    )
    with new_folder(f"peers_{events}") as folder, spark_session(folder, cores=CORES) as spark:
        database = open_database(spark, "patternlake", str(folder / "state"))
        ingest(database, "keys", configuration)
        columns = "key, name, position, `x:double` AS x"
        spark.table(database.log("events")).selectExpr(*columns.split(", ")).createTempView("keyed")
        for question in questions():
            text = question.text.replace("'", "''")
            bound = "size(bindings['b'])" if question.text == RISING else "1"
            sql = (
                f"SELECT count(*), sum(first_position), sum(last_position), sum({bound}) FROM match_pattern('keys', "
                f"'{text}', policy => '{question.policy}', after_match => '{question.after_match}', "
                f"max_matches => {events})"
            )
            for who, text in (("match_pattern", sql), ("Spark SQL", TEXTS[question.name])):
                rows = [int(value or 0) for value in spark.sql(text).collect()[0]]
                with PeakMemory(spark) as memory:
                    taken = least(lambda text=text: ask(spark, text), repeats)  # type: ignore[misc]
                peak = {name: memory.peaks[name] for name in ("workers", "jvm_heap_after_gc")}
                line = {"question": question.name, "who": who, "seconds": taken, "rows": rows, "peak": peak}
                print(json.dumps(line), flush=True)


def measure(n: int, given: argparse.Namespace, classes: Path) -> bool:
    events = events_of(n)
    asked = questions()
    found = {question.name: ask_kernel(question, events, given.repeats) for question in asked}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "events.csv")
        write_events(events, path)
        file_only = ask_peers(asked, found, path, given, classes)
        if given.function:
            ask_spark(found, path, n, given.repeats)
    return told(n, given, asked, found, file_only)


def main() -> int:
    parser = peer_parser(__doc__)
    parser.add_argument("--function", action="store_true", help="match_pattern and plain Spark SQL too")
    parser.add_argument("--through-spark", nargs=3, metavar=("FILE", "EVENTS", "REPEATS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.through_spark:
        path, *numbers = given.through_spark
        through_spark(Path(path), *(int(number) for number in numbers))
        return 0
    return measured(parser, given, FULL, measure)


if __name__ == "__main__":
    sys.exit(main())

"""Exact patterns beside Flink SQL's MATCH_RECOGNIZE and Esper: same events, same rows, same two cores.

    python benchmarks/beside_peers.py [--events N ...] [--flink-python PATH] [--esper-class-path PATH] [--function]
                                      [--quick]

The peers are copies that are already there. PATHs, or the environment variables PATTERNLAKE_FLINK_PYTHON and
PATTERNLAKE_ESPER, are a Python that has Flink (apache-flink on PyPI), and a class path with Esper's runtime and
compiler (com.espertech on Maven) and what they need; it may end in `/*`. What is not given is said to be missing and
left out. Needs Linux and Java. The events are those of `kernel_kleene.py`: 20 names by Zipf's law, 1,000 keys (fewer,
where keys would have less than 1,000 events), one attribute x. They are written to a file of lines
`position,key,name,x,rank`; rank counts the events of a key, so that "within 100 events of a key" is W, `rank - A.rank <
100` of a variable's own rank, where peers only know windows of time.

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
  the same file before the clock starts.

Goals: the kernel is ahead of all; Flink's whole job takes ten times as long as `match_pattern`, or more.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from kernel_kleene import SCOPE, zipf

from patternlake.udfs.kleene.answers import Matches
from patternlake.udfs.kleene.events import Events
from patternlake.udfs.kleene.matching import match_events
from patternlake.udfs.kleene.pattern import KleenePattern, compile_pattern
from patternlake.udfs.language.columns import Column
from patternlake.udfs.language.parser import parse

CORES = 2
KEYS = 1000
FULL, QUICK = (1_000_000, 10_000_000), (20_000,)
EVENTS_OF_KEY = 1000  # In fewer events there are fewer keys, or none had a hundred.
GOAL = 10
PEERS = Path(__file__).parent / "peers"
SCHEMA = "position BIGINT, key INT, name STRING, x DOUBLE, rank INT"

WITHIN = "PARTITION BY key WITHIN 100 EVENTS"
SEQUENCE = f"A ; B ; C {WITHIN}"
RISING = f"A ; B+ b[] ; C WHERE b[i].x > b[i-1].x {WITHIN}"

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
FLINK_FILE = "SELECT COUNT(*), SUM(x) FROM events"

BY_KEY = "create context ByKey partition by key from Event; context ByKey "
SKIPPING = {"X": "X.name != 'B'", "B": "B.name = 'B'", "Y": "Y.name != 'C'"}
COLLECTING = {**SKIPPING, "Y": "Y.name not in ('B', 'C')"}
ADJACENT = {"B": "B.name = 'B' and (prev(B.name) = 'A' or B.x > prev(B.x))"}


def recognized(order: str, between: dict[str, str], bound: str = "1 as bound", skip: str = "to next row") -> str:
    """Esper's match_recognize, with the conditions of the variables between A and C."""
    defined = {**between, "C": "C.name = 'C'"}
    conditions = ", ".join(f"{name} as {text} and {name}.rank - A.rank < 100" for name, text in defined.items())
    every = " all matches" if skip == "to next row" else ""
    return (
        f"{BY_KEY}select * from Event match_recognize (measures A.position as f, C.position as l, {bound}{every} "
        f"after match skip {skip} pattern ({order}) define A as A.name = 'A', {conditions})"
    )


def followed(behind: str, bound: str = "1 as bound") -> str:
    """Esper's pattern of what follows each A; it stops waiting at the first event behind the window."""
    return (
        f"{BY_KEY}select a.position as f, c.position as l, {bound} from pattern "
        f"[every a=Event(name = 'A') -> (({behind} c=Event(name = 'C', rank - a.rank < 100)) "
        "and not Event(rank = a.rank + 100))]"
    )


@dataclass(frozen=True)
class Question:
    """A question, and how the peers ask it."""

    name: str
    text: str
    policy: str
    after_match: str
    flink: str | None
    esper: dict[str, str]


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
                "pattern": followed("b=Event(name = 'B') ->"),
                "match_recognize": recognized("A X* B Y* C", SKIPPING),
            },
        ),
        Question(
            "sequence, past_last",
            SEQUENCE,
            taken,
            "past_last",
            FLINK_SKIPPING.format(skip="PAST LAST ROW"),
            {"match_recognize": recognized("A X* B Y* C", SKIPPING, skip="past last row")},
        ),
        Question(
            "rising",
            RISING,
            taken,
            "next",
            None,
            {
                "pattern": followed("d=Event(name = 'B') -> b=Event(name = 'B') until", "d as opening, b as collected"),
                "match_recognize": recognized("A X* (B Y*)+ C", COLLECTING, "B as collected"),
            },
        ),
        Question(
            "rising, strict",
            RISING,
            "strict",
            "next",
            FLINK_RISING,
            {"match_recognize": recognized("A B+ C", ADJACENT, "B.countOf() as bound")},
        ),
    ]


@dataclass(frozen=True)
class Rows:
    """What the rows of all are compared by."""

    matches: int
    first: int
    last: int
    bound: int


@dataclass(frozen=True)
class Answer:
    """The least seconds and the rows of one of those that were asked; or why there are none."""

    seconds: float = 0.0
    rows: Rows | None = None
    error: str = ""


def write_events(events: Events, path: Path) -> None:
    """The events in the order of their positions."""
    order = np.argsort(events.positions)
    columns = [events.positions, events.keys, events.names, events.columns["x"].values, events.ordinals]
    position, key, name, x, rank = (np.asarray(column)[order].tolist() for column in columns)
    with path.open("w") as file:
        for row in zip(position, key, name, x, rank, strict=True):
            file.write(f"{row[0]},{row[1]},{events.vocabulary[row[2]]},{row[3]!r},{row[4]}\n")


def taken_from(events: Events, rows: np.ndarray) -> Events:
    """Events in another order, ranks left out: the kernel counts them itself."""
    x = events.columns["x"]
    columns = {"x": Column(x.values[rows], x.known[rows], x.type)}
    parts = (events.keys[rows], events.times[rows], events.positions[rows], events.names[rows])
    return Events(*parts, events.vocabulary, columns)


def in_order(events: Events) -> Events:
    """Events of a stream in the order of keys."""
    return taken_from(events, np.argsort(events.keys, kind="stable"))


def compiled(question: Question) -> KleenePattern:
    return compile_pattern(parse(question.text), SCOPE, policy=question.policy)


def matched(question: Question, asked: KleenePattern, events: Events) -> Matches:
    return match_events(
        asked, events, policy=question.policy, after_match=question.after_match, max_matches=len(events)
    )


def rows_of(found: Matches) -> Rows:
    bound = len(found.events) - 2 * len(found)
    return Rows(len(found), int(found.first_position.sum()), int(found.last_position.sum()), bound)


def least(action: Callable[[], object], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return min(taken)


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


def output_of(command: list[str], more: dict[str, str] | None = None) -> tuple[str, str]:
    """What a program printed, and what it complained of where it failed."""
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(more or {})})
    return done.stdout, done.stderr[-2000:] if done.returncode else ""


def compile_esper(class_path: str, folder: Path) -> str:
    """The class path with our harness."""
    source = str(PEERS / "EsperPeer.java")
    subprocess.run(["javac", "-cp", class_path, "-d", str(folder), source], check=True)
    return os.pathsep.join([str(folder), class_path])


def ask_esper(epl: str, path: Path, class_path: str, heap: str, repeats: int) -> Answer:
    out, error = output_of(["java", f"-Xmx{heap}", "-cp", class_path, "EsperPeer", str(path), str(repeats), epl])
    if error:
        return Answer(error=error)
    lines = [line.split() for line in out.splitlines()]
    return Answer(min(float(line[0]) for line in lines), Rows(*(int(cell) for cell in lines[-1][1:])))


def ask_flink(texts: list[str], path: Path, python: str, heap: str, repeats: int) -> list[Answer]:
    command = [python, str(PEERS / "flink_peer.py"), str(path), str(repeats), *texts]
    # Its launcher of the JVM takes no size of the heap.
    out, error = output_of(command, {"JAVA_TOOL_OPTIONS": f"-Xmx{heap}"})
    found = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    answers = []
    for number in range(len(texts)):
        line: dict[str, Any] = found[number] if number < len(found) else {"error": error or "no answer"}
        if "error" in line:
            answers.append(Answer(error=line["error"]))
            continue
        rows = Rows(*(int(cell or 0) for cell in line["row"])) if len(line["row"]) == 4 else None
        answers.append(Answer(min(line["seconds"]), rows))
    return answers


def ask_function(path: Path, events: int, repeats: int) -> list[Answer]:
    """match_pattern for every question, in a process of its own, whose JVM ends with it."""
    root = str(PEERS.parents[1])
    before = os.environ.get("PYTHONPATH")
    # The lakes' modules are imported from the tree's root.
    places = os.pathsep.join([root, before] if before else [root])
    command = [sys.executable, __file__, "--through-spark", str(path), str(events), str(repeats)]
    out, error = output_of(command, {"PYTHONPATH": places})
    found = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    if error or len(found) != len(questions()):
        return [Answer(error=error or "no answer")] * len(questions())
    return [Answer(line["seconds"], Rows(*line["rows"])) for line in found]


def through_spark(path: Path, events: int, repeats: int) -> None:
    from benchmarks.lakes import new_folder
    from benchmarks.sessions import spark_session
    from patternlake.delta_tables.database import Database
    from patternlake.jobs.configuration import StreamConfiguration
    from patternlake.jobs.ingest import ingest

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
    with new_folder(f"peers_{events}") as folder, spark_session(folder, master=f"local[{CORES}]") as spark:
        ingest(Database.open(spark, "patternlake", str(folder / "state")), "keys", configuration)
        for question in questions():
            text = question.text.replace("'", "''")
            bound = "size(bindings['b'])" if question.text == RISING else "1"
            sql = (
                f"SELECT count(*), sum(first_position), sum(last_position), sum({bound}) FROM match_pattern('keys', "
                f"'{text}', policy => '{question.policy}', after_match => '{question.after_match}', "
                f"max_matches => {events})"
            )
            rows = [int(value or 0) for value in spark.sql(sql).collect()[0]]
            taken = least(lambda sql=sql: spark.sql(sql).collect(), repeats)  # type: ignore[misc]
            print(json.dumps({"seconds": taken, "rows": rows}), flush=True)


def ratio(answers: dict[str, Answer], name: str) -> str:
    """How many times as long as ours, and whether that is a goal that was missed."""
    ours, goal = ("match_pattern", GOAL) if name.startswith("Flink") else ("kernel", 1)
    cells = []
    if name != "kernel" and answers["kernel"].seconds:
        cells.append(f"{answers[name].seconds / answers['kernel'].seconds:,.1f} x kernel")
    if ours in answers and answers[ours].rows and name.startswith(("Flink", "Esper")):
        times = answers[name].seconds / answers[ours].seconds
        if ours == "match_pattern":
            cells.append(f"{times:,.1f} x match_pattern")
        if times < goal:
            cells.append("GOAL MISSED")
    return ", ".join(cells)


def compare(question: Question, answers: dict[str, Answer], events: int) -> bool:
    """Print the lines of a question; whether all who answered found our rows."""
    expected = answers["kernel"].rows
    assert expected is not None
    sums = f"sums of first {expected.first:,}, last {expected.last:,}, B's {expected.bound:,}"
    print(f"\n{question.name}: {question.text.split(' PARTITION')[0]}   {question.policy}, {question.after_match}")
    print(f"  {expected.matches:,} matches; {sums}")
    right = True
    for name, answer in answers.items():
        if answer.error:
            right = False
            print(f"  {name:<24} failed:\n{answer.error}")
            continue
        same = answer.rows == expected
        right &= same
        said = "equal" if same else f"DIFFERS {answer.rows}"
        speed = events / answer.seconds / 1e6
        print(f"  {name:<24}{answer.seconds:>10.3f} s{speed:>9.3f} M events/s  {said:<6} {ratio(answers, name)}")
    return right


def measure(n: int, given: argparse.Namespace, classes: Path) -> bool:
    repeats = given.repeats
    keys = max(1, min(KEYS, n // EVENTS_OF_KEY))
    events = zipf(n, keys)
    asked = questions()
    found: dict[str, dict[str, Answer]] = {}
    file_only = None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "events.csv")
        write_events(events, path)
        for question in asked:
            found[question.name] = ask_kernel(question, events, repeats)
        if given.esper_class_path:
            class_path = compile_esper(given.esper_class_path, classes)
            for question in asked:
                for form, epl in question.esper.items():
                    answer = ask_esper(epl, path, class_path, given.heap, repeats)
                    found[question.name][f"Esper, {form}"] = answer
        if given.flink_python:
            texts = {question.name: question.flink for question in asked if question.flink}
            answers = ask_flink([FLINK_FILE, *texts.values()], path, given.flink_python, given.heap, repeats)
            file_only = answers[0]
            for name, answer in zip(texts, answers[1:], strict=True):
                found[name]["Flink, whole job"] = answer
        if given.function:
            for question, answer in zip(asked, ask_function(path, n, repeats), strict=True):
                found[question.name]["match_pattern"] = answer
    print(f"\n{n:,} events in {keys:,} keys, least of {repeats}, load {os.getloadavg()[0]:.1f}")
    right = True
    for question in asked:
        right &= compare(question, found[question.name], n)
    if file_only is not None:
        print(f"\nFlink, file only: {file_only.error or f'{file_only.seconds:.3f} s'}")
    return right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flink-python", default=os.environ.get("PATTERNLAKE_FLINK_PYTHON"), metavar="PATH")
    parser.add_argument("--esper-class-path", default=os.environ.get("PATTERNLAKE_ESPER"), metavar="PATH")
    parser.add_argument("--function", action="store_true", help="match_pattern through Spark too")
    parser.add_argument("--events", type=int, nargs="+", metavar="N", help="these sizes instead")
    parser.add_argument("--quick", action="store_true", help="few events: does it work?")
    parser.add_argument("--heap", default="6g", help="of the peers' JVMs (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="the least time counts (default: %(default)s)")
    parser.add_argument("--through-spark", nargs=3, metavar=("FILE", "EVENTS", "REPEATS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.through_spark:
        path, *numbers = given.through_spark
        through_spark(Path(path), *(int(number) for number in numbers))
        return 0
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    if given.flink_python and not shutil.which(given.flink_python):
        parser.error(f"no program: {given.flink_python}")
    for name, place in (("Flink", given.flink_python), ("Esper", given.esper_class_path)):
        if not place:
            print(f"missing: {name}, left out")
    right = True
    with tempfile.TemporaryDirectory() as classes:
        for n in given.events or (QUICK if given.quick else FULL):
            right &= measure(n, given, Path(classes))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())

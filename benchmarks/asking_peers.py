"""Peers that are already there, asked for the same rows of the same events: Flink SQL's MATCH_RECOGNIZE and Esper.

The peers are copies that are already there. PATHs, or the environment variables PATTERNLAKE_FLINK_PYTHON and
PATTERNLAKE_ESPER, are a Python that has Flink (apache-flink on PyPI), and a class path with Esper's runtime and
compiler (com.espertech on Maven) and what they need; it may end in `/*`. What is not given is said to be missing and
left out. Needs Linux and Java. The events are those of `kernel_kleene.py`: 20 names by Zipf's law, 1,000 keys (fewer,
where keys would have less than 1,000 events), one attribute x. They are written to a file of lines
`position,key,name,x,rank`; rank counts the events of a key.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from kernel_kleene import zipf

from patternlake.udfs.events import Events

CORES = 2
KEYS = 1000
FULL, QUICK = (1_000_000, 10_000_000), (20_000,)
EVENTS_OF_KEY = 1000  # In fewer events there are fewer keys, or none had a hundred.
GOAL = 10
PEERS = Path(__file__).parent / "peers"
FLINK_FILE = "SELECT COUNT(*), SUM(x) FROM events"
BY_KEY = "create context ByKey partition by key from Event; context ByKey "

Found = dict[str, dict[str, "Answer"]]
"""Question and who was asked to the answer."""


@dataclass(frozen=True)
class Question:
    """A question, and how the peers ask it."""

    name: str
    text: str
    policy: str
    after_match: str
    flink: str | None
    esper: dict[str, str]


@dataclass(frozen=True)
class Rows:
    """What the rows of all are compared by."""

    matches: int
    first: int
    last: int
    bound: int


@dataclass(frozen=True)
class Answer:
    """The least seconds, the rows and bytes by process of one of those that were asked; or why there are none."""

    seconds: float = 0.0
    rows: Rows | None = None
    error: str = ""
    peak: dict[str, int] = field(default_factory=dict)


def keys_of(n: int) -> int:
    return max(1, min(KEYS, n // EVENTS_OF_KEY))


def events_of(n: int) -> Events:
    return zipf(n, keys_of(n))


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
    return replace(events.take(rows), ordinals=None)


def in_order(events: Events) -> Events:
    """Events of a stream in the order of keys."""
    return taken_from(events, np.argsort(events.keys, kind="stable"))


def least(action: Callable[[], object], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return min(taken)


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


def ask_peers(
    asked: Sequence[Question], found: Found, path: Path, given: argparse.Namespace, classes: Path
) -> Answer | None:
    """Add the answers of the peers that are there; returns the time that Flink takes for the file alone."""
    if given.esper_class_path:
        class_path = compile_esper(given.esper_class_path, classes)
        for question in asked:
            for form, epl in question.esper.items():
                answer = ask_esper(epl, path, class_path, given.heap, given.repeats)
                found[question.name][f"Esper, {form}"] = answer
    if not given.flink_python:
        return None
    texts = {question.name: question.flink for question in asked if question.flink}
    file_only, *answers = ask_flink([FLINK_FILE, *texts.values()], path, given.flink_python, given.heap, given.repeats)
    for name, answer in zip(texts, answers, strict=True):
        found[name]["Flink, whole job"] = answer
    return file_only


def ratio(answers: dict[str, Answer], name: str) -> str:
    """How many times as long as ours, and whether that is a goal that was missed."""
    ours, goal = ("match_pattern", GOAL) if name.startswith("Flink") else ("kernel", 1)
    cells = []
    if name != "kernel" and answers["kernel"].seconds:
        cells.append(f"{answers[name].seconds / answers['kernel'].seconds:,.1f} x kernel")
    if name == "Spark SQL" and "match_pattern" in answers:
        cells.append(f"{answers[name].seconds / answers['match_pattern'].seconds:,.1f} x match_pattern")
    if ours in answers and answers[ours].rows and name.startswith(("Flink", "Esper")):
        times = answers[name].seconds / answers[ours].seconds
        if ours == "match_pattern":
            cells.append(f"{times:,.1f} x match_pattern")
        if times < goal:
            cells.append("GOAL MISSED")
    cells += [f"{size / 1e6:,.0f} MB {what}" for what, size in answers[name].peak.items()]
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


def print_answers(
    n: int, given: argparse.Namespace, asked: Sequence[Question], found: Found, file_only: Answer | None
) -> bool:
    """Print all answers; whether all have our rows."""
    print(f"\n{n:,} events in {keys_of(n):,} keys, least of {given.repeats}, load {os.getloadavg()[0]:.1f}")
    right = [compare(question, found[question.name], n) for question in asked]
    if file_only is not None:
        print(f"\nFlink, file only: {file_only.error or f'{file_only.seconds:.3f} s'}")
    return all(right)


def peer_parser(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flink-python", default=os.environ.get("PATTERNLAKE_FLINK_PYTHON"), metavar="PATH")
    parser.add_argument("--esper-class-path", default=os.environ.get("PATTERNLAKE_ESPER"), metavar="PATH")
    parser.add_argument("--events", type=int, nargs="+", metavar="N", help="these sizes instead")
    parser.add_argument("--quick", action="store_true", help="few events: does it work?")
    parser.add_argument("--heap", default="6g", help="of the peers' JVMs (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="the least time counts (default: %(default)s)")
    return parser


def measure_all(
    parser: argparse.ArgumentParser,
    given: argparse.Namespace,
    sizes: Sequence[int],
    measure: Callable[[int, argparse.Namespace, Path], bool],
) -> int:
    """Measure with all numbers of events; the exit code."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    if given.flink_python and not shutil.which(given.flink_python):
        parser.error(f"no program: {given.flink_python}")
    for name, place in (("Flink", given.flink_python), ("Esper", given.esper_class_path)):
        if not place:
            print(f"missing: {name}, left out")
    with tempfile.TemporaryDirectory() as classes:
        right = [measure(n, given, Path(classes)) for n in given.events or (QUICK if given.quick else sizes)]
    return 0 if all(right) else 1

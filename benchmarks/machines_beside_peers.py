"""Machines of composite subscriptions beside Flink SQL's MATCH_RECOGNIZE and Esper: same events, same rows.

    python benchmarks/machines_beside_peers.py [--events N ...] [--flink-python PATH] [--esper-class-path PATH]
                                               [--quick]

Peers, PATHs, environment variables, file of events and clocks are those of `asking_peers.py`. The `position` of an
event is its time in seconds here, for all.

**Semantics.** Machines give a row for each event that completes a subscription in its partition, and consume nothing.
Where all is contiguous, an event completes one assignment at most and begins one at most, so these are the rows of
MATCH_RECOGNIZE with `AFTER MATCH SKIP TO NEXT ROW`, and only such questions are asked. With `;` machines give the
smallest assignment for each completing event, which no MATCH_RECOGNIZE asks for.

**Questions**, `PARTITION BY key`. Variables of the peers are called like the events:

- **contiguous**, `A, B, C`: `PATTERN (A B C)`, each variable defined by its name.
- **contiguous, timed**, `A, B, C @(t(C) - t(A) < N SEC)`: the same, and `C.position - A.position < N`. N is twice the
  number of keys, which is what two steps in a key take on average, so that the condition leaves out many.
- **defined**, `low, high DEFINE low AS name = 'A' AND x < 0.5, high AS name = 'B' AND x >= 0.5`: `PATTERN (A B)`, with
  the same conditions on name and x.

In Esper MATCH_RECOGNIZE stands in a context by key, as in `beside_peers.py`. Its *pattern* is `every a -> b -> c`; what
comes next is told by its rank in the key, and `and not` gives up where that is another event.

**Rows** must be as many as ours, with the same sums of first positions and of last positions (each binds one B):
`equal` says so, else theirs are printed, and the exit code is 1.

**Seconds** are the least of the repeats:

- *kernel*: ours, on one core, from arrays in the order of keys to matches, compiled before: which primitives take which
  events, machines of new partitions, all events. Training is part of it: the moves that forecasts are made of are
  counted as events go by, and can't be left out. *kernel and order*: from arrays in the order of the stream.
- *Esper*: on one thread beside those of its JVM, events are objects in memory. *Flink, whole job*: on two cores, from
  the submission to its row; it reads the file, which *Flink, file only* does too, and just counts and sums.

Peers only match, they forecast nothing. No peer that forecasts is run here.

Goal: the kernel is ahead of both.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from asking_peers import (
    BY_KEY,
    FULL,
    Answer,
    Question,
    Rows,
    ask_peers,
    events_of,
    in_order,
    least,
    measured,
    peer_parser,
    taken_from,
    told,
    write_events,
)
from kernel_kleene import SCOPE

from patternlake.udfs.events import Events
from patternlake.udfs.language.query.parser import parse
from patternlake.udfs.machines.kernels.matching_primitives import matching_primitives
from patternlake.udfs.machines.kernels.running import Found, Machines, nothing_held
from patternlake.udfs.machines.kernels.stream import Stream
from patternlake.udfs.machines.kernels.tables import Compiled, compiled
from patternlake.udfs.machines.query import compile_subscription

SECOND = 1_000_000
LOW, HIGH = "name = 'A' AND x < 0.5", "name = 'B' AND x >= 0.5"
NAMED = {name: f"{name}.name = '{name}'" for name in "ABC"}
DEFINED = {"A": "A.name = 'A' AND A.x < 0.5", "B": "B.name = 'B' AND B.x >= 0.5"}
FLINK = """
SELECT COUNT(*), SUM(f), SUM(l), COUNT(*) FROM events MATCH_RECOGNIZE (
  PARTITION BY `key` ORDER BY moment MEASURES A.`position` AS f, {last}.`position` AS l
  ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN ({order}) DEFINE {conditions})
"""
ESPER = """
select * from Event match_recognize (measures A.position as f, {last}.position as l, 1 as bound all matches
  after match skip to next row pattern ({order}) define {conditions})
"""


def recognized(text: str, defined: dict[str, str]) -> str:
    """A statement with MATCH_RECOGNIZE, its variables one directly after the other."""
    conditions = ", ".join(f"{name} AS {condition}" for name, condition in defined.items())
    return text.format(last=list(defined)[-1], order=" ".join(defined), conditions=conditions)


def followed(first: str, behind: list[str]) -> str:
    """Esper's pattern of events directly behind each first one, by what each is, with names from a."""
    steps = [
        f"({name}=Event(rank = a.rank + {step}, {what}) and not Event(rank = a.rank + {step}, not ({what})))"
        for step, (name, what) in enumerate(zip("bc", behind, strict=False), 1)
    ]
    return (
        f"{BY_KEY}select a.position as f, {'abc'[len(steps)]}.position as l, 1 as bound "
        f"from pattern [every a=Event({first}) -> {' -> '.join(steps)}]"
    )


def asked_of_all(name: str, text: str, defined: dict[str, str], pattern: str) -> Question:
    flink = recognized(FLINK, defined).replace(".position", ".`position`")
    esper = {"pattern": pattern, "match_recognize": BY_KEY + recognized(ESPER, defined)}
    return Question(name, f"{text} PARTITION BY key", "a row for each completing event", "none consumed", flink, esper)


def questions(seconds: int) -> list[Question]:
    """The questions; `seconds`: from first to last, of the one with a condition on time."""
    timed = {**NAMED, "C": f"{NAMED['C']} AND C.position - A.position < {seconds}"}
    b, c = "name = 'B'", "name = 'C'"
    return [
        asked_of_all("contiguous", "A, B, C", NAMED, followed("name = 'A'", [b, c])),
        asked_of_all(
            "contiguous, timed",
            f"A, B, C @(t(C) - t(A) < {seconds} SEC)",
            timed,
            followed("name = 'A'", [b, f"{c} and position - a.position < {seconds}"]),
        ),
        asked_of_all("defined", f"low, high DEFINE low AS {LOW}, high AS {HIGH}", DEFINED, followed(LOW, [HIGH])),
    ]


def matched(asked: Compiled, events: Events) -> Found:
    """Matches of a subscription without joins, by machines that begin with these events, which are in order of keys."""
    n = len(events)
    at, who = matching_primitives(asked.primitives, events)
    begins = np.flatnonzero(np.append(True, events.keys[1:] != events.keys[:-1]))
    stream = Stream(
        time=events.positions * SECOND,
        position=events.positions,
        matching_primitive_at=at,
        matching_primitives=who,
        values=np.zeros((0, n), np.int64),
        weight=np.arange(n + 1, dtype=np.float64),
    )
    found, _ = Machines(asked).take(nothing_held(asked, len(begins)), np.append(begins, n), stream)
    return found


def rows_of(found: Found) -> Rows:
    count = len(found.event)
    return Rows(count, int(found.position[:, 0].sum()), int(found.position[:, -1].sum()), count)


def ask_kernel(question: Question, events: Events, repeats: int) -> dict[str, Answer]:
    asked = compiled([compile_subscription(parse(question.text), SCOPE)])
    stream = taken_from(events, np.argsort(events.positions))
    rows = rows_of(matched(asked, events))
    if rows != rows_of(matched(asked, in_order(stream))):
        raise RuntimeError(f"{question.name}: the order of the stream changed the rows")
    return {
        "kernel": Answer(least(lambda: matched(asked, events), repeats), rows),
        "kernel and order": Answer(least(lambda: matched(asked, in_order(stream)), repeats), rows),
    }


def measure(n: int, given: argparse.Namespace, classes: Path) -> bool:
    events = events_of(n)
    asked = questions(2 * len(np.unique(events.keys)))
    found = {question.name: ask_kernel(question, events, given.repeats) for question in asked}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "events.csv")
        write_events(events, path)
        file_only = ask_peers(asked, found, path, given, classes)
    return told(n, given, asked, found, file_only)


def main() -> int:
    parser = peer_parser(__doc__)
    return measured(parser, parser.parse_args(), FULL[:1], measure)


if __name__ == "__main__":
    sys.exit(main())

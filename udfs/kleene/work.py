"""What matching did: at each node of a plan, and at each step behind the joins, partial matches and time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from patternlake.udfs.digits import digits, number_of

Key = tuple[str | int, ...]
"""A node: the number of a linearization and those of the operands below; or one of the steps below."""

COLLECTED: Key = ("collected",)
"""``+`` and ``*`` operands have collected their events, ``[n]`` those that it may choose from."""
MATCHES: Key = ("matches",)
"""All of matching, and the matches."""


def absence(operand: int) -> Key:
    """The step that tests a negated operand."""
    return ("absence", operand)


def aggregate(number: int) -> Key:
    """The step that tests a condition on aggregates."""
    return ("aggregate", number)


def tried(condition: str) -> Key:
    """Combinations of events that fit by order and window, on which a condition was judged; by its canonical text."""
    return ("tried", condition)


def held(condition: str) -> Key:
    """Those of `tried` for which it held."""
    return ("held", condition)


@dataclass(frozen=True, slots=True)
class Done:
    """What came out, and the seconds that it took; of a node with all that lies below."""

    rows: int = 0
    seconds: float = 0.0


@dataclass
class Work:
    """What runs did, added up.

    Attributes
    ----------
    done
        By node or step. A partial match is counted where its first event lies, so it counts once, however events are
        dealt out; a node of ``+``, ``*`` and ``[n]`` operands alone counts the events that wait.
    """

    done: dict[Key, Done] = field(default_factory=dict)

    def add(self, key: Key, rows: int, seconds: float) -> None:
        """Add to a node or step."""
        before = self.done.get(key, Done())
        self.done[key] = Done(before.rows + rows, before.seconds + seconds)

    def take(self, other: Work) -> None:
        """Add what another run did."""
        for key, one in other.done.items():
            self.add(key, one.rows, one.seconds)

    def of(self, keys: Iterable[Key]) -> Done:
        """Several nodes or steps together."""
        found = [self.done.get(key, Done()) for key in keys]
        return Done(sum(one.rows for one in found), sum(one.seconds for one in found))

    @property
    def shares(self) -> dict[str, tuple[int, int]]:
        """For each condition that was judged how often, and how often it held."""
        texts = [str(key[1]) for key in self.done if key[0] == "tried"]
        return {text: (self.of([tried(text)]).rows, self.of([held(text)]).rows) for text in texts}


ROWS = pa.schema([("key", pa.string()), ("rows", pa.string()), ("seconds", pa.float64())])
"""Work as rows; numbers of combinations need more than 64 bits."""


def work_rows(work: Work) -> pa.Table:
    """Work as rows of `ROWS`."""
    rows = [
        {"key": json.dumps(key), "rows": digits(one.rows), "seconds": one.seconds} for key, one in work.done.items()
    ]
    return pa.Table.from_pylist(rows, ROWS)


def work_of(tables: Iterator[pa.Table]) -> Work:
    """Rows of `ROWS` as work."""
    work = Work()
    for table in tables:
        for row in table.to_pylist():
            work.add(tuple(json.loads(row["key"])), number_of(row["rows"]), row["seconds"])
    return work
